// Releases, signals and waits of wavefronts: by polls, or line by line by monitor and SyncMon.
#pragma once

#include <cstdint>

#include "sim/device/device.h"
#include "sim/device/transport.h"
#include "sim/replay/peer_waits.h"

namespace hemiola::sim {

class FlagMonitors;
class Issue;
class Residency;
class Skips;
class Tracing;
class Wavefronts;

class Sync {
 public:
  Sync(Device& device, Transport& transport, FlagMonitors& flag_monitors, Issue& issue,
       Residency& residency, Skips& skips, Tracing& tracing, Wavefronts& wavefronts)
      : device_(device),
        transport_(transport),
        flag_monitors_(flag_monitors),
        issue_(issue),
        residency_(residency),
        skips_(skips),
        tracing_(tracing),
        wavefronts_(wavefronts) {}

  // True: the wavefront waits.
  bool start_signal(std::int32_t wave, const Step& step, std::int64_t now);
  bool start_wait(std::int32_t wave, const Step& step, std::int64_t now);
  bool waits_for_stores(std::int32_t wave, std::int64_t now);
  bool fence(std::int32_t wave, bool system_scope, std::int64_t now);
  // Polls and wake-ups.
  void poll_round(std::int32_t wave, Look look, std::int64_t now);
  void poll_returned(std::int32_t id, std::int64_t now);
  std::int64_t next_sleep(Wave& wave, int rank);
  void look_again(std::int32_t wave, std::int32_t first, std::int64_t now);
  void woken(std::int32_t id, std::int64_t now);
  /// Of a replay.
  PeerWaits& peer_waits() { return peer_waits_; }

 private:
  void send_flag(std::int32_t wave, program::SemaphoreId id, std::int64_t value, std::int64_t now);
  void wait_over(std::int32_t wave, std::int64_t accepted_at, std::int64_t now);
  void wait_by_line(std::int32_t wave, std::int64_t now);
  void look(std::int32_t wave, std::int32_t first, Look look, const LatencyBreakdown& spent,
            std::int64_t now);
  void line_returned(std::int32_t id, std::int64_t now);

  Device& device_;
  Transport& transport_;
  FlagMonitors& flag_monitors_;
  Issue& issue_;
  Residency& residency_;
  Skips& skips_;
  Tracing& tracing_;
  Wavefronts& wavefronts_;
  PeerWaits peer_waits_;
};

}  // namespace hemiola::sim
