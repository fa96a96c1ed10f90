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
class Sampling {
 public:
  /// `ranks` simulated ranks, their `groups` workgroups and `waves` wavefronts.
  Sampling(std::size_t ranks, std::size_t groups, std::size_t waves);

  /// The run takes at least so long, fs, and moves so many bytes: says how long windows and skips
  /// are.
  void expect(std::int64_t least, std::int64_t bytes) { windows_.expect(least, bytes); }
  /// A GPU's caches hold so many lines: what a skip leaves in them.
  void set_caches(std::int64_t lines) { windows_.set_caches(lines); }

  // --- While it runs.

  /// All before `now` (fs) has happened. `moved` bytes by then, those that were passed over too;
  /// `lookups` of lines in the L2 of a GPU.
  void advance(std::int64_t now, std::int64_t moved, std::int64_t lookups);

  bool skips(std::int64_t now) const { return windows_.skips(now); }
  std::int64_t skip_end() const { return windows_.skip_end(); }
  /// Whether what is passed over then should leave its lines in the caches: they may still be there
  /// when lines are simulated again.
  bool warms(std::int64_t time) const { return windows_.warms(time); }
  /// The longest that anybody may pass over at once, fs: a skip can be ended before its time.
  std::int64_t longest() const { return windows_.longest(); }
  /// Something begins that no window has shown: the skip ends.
  void end_skip(std::int64_t now) { windows_.end_skip(now); }
  /// Bytes that operations would have moved.
  void leave_out(std::int64_t bytes) { left_out_ += bytes; }

  /// A number for a kind of move; from 0. `remote`: it reads or writes what is others'.
  std::int32_t number_of(const MoveKind& kind, bool remote) {
    return moves_.number_of(kind, remote);
  }

  /// What moves of a rank share that go over this link first, or come over it last: a number for
  /// Mover::way. Moves of own memory have kOwn, those that go everywhere kEverywhere.
  std::int32_t way_over(int rank, std::int32_t link) { return moves_.way_over(rank, link); }
  static constexpr std::int32_t kOwn = sampled::Moves::kOwn,
                                kEverywhere = sampled::Moves::kEverywhere;

  // A wavefront's batches: loads that are in flight together, and the stores that follow.
  using Mover = sampled::Mover;
  void begin_batch(const Mover& mover, std::int64_t now, std::int64_t bytes,
                   const LatencyBreakdown& spent) {
    moves_.begin_batch(mover, now, bytes, spent);
  }
  /// At the end of one, or of several that were passed over.
  void end_batch(std::int32_t wave, std::int64_t now, const LatencyBreakdown& spent) {
    moves_.end_batch(wave, now, spent);
  }
  /// Whether windows have shown such moves, or others that share what limits them.
  bool knows(const Mover& mover) const { return moves_.knows(mover); }
  /// What `bytes` take if nobody comes or goes, fs.
  std::int64_t move_time(const Mover& mover, std::int64_t bytes) const {
    return moves_.move_time(mover, bytes);
  }
  /// A wavefront passes over `bytes` from `now` on: until woken() says so.
  void skip_batches(const Mover& mover, std::int64_t now, std::int64_t bytes) {
    moves_.skip_batches(mover, now, bytes);
  }
  /// What it has waited for meanwhile.
  void charge(std::int32_t wave, std::int64_t now, LatencyBreakdown& spent) const {
    moves_.charge(wave, now, spent);
  }

  // Those that pass over share what limits them with those that are simulated, so when they are
  // through changes as others come and go. A place: movers of a rank that share it.
  std::int32_t place_of(const Mover& mover) const { return moves_.place_of(mover); }
  /// Where the wavefront's batch is, or was.
  std::int32_t place_of(std::int32_t wave) const { return moves_.place_of(wave); }
  /// Where those of the rank pass over that nothing limits together.
  static std::int32_t free_place(std::int32_t rank) { return sampled::Moves::free_place(rank); }
  static std::int32_t rank_of(std::int32_t place) { return sampled::Moves::rank_of(place); }
  /// When woken() is to be asked next, if that is earlier than what it has said before, or that
  /// is over; else INT64_MAX.
  std::int64_t next_wake(std::int32_t place, std::int64_t now) {
    return moves_.next_wake(place, now);
  }
  /// Somebody who is through, or -1.
  std::int32_t woken(std::int32_t place, std::int64_t now) { return moves_.woken(place, now); }

  /// What engines send together in skips. Where nobody else moves there is nothing that another
  /// window would show.
  Trains& trains() { return trains_; }
  void saw_packet() { windows_.see_packet(); }
  /// Whether polls are passed over: flags of engines are long in coming.
  bool skips_polls(std::int64_t now) const { return windows_.has_engines() && skips(now); }

  // Stores of a workgroup that a release waits for.
  void begin_drain(std::int32_t group, std::int64_t now) { pauses_.begin_drain(group, now); }
  /// Nothing is left to wait for. How long the wavefront goes on waiting, for what was passed over,
  /// fs.
  std::int64_t end_drain(std::int32_t group, std::int64_t now) {
    return pauses_.end_drain(group, now);
  }
  void leave_nothing_to_drain(std::int32_t group) { pauses_.leave_nothing_to_drain(group); }
  /// When a workgroup may go on moving at the earliest, fs: the way of flags through what is passed
  /// over takes time as well.
  std::int64_t hold(const Mover& mover, std::int64_t now) {
    return pauses_.hold(mover.group, now, steps_.computes(mover.group), moves_.movers(mover.rank));
  }
  /// The workgroup waits for flags.
  void wait(std::int32_t group) { pauses_.wait(group); }

  // Steps of products whose operands are loaded ahead.
  /// All operands of a step are posted, and no other is under way.
  void begin_steps(std::int32_t group, std::int64_t now) { steps_.begin(group, now); }
  void end_step(std::int32_t group, std::int64_t now, bool others_under_way);
  const Pace& steps(std::int32_t group) const { return steps_.pace(group); }
  /// When a step ends that would end at `end`: no sooner than at the pace of steps.
  std::int64_t end_of_step(std::int32_t group, std::int64_t now, std::int64_t end) {
    return steps_.end_of(group, now, end);
  }

  // --- After the run.

  /// The run has ended at `end`, fs.
  void finish(std::int64_t end) { windows_.end_gap(end, moves_.take_saved()); }
  /// The estimate of the instant `time` of the simulation, fs.
  std::int64_t estimate(std::int64_t time) const { return windows_.estimate(time); }
  /// `moved`: bytes of the whole program.
  Sampled summary(std::int64_t end, std::int64_t moved) const;
  /// Of bytes that are looked up line by line, not in trains: so many were simulated.
  double share_of_lines(std::int64_t moved) const {
    return 1 - static_cast<double>(left_out_) / static_cast<double>(moved);
  }

 private:
  sampled::Windows windows_;
  sampled::Pauses pauses_;
  sampled::Steps steps_;
  sampled::Moves moves_;
  Trains trains_;
  std::int64_t left_out_ = 0;
};

/// What caches and memory did with requests that were simulated stands for all.
void scale_caches(Result& result, double share);

}  // namespace hemiola::sim
