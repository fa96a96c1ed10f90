// Requests are issued by CUs, and complete at their wavefronts.
#pragma once

#include <cstdint>

#include "sim/device/device.h"
#include "sim/device/transport.h"

namespace hemiola::sim {

class Computes;
class CopyEngines;
class Host;
class Multicast;
class Residency;
class Servers;
class Sync;
class Tracing;
class Wavefronts;

class Issue {
 public:
  Issue(Device& device, Transport& transport, Computes& computes, CopyEngines& copy_engines,
        Host& host, Multicast& multicast, Residency& residency, Servers& servers, Sync& sync,
        Tracing& tracing, Wavefronts& wavefronts)
      : device_(device),
        transport_(transport),
        computes_(computes),
        copy_engines_(copy_engines),
        host_(host),
        multicast_(multicast),
        residency_(residency),
        servers_(servers),
        sync_(sync),
        tracing_(tracing),
        wavefronts_(wavefronts) {}

  /// An instruction, lines in order.
  void request_bytes(std::int32_t wave, const program::Span& span, std::int64_t from,
                     std::int64_t to, Intent intent, bool last, std::int64_t now);
  std::int32_t make_request(std::int32_t wave, Intent intent, int target, std::int32_t line,
                            std::int64_t bytes);
  /// A request that exists already: a flag, a poll, a packet load that is repeated.
  void issue(std::int32_t id, std::int64_t now);
  /// At the CU that issued it.
  void complete(std::int32_t id, std::int64_t now);
  /// Stores of the workgroup's epoch that are not acknowledged.
  static std::int32_t& unacknowledged(Workgroup& group, std::int32_t epoch);
  /// What a release waits for: stores of the whole workgroup before its last sync, and the
  /// wavefront's own.
  bool drained(const Wave& wave) const;
  /// From a slice's acceptance of a poll to its return: the look-up, the rest is the way back.
  void charge_return(LatencyBreakdown& spent, int rank, std::int64_t fs) const;

 private:
  static bool has_room(const Cu& cu, Intent intent) {
    return (is_load(intent) ? cu.load_room : cu.store_room) > 0;
  }
  void account(std::int32_t wave, Intent intent, bool remote, std::int64_t requests,
               std::int64_t bytes);
  std::int32_t instructions_again(Wave& wave, Intent intent);
  void set_line(Request& request, std::int32_t line, std::int64_t bytes) const;
  static RequestData request_like(const Queued& wanted, const Cu& cu);
  void make_head(const Queued& instruction, Cu& cu);
  std::int32_t next_request(Queued& instruction, const Issuing& all, const LatencyBreakdown& spent,
                            Tally& tally);
  void add_detail_of(const Queued& instruction, Request& request, std::int64_t low,
                     std::int64_t high);
  void find_paths(Queued& wanted, int from);
  Gate gate_of(const RequestData& request, Cu& cu);
  void grant(const Gate& gate, std::int32_t id, Request& request, Cu& cu, std::int64_t now,
             std::int32_t again, Tally& tally);
  void issue_lines(Queued& instruction, Cu& cu, const LatencyBreakdown& spent, std::int64_t most,
                   std::int64_t now, Tally& tally);
  void issue_made(std::int32_t id, Cu& cu, std::int64_t now, Tally& tally);
  void issue_queued(Cu& cu, const LatencyBreakdown& cause, std::int64_t now, Tally& tally);
  void free_slot(Cu& cu, bool load, const LatencyBreakdown& cause, std::int64_t now, Tally& tally);
  void start_polling(std::int32_t id, std::int64_t now);
  void acknowledged(Request& request, std::int64_t now);

  Device& device_;
  Transport& transport_;
  Computes& computes_;
  CopyEngines& copy_engines_;
  Host& host_;
  Multicast& multicast_;
  Residency& residency_;
  Servers& servers_;
  Sync& sync_;
  Tracing& tracing_;
  Wavefronts& wavefronts_;
};

}  // namespace hemiola::sim
