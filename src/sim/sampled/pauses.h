// How long workgroups of a sampled run pause, for their stores and for each other.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/sampled/pace.h"
#include "sim/sampled/windows.h"

namespace hemiola::sim::sampled {

/// All wavefronts of a rank.
struct RankMovers {
  std::int32_t moving = 0;
  std::int64_t empty = -1;  ///< fs: when the last of them was through, and nobody moved
};

class Pauses {
 public:
  Pauses(const Windows& windows, std::size_t groups) : windows_(windows), groups_(groups) {}

  void begin_window() { window_pauses_ = window_groups_ = 0; }
  /// The window is as long by now: between() is of it.
  void look_between(std::int64_t length);
  void end_window(std::int64_t length);

  /// A batch that is simulated begins. `products`: it stores their results.
  void measure(std::int32_t group, std::int64_t now, bool products, const RankMovers& movers);
  void begin_batch(std::int32_t group) { ++groups_[at(group)].moving; }
  void end_batch(std::int32_t group, std::int64_t now);

  // Stores of a workgroup that a release waits for.
  void begin_drain(std::int32_t group, std::int64_t now);
  /// Nothing is left to wait for. How long the wavefront goes on waiting, for what was passed over,
  /// fs.
  std::int64_t end_drain(std::int32_t group, std::int64_t now);
  void leave_nothing_to_drain(std::int32_t group) { groups_[at(group)].passed = true; }
  /// The workgroup waits for flags.
  void wait(std::int32_t group) { groups_[at(group)].waited = groups_[at(group)].ended >= 0; }
  /// As Sampling::hold().
  std::int64_t hold(std::int32_t group, std::int64_t now, bool products, const RankMovers& movers);

  std::int64_t least() const { return least_; }      ///< fs: a quarter of them are shorter
  std::int64_t between() const { return between_; }  ///< fs: in how long a workgroup pauses once
  double share() const;                              ///< of the time of workgroups, in windows

 private:
  struct Group {
    std::int64_t began = -1;              ///< of a drain
    bool stored = false, passed = false;  ///< since the last one: batches; and some passed over
    // From the last batch before a wait to the first one after it.
    std::int32_t moving = 0;  ///< wavefronts in batches
    std::int64_t ended = -1;  ///< fs: when the last of them was through
    bool waited = false;      ///< since then
    std::int64_t hold = 0;    ///< fs: nothing is passed over before
    int window = -1;          ///< in which it has moved last
  };

  const Windows& windows_;
  std::vector<Group> groups_;
  std::vector<std::int64_t> pauses_;  ///< fs, around waits
  std::int64_t least_ = 0, between_ = 0;
  std::int64_t paused_ = 0, measured_ = 0;  ///< fs of workgroups, in windows
  Pace after_all_{};                        ///< from when nobody moved to the next batch of each
  std::int64_t together_ = 0;               ///< pauses in which nobody moved for a while
  bool lockstep_ = false;                   ///< nearly all of them
  /// Of the window: pauses, and workgroups that have moved.
  std::int64_t window_pauses_ = 0, window_groups_ = 0;
  Pace draining_;  ///< of all of them: what they differ by is chance
};

}  // namespace hemiola::sim::sampled
