// What a simulation counts.
#pragma once

#include <cstdint>

namespace hemiola::sim {

/// Reads at one level.
struct Reads {
  std::int64_t flag = 0;  ///< of flags, repeated loads of packets among them
  std::int64_t poll = 0;  ///< those of them that are not the first look
  std::int64_t data = 0;
};

struct Counters {
  std::int64_t hops = 0;  ///< visits of servers
  std::int64_t loads = 0, stores = 0, flags = 0, polls = 0, packet_retries = 0, remote_loads = 0,
               remote_stores = 0;
  std::int64_t l1_hits = 0, l1_misses = 0, l2_hits = 0, l2_misses = 0, l2_write_backs = 0,
               msc_hits = 0, msc_misses = 0;
  std::int64_t moved = 0;  ///< bytes of loads and stores of data, for tell()
  std::int64_t hbm_read = 0, hbm_written = 0, injected = 0, delivered = 0, bursts = 0,
               credits_taken = 0, credits_returned = 0, multicasts = 0;
  // Reads apart: what is not counted here follows from the above (see add_reads()).
  std::int64_t first_looks = 0, remote_polls = 0, remote_first_looks = 0, remote_retries = 0,
               multicast_loads = 0, member_loads = 0;
  Reads memory, past_l2;  ///< fetches of the L2 among the first; flags that it does not cache
  std::int64_t arms = 0, refused = 0, wakes = 0, false_wakes = 0, log_writes = 0, log_reads = 0,
               switched_out = 0, switched_in = 0, state_requests = 0;
};

}  // namespace hemiola::sim
