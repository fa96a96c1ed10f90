// Tags of a set-associative cache: replacement state only, no data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/modulo.h"

namespace hemiola::sim {

/// Least recently used replacement. Lines are numbers (address / line size). State
/// changes only in access(), in the order of the calls.
class Tags {
 public:
  struct Outcome {
    bool hit = false;
    bool evicted_dirty = false;
    std::int32_t victim = -1;  ///< the dirty line that had to leave
  };

  Tags() = default;
  /// No cache at all when `lines` is 0: every access misses and nothing is kept.
  Tags(std::int64_t lines, std::int64_t ways)
      : ways_(static_cast<std::size_t>(lines > 0 ? std::clamp<std::int64_t>(ways, 1, lines) : 0)),
        sets_(ways_ > 0 ? static_cast<std::size_t>(lines) / ways_ : 0),
        set_of_(static_cast<std::uint32_t>(std::max<std::size_t>(1, sets_))) {}

  bool exists() const { return sets_ > 0; }

  /// Looks a line up and makes it the most recent one; a miss allocates it. `write` marks it dirty.
  Outcome access(std::int32_t line, bool write) {
    Outcome outcome;
    if (!exists()) return outcome;
    if (held_.empty()) [[unlikely]]
      held_.resize(sets_ * ways_, kEmpty);
    const auto wanted = static_cast<std::uint32_t>(line) << 1;
    std::uint32_t* const first = first_of(set_of(line));
    const std::uint32_t* const last = first + (ways_ - 1) * sets_;
    // What is more recent than the line moves one place on, into the line's or out of the cache.
    // Places that hold nothing come behind those that hold something.
    std::uint32_t* way = first;
    std::uint32_t found = std::exchange(*way, wanted | (write ? 1 : 0));
    while ((found & ~1U) != wanted && found != kEmpty && way != last) {
      way += sets_;
      found = std::exchange(*way, found);
    }
    if (found == kEmpty) return outcome;
    outcome.hit = (found & ~1U) == wanted;
    if (outcome.hit) {
      *first |= found & 1;
    } else if ((found & 1) != 0) {
      outcome.evicted_dirty = true;
      outcome.victim = static_cast<std::int32_t>(found >> 1);
    }
    return outcome;
  }

  /// The line is no longer there.
  void forget(std::int32_t line) {
    if (held_.empty()) return;
    const auto wanted = static_cast<std::uint32_t>(line) << 1;
    std::uint32_t* way = first_of(set_of(line));
    const std::uint32_t* const end = way + ways_ * sets_;
    while (way != end && (*way & ~1U) != wanted) way += sets_;
    if (way == end || *way == kEmpty) return;
    for (; way + sets_ != end; way += sets_) *way = way[sets_];
    *way = kEmpty;
  }

  void prefetch(std::int32_t line) const {
    if (!held_.empty() && line >= 0) __builtin_prefetch(&held_[set_of(line)], 1);
  }

  /// Forgets everything (an acquire invalidates an L1): every set when it is used next.
  void clear() {
    if (held_.empty()) return;
    cleared_.resize(sets_);
    ++clears_;
  }

 private:
  static constexpr std::uint32_t kEmpty = ~0U;

  std::uint32_t* first_of(std::size_t set) {
    std::uint32_t* const first = &held_[set];
    if (!cleared_.empty() && cleared_[set] != clears_) {
      cleared_[set] = clears_;
      for (std::size_t way = 0; way < ways_ && first[way * sets_] != kEmpty; ++way)
        first[way * sets_] = kEmpty;
    }
    return first;
  }
  std::size_t set_of(std::int32_t line) const {
    const auto x = static_cast<std::uint32_t>(line);
    return set_of_(x ^ (x >> 13) ^ (x >> 27));
  }

  std::size_t ways_ = 0;
  std::size_t sets_ = 0;
  Modulo set_of_;
  /// The most recently used lines of all sets, then the second ones, ...: line << 1 | dirty. Lines
  /// that follow each other are used together: so they are together in the host's caches, too.
  std::vector<std::uint32_t> held_;
  std::uint32_t clears_ = 0;
  std::vector<std::uint32_t> cleared_;  ///< by set: how many clears it knows of; none: no clears
};

}  // namespace hemiola::sim
