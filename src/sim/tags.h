// Tags of a set-associative cache: replacement state only, no data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

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
      : ways_(lines > 0 ? (ways < 1 ? 1 : (ways > lines ? lines : ways)) : 0),
        sets_(ways_ > 0 ? lines / ways_ : 0) {}

  bool exists() const { return sets_ > 0; }

  /// Looks a line up and makes it the most recent one; a miss allocates it. `write` marks it dirty.
  Outcome access(std::int32_t line, bool write) {
    Outcome outcome;
    if (!exists()) return outcome;
    if (ways_of_.empty()) ways_of_.resize(static_cast<std::size_t>(sets_ * ways_), kEmpty);
    const auto wanted = static_cast<std::uint32_t>(line) << 1;
    std::uint32_t* const set = &ways_of_[static_cast<std::size_t>(set_of(line) * ways_)];
    std::uint32_t* way = set;
    std::uint32_t* const last = set + ways_ - 1;
    while (way != last && (*way & ~1U) != wanted) ++way;
    const std::uint32_t found = *way;
    outcome.hit = (found & ~1U) == wanted && found != kEmpty;
    if (!outcome.hit && found != kEmpty && (found & 1) != 0) {
      outcome.evicted_dirty = true;
      outcome.victim = static_cast<std::int32_t>(found >> 1);
    }
    std::copy_backward(set, way, way + 1);
    *set = wanted | (outcome.hit ? found & 1 : 0) | (write ? 1 : 0);
    return outcome;
  }

  /// The line is no longer there.
  void forget(std::int32_t line) {
    if (ways_of_.empty()) return;
    const auto wanted = static_cast<std::uint32_t>(line) << 1;
    std::uint32_t* const set = &ways_of_[static_cast<std::size_t>(set_of(line) * ways_)];
    std::uint32_t* const end = set + ways_;
    std::uint32_t* const way =
        std::find_if(set, end, [&](std::uint32_t held) { return (held & ~1U) == wanted; });
    if (way == end || *way == kEmpty) return;
    *std::copy(way + 1, end, way) = kEmpty;
  }

  void prefetch(std::int32_t line) const {
    if (!ways_of_.empty() && line >= 0)
      __builtin_prefetch(&ways_of_[static_cast<std::size_t>(set_of(line) * ways_)]);
  }

  /// Forgets everything (an acquire invalidates an L1). Cheap when nothing was kept.
  void clear() { ways_of_.clear(); }

 private:
  static constexpr std::uint32_t kEmpty = ~0U;

  /// Sets of 16 ways are one cache line of the host.
  template <typename T>
  struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <typename U>
    Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t n) {
      return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64}));
    }
    void deallocate(T* p, std::size_t) { ::operator delete (p, std::align_val_t{64}); }
    bool operator==(const Aligned&) const { return true; }
  };

  std::int64_t set_of(std::int32_t line) const {
    const auto x = static_cast<std::uint32_t>(line);
    return (x ^ (x >> 13) ^ (x >> 27)) % static_cast<std::uint32_t>(sets_);
  }
  std::int64_t ways_ = 0;
  std::int64_t sets_ = 0;
  /// By set, from the most to the least recently used: line << 1 | dirty.
  std::vector<std::uint32_t, Aligned<std::uint32_t>> ways_of_;
};

}  // namespace hemiola::sim
