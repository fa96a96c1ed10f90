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
    if (entries_.empty()) entries_.resize(static_cast<std::size_t>(sets_ * ways_));
    Entry* set = &entries_[static_cast<std::size_t>(set_of(line) * ways_)];
    Entry* victim = set;
    for (std::int64_t way = 0; way < ways_; ++way) {
      Entry& entry = set[way];
      if (entry.used != 0 && entry.line == line) {
        entry.used = ++clock_;
        entry.dirty = entry.dirty || write;
        outcome.hit = true;
        return outcome;
      }
      if (entry.used < victim->used) victim = &entry;
    }
    if (victim->used != 0 && victim->dirty) {
      outcome.evicted_dirty = true;
      outcome.victim = victim->line;
    }
    *victim = {line, ++clock_, write};
    return outcome;
  }

  /// Forgets everything (an acquire invalidates an L1). Cheap when nothing was kept.
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::int64_t line = 0;
    std::uint64_t used = 0;  ///< 0: empty
    bool dirty = false;
  };
  std::int64_t set_of(std::int64_t line) const {
    const auto x = static_cast<std::uint64_t>(line);
    return static_cast<std::int64_t>((x ^ (x >> 13) ^ (x >> 27)) %
                                     static_cast<std::uint64_t>(sets_));
  }
  std::int64_t ways_ = 0;
  std::int64_t sets_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace hemiola::sim
