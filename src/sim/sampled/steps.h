// Steps of products of a sampled run, whose operands are loaded ahead.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/sampled/pace.h"
#include "sim/sampled/windows.h"

namespace hemiola::sim::sampled {

class Steps {
 public:
  Steps(const Windows& windows, std::size_t groups) : windows_(windows), groups_(groups) {}

  void begin_window() { window_steppers_ = window_firsts_ = 0; }
  void end_window() {
    for (Group& group : groups_) group.last = -1;
  }
  /// The window has some; and has not seen the begins of so many as there are.
  bool in_window() const { return window_steppers_ > 0; }
  bool lacks_firsts() const { return window_firsts_ < window_steppers_; }

  /// All operands of a step are posted, and no other is under way.
  void begin(std::int32_t group, std::int64_t now) { groups_[at(group)].posted = now; }
  /// The time since the step before, in a window; else -1.
  std::int64_t end(std::int32_t group, std::int64_t now, bool others_under_way) {
    Group& steps = groups_[at(group)];
    const std::int64_t last = std::exchange(steps.last, others_under_way ? now : -1);
    const std::int64_t posted = std::exchange(steps.posted, -1);
    if (windows_.measures()) {
      if (posted >= windows_.from()) {
        first_.add(1, now - posted);
        ++window_firsts_;
      }
      if (std::exchange(steps.window, windows_.count()) != windows_.count()) ++window_steppers_;
    }
    if (last < 0 || !windows_.measures()) return -1;
    steps.pace.add(1, now - last);
    return now - last;
  }
  const Pace& pace(std::int32_t group) const { return groups_[at(group)].pace; }
  /// When a step ends that would end at `end`: no sooner than at the pace of steps.
  std::int64_t end_of(std::int32_t group, std::int64_t now, std::int64_t end) {
    Group& steps = groups_[at(group)];
    if (windows_.skips(now) && steps.pace.known())
      end = steps.end > now ? steps.end + steps.pace.time_for(1)
                            : std::max(end, now + first_.time_for(1));
    return steps.end = end;
  }
  /// Moves of the workgroup are results of products, which take their time.
  bool computes(std::int32_t group) const { return groups_[at(group)].end > 0; }

 private:
  struct Group {
    Pace pace;
    std::int64_t posted = -1;  ///< fs: one before which none is under way
    int window = -1;           ///< in which one has ended last
    std::int64_t last = -1;
    std::int64_t end = 0;  ///< of the latest that has started
  };
  const Windows& windows_;
  std::vector<Group> groups_;
  Pace first_;  ///< before which none is under way, from their posting on
  std::int64_t window_steppers_ = 0, window_firsts_ = 0;  ///< workgroups with steps, first steps
};

}  // namespace hemiola::sim::sampled
