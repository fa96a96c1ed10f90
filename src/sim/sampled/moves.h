// How long moves of a sampled run take, and when those that are passed over are through.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/result/latency_breakdown.h"
#include "sim/sampled/pauses.h"
#include "sim/sampled/steps.h"

namespace hemiola::sim {

/// What makes moves alike, so that one takes as long per byte as another does: their kernel,
/// whether they are loads ahead, their sources and destinations, each by the links that lead there.
using MoveKind = std::array<std::int32_t, 4>;

namespace sampled {

/// A wavefront's batches: loads that are in flight together, and the stores that follow.
struct Mover {
  std::int32_t wave = 0, group = 0, rank = 0, kind = 0, way = 0;
};

class Moves {
 public:
  static constexpr std::int32_t kOwn = 0, kEverywhere = 1;

  Moves(Windows& windows, Pauses& pauses, const Steps& steps, std::size_t ranks, std::size_t groups,
        std::size_t waves);
  Moves(const Moves&) = delete;

  /// A number for a kind of move; from 0. `remote`: it reads or writes what is others'.
  std::int32_t number_of(const MoveKind& kind, bool remote);
  /// What moves of a rank share that go over this link first, or come over it last: a number for
  /// Mover::way. Moves of own memory have kOwn, those that go everywhere kEverywhere.
  std::int32_t way_over(int rank, std::int32_t link);

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
  const RankMovers& movers(std::int32_t rank) const { return movers_[at(rank)]; }

  void begin_window();
  void end_window(std::int64_t now);
  /// By how much what was simulated since the last gap began was too fast, fs.
  std::int64_t take_saved();
  bool napping() const { return naps_ > 0; }
  std::int64_t batches_in_window() const { return window_batches_; }
  /// A step of a product counts as a batch.
  void add_step(std::int64_t time) { batches_.add(1, time); }
  Cycle cycle() const { return {batches_.time_for(1), pauses_.between(), steps_.in_window()}; }
  /// How far the times of what was passed over are off, relative; nothing was: -1.
  double error() const;

 private:
  // Places of a rank: ways, and one for those whom nothing limits together.
  static constexpr std::int32_t kFree = 2, kFirstLink = 3, kPlaces = 16;
  static constexpr int kShift = 8;
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

  Crowd& catch_up(std::int32_t place, std::int64_t now);
  Crowd& join(const Mover& mover, std::int64_t now);
  std::int64_t share_of(const Mover& mover, std::int64_t bytes) const;
  bool shares(const Mover& mover) const;
  void count_open_batches(std::int64_t now);
  void sum_up(Kind& kind) const;
  static bool grows_with_movers(const Kind& kind);
  void find_filling();
  static double error_of(const Kind& kind);
  bool in_several_kernels() const;

  Windows& windows_;
  Pauses& pauses_;
  const Steps& steps_;
  std::size_t groups_;
  std::vector<Crowd> crowds_;                     ///< by place
  std::vector<RankMovers> movers_;                ///< by rank
  std::vector<std::vector<std::int32_t>> links_;  ///< by rank: those that have a number
  std::map<MoveKind, std::int32_t> numbers_;
  std::vector<Kind> kinds_;
  Pace batches_;  ///< of all kinds, and steps: units are batches
  std::vector<Batch> waves_;
  std::int64_t naps_ = 0, window_batches_ = 0;
};

}  // namespace sampled
}  // namespace hemiola::sim
