#include "sim/sampled/sampling.h"

#include <algorithm>
#include <cmath>

namespace hemiola::sim {
namespace {

// Of trains: beside what trains says, and of the time beyond the lower bound. There messages wait
// for each other in the network, and which ones do hangs on chance (docs/sampled.md).
constexpr double kOfTrains = 0.01, kOfWaits = 0.08;

}  // namespace

Sampling::Sampling(std::size_t ranks, std::size_t groups, std::size_t waves)
    : pauses(windows, groups),
      steps(windows, groups),
      moves(windows, pauses, steps, ranks, groups, waves) {}

void Sampling::advance(std::int64_t now, std::int64_t moved, std::int64_t lookups) {
  using Due = sampled::Windows::Due;
  const Due due = windows.due(now, moved, moves.cycle(), moves.napping());
  if (due == Due::begin) {
    windows.end_gap(now, moves.take_saved());
    windows.begin(now, lookups);
    pauses.begin_window();
    steps.begin_window();
    moves.begin_window();
  } else if (due == Due::end) {
    const std::int64_t length = now - windows.from();
    pauses.look_between(length);
    // Tiles of products: their begins are to be seen, too; batches: one of each wavefront.
    const bool shown = !steps.lacks_firsts() && moves.batches_in_window() >= windows.moving();
    if (!windows.ends(now, moves.cycle(), shown)) return;
    moves.end_window(now);
    pauses.end_window(length);
    windows.begin_skip(now, lookups);
    steps.end_window();
  }
}

void Sampling::end_step(std::int32_t group, std::int64_t now, bool others_under_way) {
  windows.see();
  windows.note_move(now);
  const std::int64_t time = steps.end(group, now, others_under_way);
  if (time >= 0) moves.add_step(time);
}

Sampled Sampling::summary(std::int64_t end, std::int64_t bytes) const {
  Sampled sampled;
  sampled.windows = windows.count();
  if (bytes > 0)
    sampled.share = 1 - static_cast<double>(left_out + trains.bytes()) / static_cast<double>(bytes);
  double error = moves.error();
  if (trains.bytes() > 0 && end > 0) {
    const double waits = 1 - static_cast<double>(windows.bound()) / static_cast<double>(end);
    error = std::max(error, kOfTrains + trains.error() + kOfWaits * std::max(0.0, waits));
  }
  if (end > 0) sampled.error = error * windows.gap_time() / static_cast<double>(end);
  return sampled;
}

void scale_caches(Result& result, double share) {
  for (auto& [name, count] : result.counters) {
    const bool of_caches = name.starts_with("l1.") || name.starts_with("l2.") ||
                           name.starts_with("msc.") || name.starts_with("hbm.") ||
                           name == "reads.data.memory";
    if (of_caches) count = std::llround(static_cast<double>(count) / share);
  }
}

}  // namespace hemiola::sim
