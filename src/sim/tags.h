// Tags of a set-associative cache: replacement state only, no data.
#pragma once

#include <cstdint>
#include <vector>

namespace hemiola::sim {

/// Least recently used replacement. Lines are numbers (address / line size). State changes only in
/// access(), in the order of the calls.
class Tags {
 public:
  struct Outcome {
    bool hit = false;
    bool evicted_dirty = false;
    std::int64_t victim = -1;  ///< the dirty line that had to leave
  };

  Tags() = default;
  /// No cache at all when `lines` is 0: every access misses and nothing is kept.
  Tags(std::int64_t lines, std::int64_t ways)
      : ways_(lines > 0 ? (ways < 1 ? 1 : (ways > lines ? lines : ways)) : 0),
        sets_(ways_ > 0 ? lines / ways_ : 0) {}

  bool exists() const { return sets_ > 0; }

  /// Looks a line up and makes it the most recent one; a miss allocates it. `write` marks it dirty.
  Outcome access(std::int64_t line, bool write) {
    Outcome outcome;
    if (!exists()) return outcome;
    if (lines_.empty()) {
      lines_.resize(static_cast<std::size_t>(sets_ * ways_));
      stamps_.resize(lines_.size());
    }
    const auto first = static_cast<std::size_t>(set_of(line) * ways_);
    std::int64_t* lines = &lines_[first];
    std::uint64_t* stamps = &stamps_[first];
    for (std::int64_t way = 0; way < ways_; ++way) {
      if (lines[way] != line || stamps[way] == 0) continue;
      stamps[way] = ++clock_ << 1 | (stamps[way] & 1) | (write ? 1 : 0);
      outcome.hit = true;
      return outcome;
    }
    std::int64_t victim = 0;
    for (std::int64_t way = 1; way < ways_; ++way) {
      if (stamps[way] < stamps[victim]) victim = way;
    }
    if ((stamps[victim] & 1) != 0) {
      outcome.evicted_dirty = true;
      outcome.victim = lines[victim];
    }
    lines[victim] = line;
    stamps[victim] = ++clock_ << 1 | (write ? 1 : 0);
    return outcome;
  }

  /// Forgets everything (an acquire invalidates an L1). Cheap when nothing was kept.
  void clear() {
    lines_.clear();
    stamps_.clear();
  }

 private:
  std::int64_t set_of(std::int64_t line) const {
    const auto x = static_cast<std::uint64_t>(line);
    return static_cast<std::int64_t>((x ^ (x >> 13) ^ (x >> 27)) %
                                     static_cast<std::uint64_t>(sets_));
  }
  std::int64_t ways_ = 0;
  std::int64_t sets_ = 0;
  std::uint64_t clock_ = 0;
  // By set, then way. A stamp is the time of the last use, with the dirty bit lowest; 0: empty.
  std::vector<std::int64_t> lines_;
  std::vector<std::uint64_t> stamps_;
};

}  // namespace hemiola::sim
