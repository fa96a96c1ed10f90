#include "sim/sampled/sampling.h"

#include <algorithm>
#include <cmath>

namespace hemiola::sim {
namespace {

// Of trains: beside what trains_ says, and of the time beyond the lower bound. There messages wait
// for each other in the network, and which ones do hangs on chance (docs/sampled.md).
constexpr double kOfTrains = 0.01, kOfWaits = 0.08;

}  // namespace

Sampling::Sampling(std::size_t ranks, std::size_t groups, std::size_t waves)
    : pauses_(windows_, groups),
      steps_(windows_, groups),
      moves_(windows_, pauses_, steps_, ranks, groups, waves) {}

void Sampling::advance(std::int64_t now, std::int64_t moved, std::int64_t lookups) {
  using Due = sampled::Windows::Due;
  const Due due = windows_.due(now, moved, moves_.cycle(), moves_.napping());
  if (due == Due::begin) {
    windows_.end_gap(now, moves_.take_saved());
    windows_.begin(now, lookups);
    pauses_.begin_window();
    steps_.begin_window();
    moves_.begin_window();
  } else if (due == Due::end) {
    const std::int64_t length = now - windows_.from();
    pauses_.look_between(length);
    // Tiles of products: their begins are to be seen, too; batches: one of each wavefront.
    const bool shown = !steps_.lacks_firsts() && moves_.batches_in_window() >= windows_.moving();
    if (!windows_.ends(now, moves_.cycle(), shown)) return;
    moves_.end_window(now);
    pauses_.end_window(length);
    windows_.begin_skip(now, lookups);
    steps_.end_window();
  }
}

void Sampling::end_step(std::int32_t group, std::int64_t now, bool others_under_way) {
  windows_.see();
  windows_.note_move(now);
  const std::int64_t time = steps_.end(group, now, others_under_way);
  if (time >= 0) moves_.add_step(time);
}

Sampled Sampling::summary(std::int64_t end, std::int64_t moved) const {
  Sampled sampled;
  sampled.windows = windows_.count();
  if (moved > 0)
    sampled.share =
        1 - static_cast<double>(left_out_ + trains_.bytes()) / static_cast<double>(moved);
  double error = moves_.error();
  if (trains_.bytes() > 0 && end > 0) {
    const double waits = 1 - static_cast<double>(windows_.bound()) / static_cast<double>(end);
    error = std::max(error, kOfTrains + trains_.error() + kOfWaits * std::max(0.0, waits));
  }
  if (end > 0) sampled.error = error * windows_.gap_time() / static_cast<double>(end);
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
