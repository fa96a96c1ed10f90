// Windows of a run that are simulated line by line, and what goes on between them: the engine
// `sampled` (docs/sampled.md). Plain data: parts of the device ask what they may skip and tell
// what they saw.
#pragma once

#include <array>
#include <cstdint>
#include <numeric>

#include "sim/result/result.h"
#include "sim/sampled/moves.h"
#include "sim/sampled/trains.h"

namespace hemiola::sim {

/// Requests that are left out, by their size.
struct LeftOut {
  std::array<std::int64_t, 9> by_sectors{};  ///< how many there are of so many sectors
  std::int64_t bytes = 0;                    ///< whole sectors of all of them
  std::int64_t count() const {
    return std::accumulate(by_sectors.begin(), by_sectors.end(), std::int64_t{0});
  }
};
/// ... from `rank` to memory of `target`, or of all members of `group`.
struct Passage {
  int rank = 0, target = 0;
  std::int32_t group = -1;
  bool write = false;
  const LeftOut& requests;
};

/// The schedule of windows, what they have shown, and the time of the whole that follows from it.
///
/// A cycle is: *settling*, simulated but not measured; a *window*, measured; then a *skip*, in
/// which wavefronts pass over lines at the pace that windows have shown, while flags,
/// waits, barriers, launches and matrix units go on being simulated. Skip and settling together are
/// a *gap*. What is passed over takes as long as in windows. What is simulated while others pass
/// over is too fast, for it meets fewer: by so much a gap is too short, and the estimate longer.
struct Sampling {
  /// `ranks` simulated ranks, their `groups` workgroups and `waves` wavefronts.
  Sampling(std::size_t ranks, std::size_t groups, std::size_t waves);

  // --- While it runs.

  /// All before `now` (fs) has happened. `moved` bytes by then, those that were passed over too;
  /// `lookups` of lines in the L2 of a GPU.
  void advance(std::int64_t now, std::int64_t moved, std::int64_t lookups);
  /// Whether polls are passed over: flags of engines are long in coming.
  bool skips_polls(std::int64_t now) const { return windows.has_engines() && windows.skips(now); }
  /// When a workgroup may go on moving at the earliest, fs: the way of flags through what is passed
  /// over takes time as well.
  std::int64_t hold(const sampled::Mover& mover, std::int64_t now) {
    return pauses.hold(mover.group, now, steps.computes(mover.group), moves.movers(mover.rank));
  }
  void end_step(std::int32_t group, std::int64_t now, bool others_under_way);

  // --- After the run.

  /// The run has ended at `end`, fs.
  void finish(std::int64_t end) { windows.end_gap(end, moves.take_saved()); }
  /// `bytes`: of the whole program.
  Sampled summary(std::int64_t end, std::int64_t bytes) const;
  /// Of bytes that are looked up line by line, not in trains: so many were simulated.
  double share_of_lines(std::int64_t bytes) const {
    return 1 - static_cast<double>(left_out) / static_cast<double>(bytes);
  }

  sampled::Windows windows;
  sampled::Pauses pauses;
  sampled::Steps steps;
  sampled::Moves moves;
  /// What engines send together in skips. Where nobody else moves there is nothing that another
  /// window would show.
  Trains trains;
  std::int64_t left_out = 0;  ///< bytes that operations would have moved
};

/// What caches and memory did with requests that were simulated stands for all.
void scale_caches(Result& result, double share);

}  // namespace hemiola::sim
