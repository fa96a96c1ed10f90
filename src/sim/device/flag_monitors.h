// What slices, and the memory controller where flags are uncached, do for those who wait: lines
// served one access after the other, tables of waits, a log, wake-ups.
#pragma once

#include <cstdint>

#include "sim/device/device.h"
#include "sim/device/transport.h"

namespace hemiola::sim {

class Memory;

class FlagMonitors {
 public:
  FlagMonitors(Device& device, Transport& transport, Memory& memory)
      : device_(device), transport_(transport), memory_(memory) {}

  bool goes_past_l2(const Request& request) const;
  std::int64_t serve_flag_line(Request& request, std::int64_t now);
  /// A new entry. False: the table is full, and there is no log.
  bool watch(const Request& request, std::int64_t done);
  void stop_watching(const Request& request);
  /// A flag has been written.
  void notify(std::int32_t semaphore, const Request& cause, std::int64_t done);
  /// Nobody waits for its answer.
  static bool ends_in_memory(const Request& request) {
    return request.intent == Intent::write_back ||
           (request.intent == Intent::wake && request.wave < 0);
  }

 private:
  Monitors& monitors_for(const Request& request) {
    GpuState& state = device_.gpu(request.target);
    return request.uncached ? state.by_memory : state.by_slices;
  }
  bool awaits(const Watcher& watcher, std::int32_t semaphore) const;
  bool holds(const Watcher& watcher) const;
  std::int64_t use_log(std::int32_t id, std::int64_t time, bool from_memory);
  std::int32_t make_log_access(std::int16_t rank, Monitors& monitors, Intent intent);
  std::int64_t wake(const Watcher& watcher, const Request& cause, std::int64_t time);

  Device& device_;
  Transport& transport_;
  Memory& memory_;
};

}  // namespace hemiola::sim
