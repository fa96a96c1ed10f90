// Wavefronts interpret the primitives of their workgroup.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/device/device.h"
#include "sim/device/transport.h"

namespace hemiola::sim {

class Computes;
class CopyEngines;
class Host;
class Issue;
class Skips;
class Sync;
class Tracing;

class Wavefronts {
 public:
  Wavefronts(Device& device, Transport& transport, Computes& computes, CopyEngines& copy_engines,
             Host& host, Issue& issue, Skips& skips, Sync& sync, Tracing& tracing)
      : device_(device),
        transport_(transport),
        computes_(computes),
        copy_engines_(copy_engines),
        host_(host),
        issue_(issue),
        skips_(skips),
        sync_(sync),
        tracing_(tracing) {}

  void run_wave(std::int32_t wave, std::int64_t now);
  void run_waves(std::int32_t first, std::int32_t count, std::int64_t now);
  void push_waves(std::int64_t time, std::int32_t first, std::int32_t count) {
    transport_.push(time, kWaves, first, count, device_.wave(first).tag);
  }
  /// Where it is; nullptr: its primitives have ended.
  Step* step_of(Wave& wave) {
    Workgroup& group = device_.group(wave.workgroup);
    wave.position = std::max(wave.position, group.first);  // it took no part in what is gone
    return step_at(group, wave.position);
  }
  void after_loads(std::int32_t wave, std::int64_t now);
  void release_sync(std::int32_t wave, const Step& step, std::int64_t now);
  void request_memory(std::int32_t wave, const program::Span& span, std::int64_t begin,
                      std::int64_t end, Intent intent, bool last, std::int64_t now);
  std::int64_t unroll(const Workgroup& group) const;

 private:
  static constexpr int kCodePieces = 16;  ///< of the code of a function
  std::int32_t pass_idle(std::int32_t wave, std::int32_t end, std::int64_t now);
  Step* step_at(Workgroup& group, std::int64_t position) {
    const std::int64_t at = position - group.first;
    return at < static_cast<std::int64_t>(group.window.size()) ? &group.window[index(at)]
                                                               : next_step(group, position);
  }
  Step* next_step(Workgroup& group, std::int64_t position);
  void drop_passed(Workgroup& group, std::int64_t now);
  void pass(Workgroup& group, Wave& wave, Step& step, std::int64_t now);
  void want_code(Workgroup& group, const program::Primitive& primitive);
  void fetch_code(Workgroup& group, std::int64_t now);
  static void begin(const Workgroup& group, Step& step);
  void expand_barrier(Workgroup& group, Step& step);
  bool move(std::int32_t wave, const Step& step, std::int64_t now);
  void issue_loads(std::int32_t wave, const Step& step, std::int64_t now);
  void issue_stores(std::int32_t wave, const Step& step, std::int64_t now);
  void arrive(std::int32_t wave, Step& step, std::int32_t count, std::int64_t now);
  void finish_wave(std::int32_t wave, std::int64_t now);
  Granularity granularity(const Workgroup& group, const program::Primitive& primitive) const;

  Device& device_;
  Transport& transport_;
  Computes& computes_;
  CopyEngines& copy_engines_;
  Host& host_;
  Issue& issue_;
  Skips& skips_;
  Sync& sync_;
  Tracing& tracing_;
};

}  // namespace hemiola::sim
