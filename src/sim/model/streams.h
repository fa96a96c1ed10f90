// Streams of a rank, in every engine: where each of them stands, who waits for which event, and
// when a kernel can start for those before it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/result/host_calls.h"
#include "sim/support/index.h"

namespace hemiola::sim {

/// What a stream comes to (host_streams.h): the rank's next repetition, the next item's start, the
/// present item's end.
enum class HostStep : std::uint8_t { repetition, item, finished };
template <class Engine, class Spent>
class HostStreams;

/// Where a stream stands.
struct StreamPlace {
  std::size_t item = 0;
  std::int64_t started = 0;        ///< of the present item
  std::int64_t kernel_began = -1;  ///< of the last kernel of this repetition
  std::int64_t call_ended = -1;    ///< a library's, with no other kernel since then
  bool in_call = false;            ///< its last kernel is that of a library's call
  bool waits = false;              ///< for an event

  /// At the start of a repetition. A library's call of the one before is not forgotten.
  void restart() {
    item = 0;
    kernel_began = -1;
  }
  /// At the start of its item.
  void start(const program::Bound& program, const program::StreamItem& at, std::int64_t now) {
    started = now;
    if (at.kind != program::StreamItem::Kind::kernel) return;
    kernel_began = now;
    call_ended = -1;
    in_call = program.frame(at.frame).program->library_call;
  }
};

/// Leaves the item of a stream that is over at `now`: when the next can start. A kernel starts
/// launch.stream_interval (or graph_interval) after the start of the one before it in its stream at
/// the earliest, whatever stands between them; the kernel of a library's call in a job
/// launch.library_interval after the end of the call before it.
inline NextCall next_item(StreamPlace& place, const program::Stream& items,
                          const machine::GpuModel& model, const program::Bound& program,
                          const Options& options, std::int64_t now) {
  using Kind = program::StreamItem::Kind;
  if (items[place.item].kind == Kind::launch_end && place.in_call) place.call_ended = now;
  ++place.item;
  NextCall next{now, now};
  if (place.item == items.size() || items[place.item].kind != Kind::kernel) return next;
  if (place.kernel_began >= 0)
    next.alone = std::max(now, place.kernel_began + launch_interval(model, options));
  next.start = next.alone;
  const bool library = program.frame(items[place.item].frame).program->library_call;
  if (library && place.call_ended >= 0 && options.launch == Launch::stream)
    next.start = std::max(next.alone, place.call_ended + model.launch_library_interval.fs);
  return next;
}

/// Which events of a rank were recorded in which repetition.
class StreamEvents {
 public:
  void record(std::int32_t event, std::int32_t repetition) {
    if (index(event) >= recorded_.size()) recorded_.resize(index(event) + 1, -1);
    recorded_[index(event)] = repetition;
  }
  bool is_recorded(std::int32_t event, std::int32_t repetition) const {
    return index(event) < recorded_.size() && recorded_[index(event)] == repetition;
  }

 private:
  std::vector<std::int32_t> recorded_;  ///< by event: the last repetition
};

}  // namespace hemiola::sim
