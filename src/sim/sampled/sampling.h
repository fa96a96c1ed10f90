// Windows of a run that are simulated line by line, and what goes on between them: the engine
// `sampled` (docs/sampled.md). Plain data: parts of the device ask what they may skip and tell
// what they saw.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "sim/result/latency_breakdown.h"
#include "sim/result/result.h"
#include "sim/sampled/trains.h"

namespace hemiola::sim {

/// What something has taken where it was simulated line by line: sums.
struct Pace {
  std::int64_t units = 0;  ///< bytes; steps; drains; batches
  std::int64_t time = 0;   ///< fs, or what they had of something that they share (Crowd)
  bool known() const { return units > 0; }
  std::int64_t time_for(std::int64_t count) const {
    return units == 0 ? 0 : static_cast<std::int64_t>(static_cast<__int128>(time) * count / units);
  }
  double each() const { return static_cast<double>(time) / static_cast<double>(units); }
  void add(std::int64_t count, std::int64_t fs) {
    units += count;
    time += fs;
  }
};

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

/// What makes moves alike, so that one takes as long per byte as another does: their kernel,
/// whether they are loads ahead, their sources and destinations, each by the links that lead there.
using MoveKind = std::array<std::int32_t, 4>;

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
  void expect(std::int64_t least, std::int64_t bytes) {
    least_ = bound_ = least;
    bytes_ = bytes;
  }
  /// A GPU's caches hold so many lines: what a skip leaves in them.
  void set_caches(std::int64_t lines) { cache_lines_ = lines; }

  // --- While it runs.

  /// All before `now` (fs) has happened. `moved` bytes by then, those that were passed over too;
  /// `lookups` of lines in the L2 of a GPU.
  void advance(std::int64_t now, std::int64_t moved, std::int64_t lookups);

  bool skips(std::int64_t now) const { return now >= skip_from_ && now < skip_to_; }
  std::int64_t skip_end() const { return skip_to_; }
  /// Whether what is passed over then should leave its lines in the caches: they may still be there
  /// when lines are simulated again.
  bool warms(std::int64_t time) const { return time >= warm_from_; }
  /// The longest that anybody may pass over at once, fs: a skip can be ended before its time.
  std::int64_t longest() const { return longest_; }
  /// Something begins that no window has shown: the skip ends.
  void end_skip(std::int64_t now);
  /// Bytes that operations would have moved.
  void leave_out(std::int64_t bytes) { left_out_ += bytes; }

  /// A number for a kind of move; from 0. `remote`: it reads or writes what is others'.
  std::int32_t number_of(const MoveKind& kind, bool remote);

  /// What moves of a rank share that go over this link first, or come over it last: a number for
  /// Mover::way. Moves of own memory have kOwn, those that go everywhere kEverywhere.
  std::int32_t way_over(int rank, std::int32_t link);
  static constexpr std::int32_t kOwn = 0, kEverywhere = 1;

  // A wavefront's batches: loads that are in flight together, and the stores that follow.
  struct Mover {
    std::int32_t wave = 0, group = 0, rank = 0, kind = 0, way = 0;
  };
  void begin_batch(const Mover& mover, std::int64_t now, std::int64_t bytes,
                   const LatencyBreakdown& spent);
  /// At the end of one, or of several that were passed over.
  void end_batch(std::int32_t wave, std::int64_t now, const LatencyBreakdown& spent);
  /// Whether windows have shown such moves, or others that share what limits them.
  bool knows(const Mover& mover) const;
  /// What `bytes` take if nobody comes or goes, fs.
  std::int64_t move_time(const Mover& mover, std::int64_t bytes) const;
  /// A wavefront passes over `bytes` from `now` on: until woken() says so.
  void skip_batches(const Mover& mover, std::int64_t now, std::int64_t bytes);
  /// What it has waited for meanwhile.
  void charge(std::int32_t wave, std::int64_t now, LatencyBreakdown& spent) const;

  // Those that pass over share what limits them with those that are simulated, so when they are
  // through changes as others come and go. A place: movers of a rank that share it.
  std::int32_t place_of(const Mover& mover) const { return kPlaces * mover.rank + mover.way; }
  /// Where the wavefront's batch is, or was.
  std::int32_t place_of(std::int32_t wave) const { return place_of(waves_[at(wave)].mover); }
  /// Where those of the rank pass over that nothing limits together.
  static std::int32_t free_place(std::int32_t rank) { return kPlaces * rank + kFree; }
  static std::int32_t rank_of(std::int32_t place) { return place / kPlaces; }
  /// When woken() is to be asked next, if that is earlier than what it has said before, or that
  /// is over; else INT64_MAX.
  std::int64_t next_wake(std::int32_t place, std::int64_t now);
  /// Somebody who is through, or -1.
  std::int32_t woken(std::int32_t place, std::int64_t now);

  /// What engines send together in skips. Where nobody else moves there is nothing that another
  /// window would show.
  Trains& trains() { return trains_; }
  void saw_packet() { seen_ = packets_ = engines_ = true; }
  /// Whether polls are passed over: flags of engines are long in coming.
  bool skips_polls(std::int64_t now) const { return engines_ && skips(now); }

  // Stores of a workgroup that a release waits for.
  void begin_drain(std::int32_t group, std::int64_t now);
  /// Nothing is left to wait for. How long the wavefront goes on waiting, for what was passed over,
  /// fs.
  std::int64_t end_drain(std::int32_t group, std::int64_t now);
  void leave_nothing_to_drain(std::int32_t group) { drains_[at(group)].passed = true; }
  /// When a workgroup may go on moving at the earliest, fs: the way of flags through what is passed
  /// over takes time as well.
  std::int64_t hold(const Mover& mover, std::int64_t now);
  /// The workgroup waits for flags.
  void wait(std::int32_t group) { drains_[at(group)].waited = drains_[at(group)].ended >= 0; }

  // Steps of products whose operands are loaded ahead.
  /// All operands of a step are posted, and no other is under way.
  void begin_steps(std::int32_t group, std::int64_t now) { steps_[at(group)].posted = now; }
  void end_step(std::int32_t group, std::int64_t now, bool others_under_way);
  const Pace& steps(std::int32_t group) const { return steps_[at(group)].pace; }
  /// When a step ends that would end at `end`: no sooner than at the pace of steps.
  std::int64_t end_of_step(std::int32_t group, std::int64_t now, std::int64_t end);

  // --- After the run.

  /// The run has ended at `end`, fs.
  void finish(std::int64_t end);
  /// The estimate of the instant `time` of the simulation, fs.
  std::int64_t estimate(std::int64_t time) const;
  /// `moved`: bytes of the whole program.
  Sampled summary(std::int64_t end, std::int64_t moved) const;
  /// Of bytes that are looked up line by line, not in trains: so many were simulated.
  double share_of_lines(std::int64_t moved) const {
    return 1 - static_cast<double>(left_out_) / static_cast<double>(moved);
  }

 private:
  // Places of a rank: ways, and one for those whom nothing limits together.
  static constexpr std::int32_t kFree = 2, kFirstLink = 3, kPlaces = 16;
  enum class Phase { settling, measuring, skipping };
  struct Gap {
    std::int64_t begin = 0, end = 0;  ///< fs
    std::int64_t saved = 0;           ///< fs, by what was too fast
  };
  struct Batch {
    std::int64_t began = -1, bytes = 0;  ///< -1: none
    std::int64_t share = 0;              ///< Crowd::share when it began
    bool skipped = false;                ///< nobody simulates it
    Mover mover{};
    LatencyBreakdown spent{};
  };
  struct Nap {
    std::int64_t until = 0;  ///< Crowd::share
    std::int32_t wave = 0;
    bool operator>(const Nap& other) const {
      return until != other.until ? until > other.until : wave > other.wave;
    }
  };
  /// Wavefronts of a rank that move, and share what limits them.
  struct Crowd {
    std::int32_t moving = 0;
    Pace shared{};             ///< of all kinds, in windows
    std::int32_t filling = 1;  ///< so many fill what they share: fewer leave some of it
    // Queues forget slowly: what was there lately still counts.
    std::int32_t peak = 0;
    std::int64_t peak_until = INT64_MAX;  ///< fs
    std::int64_t among() const { return std::max({moving, filling, peak}); }
    std::int64_t share = 0;   ///< what each of them would have had since the start, fs << kShift
    std::int64_t since = 0;   ///< fs: `share` is of then
    std::vector<Nap> naps{};  ///< heap, the earliest first
    std::int64_t wake = INT64_MAX;  ///< fs: when somebody will ask
  };
  /// All of a rank.
  struct Movers {
    std::int32_t moving = 0;
    std::int64_t empty = -1;  ///< fs: when the last of them was through, and nobody moved
  };
  struct Kind {
    bool remote = false;
    bool full = true;  ///< something is: the time that a batch takes grows with those who move
    Pace shared{};     ///< shares of batches, in bytes
    Pace alone{};      ///< their times
    Pace window{};     ///< shares in the present or last one
    Pace too_fast{};   ///< since the gap began: how much more time than in windows they had needed
    /// Shares by workgroup, in the first and the second half of windows.
    std::vector<std::array<Pace, 2>> by_group{};
    std::int64_t apart = 0;       ///< how much of what workgroups differ by is not chance, in 2^-10
    double least = 0;             ///< fs per byte, of the fastest batch
    std::vector<Pace> windows{};  ///< shares in each
    /// Of batches: how many move meanwhile (x), and time per byte (y).
    struct {
      double count = 0, x = 0, y = 0, xx = 0, xy = 0;
    } crowding{};
    Attribution spent{};
    double skipped = 0;  ///< bytes
  };
  struct Steps {
    Pace pace;
    std::int64_t posted = -1;  ///< fs: one before which none is under way
    int window = -1;           ///< in which one has ended last
    std::int64_t last = -1;
    std::int64_t end = 0;  ///< of the latest that has started
  };
  struct Drain {
    std::int64_t began = -1;
    bool stored = false, passed = false;  ///< since the last one: batches; and some passed over
    // From the last batch before a wait to the first one after it.
    std::int32_t moving = 0;  ///< wavefronts in batches
    std::int64_t ended = -1;  ///< fs: when the last of them was through
    bool waited = false;      ///< since then
    std::int64_t hold = 0;    ///< fs: nothing is passed over before
    int window = -1;          ///< in which it has moved last
  };

  static std::size_t at(std::int32_t number) { return static_cast<std::size_t>(number); }
  static constexpr int kShift = 8;
  Crowd& catch_up(std::int32_t place, std::int64_t now);
  Crowd& join(const Mover& mover, std::int64_t now);
  std::int64_t share_of(const Mover& mover, std::int64_t bytes) const;
  bool shares(const Mover& mover) const;
  void count_open_batches(std::int64_t now);
  void begin_settling(std::int64_t now);
  bool only_engines(std::int64_t now) const;
  void set_end(std::int64_t now, std::int64_t length);
  void note_move(std::int64_t now);
  void end_gap(std::int64_t now);
  void begin_window(std::int64_t now, std::int64_t lookups);
  void end_window(std::int64_t now, std::int64_t lookups);
  void sum_up(Kind& kind) const;
  static bool grows_with_movers(const Kind& kind);
  void find_filling();
  /// Its moves are results of products, which take their time.
  bool computes(std::int32_t group) const { return steps_[at(group)].end > 0; }
  std::int64_t settling_time() const;
  std::int64_t window_time() const;
  static double error_of(const Kind& kind);
  bool in_several_kernels() const;

  Phase phase_ = Phase::settling;
  bool seen_ = false;                       ///< something that may be skipped
  bool packets_ = false;                    ///< ... an engine's, since the last window began
  bool engines_ = false;                    ///< ... ever
  std::int64_t moving_ = 0, moved_at_ = 0;  ///< wavefronts; fs: when one began or ended a batch
  bool open_end_ = false;                   ///< the skip lasts until some wavefront moves
  std::int64_t least_ = 0, bound_ = 0, bytes_ = 0, cache_lines_ = 0;
  std::int64_t at_this_pace_ = 0;     ///< what the run takes at the latest pace alone
  std::int64_t from_ = 0;             ///< of the window
  std::int64_t settled_ = INT64_MAX;  ///< end of settling
  std::int64_t skip_from_ = INT64_MAX, skip_to_ = 0, warm_from_ = INT64_MAX, longest_ = 0;
  std::int64_t filling_ = 0;  ///< fs: in which lines fill the caches
  std::int64_t left_out_ = 0;
  std::int64_t naps_ = 0;
  std::int64_t lookups_ = 0;  ///< where the window began
  int windows_ = 0;
  std::int64_t gap_from_ = -1;
  std::vector<Gap> gaps_;

  std::vector<Crowd> crowds_;                     ///< by place
  std::vector<Movers> movers_;                    ///< by rank
  std::vector<std::vector<std::int32_t>> links_;  ///< by rank: those that have a number
  std::map<MoveKind, std::int32_t> numbers_;
  std::vector<Kind> kinds_;
  Trains trains_;
  Pace batches_;  ///< of all kinds: units are batches
  std::vector<Batch> waves_;
  std::vector<Drain> drains_;               ///< by workgroup
  std::vector<std::int64_t> pauses_;        ///< fs, around waits
  std::int64_t least_pause_ = 0;            ///< fs: a quarter of them are shorter
  std::int64_t paused_ = 0, measured_ = 0;  ///< fs of workgroups, in windows
  Pace after_all_{};                        ///< from when nobody moved to the next batch of each
  std::int64_t together_ = 0;               ///< pauses in which nobody moved for a while
  bool lockstep_ = false;                   ///< nearly all of them
  /// Of the window: pauses, and workgroups that have moved. In how long a workgroup pauses once,
  /// fs.
  std::int64_t window_pauses_ = 0, window_groups_ = 0, between_pauses_ = 0;
  Pace draining_;             ///< of all of them: what they differ by is chance
  std::vector<Steps> steps_;  ///< by workgroup
  Pace first_steps_;          ///< before which none is under way, from their posting on
  std::int64_t window_steppers_ = 0, window_firsts_ = 0;  ///< workgroups with steps, first steps
  std::int64_t window_batches_ = 0;
};

/// What caches and memory did with requests that were simulated stands for all.
void scale_caches(Result& result, double share);

}  // namespace hemiola::sim
