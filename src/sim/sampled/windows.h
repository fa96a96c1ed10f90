// The schedule of a sampled run (docs/sampled.md).
#pragma once

#include <cstdint>
#include <vector>

namespace hemiola::sim::sampled {

/// What the lengths of settling and of windows depend on, fs.
struct Cycle {
  std::int64_t batch = 0;           ///< in the mean
  std::int64_t between_pauses = 0;  ///< in how long a workgroup pauses once
  bool products = false;            ///< the window has shown steps of them
};

/// When a run settles, when it measures a window, and when it skips.
class Windows {
 public:
  /// The run takes at least so long, fs, and moves so many bytes: says how long windows and skips
  /// are.
  void expect(std::int64_t least, std::int64_t bytes);
  /// A GPU's caches hold so many lines: what a skip leaves in them.
  void set_caches(std::int64_t lines) { cache_lines_ = lines; }

  /// What is due at `now`: a window begins, or it may end. `napping`: somebody still passes over.
  enum class Due : std::uint8_t { nothing, begin, end };
  Due due(std::int64_t now, std::int64_t moved, const Cycle& cycle, bool napping);
  void begin(std::int64_t now, std::int64_t lookups);
  /// Whether the window is over: a skip can follow. `shown`: it has what it is to show.
  bool ends(std::int64_t now, const Cycle& cycle, bool shown);
  void begin_skip(std::int64_t now, std::int64_t lookups);
  /// Something begins that no window has shown: the skip ends.
  void end_skip(std::int64_t now);

  bool skips(std::int64_t now) const { return now >= skip_from_ && now < skip_to_; }
  std::int64_t skip_end() const { return skip_to_; }
  /// Whether what is passed over then should leave its lines in the caches: they may still be there
  /// when lines are simulated again.
  bool warms(std::int64_t time) const { return time >= warm_from_; }
  /// The longest that anybody may pass over at once, fs: a skip can be ended before its time.
  std::int64_t longest() const { return longest_; }
  bool measures() const { return phase_ == Phase::measuring; }
  std::int64_t from() const { return from_; }  ///< of the present or last window
  int count() const { return count_; }         ///< of those that are over
  std::int64_t window_time(const Cycle& cycle) const;

  /// Something may be skipped; a packet of an engine.
  void see() { seen_ = true; }
  void see_packet() { seen_ = packets_ = engines_ = true; }
  bool has_engines() const { return engines_; }
  /// A wavefront begins a batch, or ends it; `now`: something moved.
  void begin_batch(std::int64_t now);
  void end_batch(std::int64_t now);
  void note_move(std::int64_t now);
  std::int64_t moving() const { return moving_; }  ///< wavefronts

  // Skip and settling together are a gap.
  bool in_gap() const { return gap_from_ >= 0; }
  /// `saved`: fs, by what was too fast.
  void end_gap(std::int64_t now, std::int64_t saved);
  double gap_time() const;  ///< of all, fs
  /// The estimate of the instant `time` of the simulation, fs.
  std::int64_t estimate(std::int64_t time) const;
  std::int64_t bound() const { return bound_; }

 private:
  enum class Phase { settling, measuring, skipping };
  struct Gap {
    std::int64_t begin = 0, end = 0, saved = 0;  ///< fs
  };
  std::int64_t settling_time(const Cycle& cycle) const;
  bool only_engines(std::int64_t now) const;
  void set_end(std::int64_t now, std::int64_t length);

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
  std::int64_t lookups_ = 0;  ///< where the window began
  int count_ = 0;
  std::int64_t gap_from_ = -1;
  std::vector<Gap> gaps_;
};

}  // namespace hemiola::sim::sampled
