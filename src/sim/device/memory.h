// What slices and memory do with a request, however it came there; values of flags and packets.
#pragma once

#include <cstdint>

#include "sim/device/device.h"

namespace hemiola::sim {

class CopyEngines;
class CopyQueues;
class FlagMonitors;
class Servers;
class Skips;
class Tracing;

class Memory {
 public:
  Memory(Device& device, CopyEngines& copy_engines, CopyQueues& copy_queues,
         FlagMonitors& flag_monitors, Servers& servers, Skips& skips, Tracing& tracing)
      : device_(device),
        copy_engines_(copy_engines),
        copy_queues_(copy_queues),
        flag_monitors_(flag_monitors),
        servers_(servers),
        skips_(skips),
        tracing_(tracing) {}

  /// A slice takes a request. When its look-up is done.
  std::int64_t accept(std::int32_t id, std::int64_t now);
  std::int64_t operand_time(int rank, std::int64_t bytes) const;
  std::int64_t flag_time(int rank) const;
  /// Values change and are read; the slice is done with the request at `done`.
  void take_effect(std::int32_t id, std::int64_t now, std::int64_t done);
  std::int32_t make_write_back(int rank, std::int32_t line);
  std::int64_t go_home(Request& request, std::int64_t ready) const;
  /// When the data are there, or taken.
  std::int64_t through_memory(Request& request, std::int64_t now);
  static LatencyBreakdown until_accepted(const Request& request, std::int64_t now);
  // Of uncached flags, at the memory controller.
  void apply_flag(Request& request, std::int64_t now, std::int64_t done);
  void sample_poll(Request& request, std::int64_t now, std::int64_t done);

 private:
  /// `by`: of a trace, the span that does it.
  void add_to_semaphore(SemaphoreState& semaphore, std::int64_t increment,
                        const LatencyBreakdown& cause, SpanId by, std::int64_t now);
  void store_packet(Request& request, std::int64_t now);
  bool load_packet(std::int32_t id);
  std::int32_t channel_of(int rank, std::int64_t line) const;

  Device& device_;
  CopyEngines& copy_engines_;
  CopyQueues& copy_queues_;
  FlagMonitors& flag_monitors_;
  Servers& servers_;
  Skips& skips_;
  Tracing& tracing_;
};

}  // namespace hemiola::sim
