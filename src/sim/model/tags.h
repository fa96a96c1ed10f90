// Tags of a set-associative cache: replacement state only, no data.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/modulo.h"
#include "sim/support/prefetch.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

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
        stride_((ways_ + kTogether - 1) / kTogether * kTogether),
        last_(4 * (static_cast<int>(ways_) - 1)),
        sets_(ways_ > 0 ? static_cast<std::size_t>(lines) / ways_ : 0),
        set_of_(static_cast<std::uint32_t>(std::max<std::size_t>(1, sets_))) {}

  bool exists() const { return sets_ > 0; }

  /// Looks a line up and makes it the most recent one; a miss allocates it. `write` marks it dirty.
  Outcome access(std::int32_t line, bool write) {
    Outcome outcome;
    if (!exists()) return outcome;
    if (held_.empty()) [[unlikely]]
      allocate();
    const std::size_t set = set_at(line);
    std::uint32_t* const ways = &held_[set * stride_];
    const std::uint32_t wanted = static_cast<std::uint32_t>(line) << 1;
    std::size_t way = find(ways, wanted);
    outcome.hit = way != kNowhere;
    way = orders_.empty() ? move_first(ways, way) : make_first(orders_[set], way);
    const std::uint32_t held = std::exchange(ways[way], wanted | (write ? 1 : 0));
    if (outcome.hit) {
      ways[way] |= held & 1;
    } else if ((held & 1) != 0 && held != kEmpty) {
      outcome.evicted_dirty = true;
      outcome.victim = static_cast<std::int32_t>(held >> 1);
    }
    return outcome;
  }

  /// The line is no longer there.
  void forget(std::int32_t line) {
    if (held_.empty()) return;
    const std::size_t set = set_at(line);
    std::uint32_t* const ways = &held_[set * stride_];
    const std::size_t way = find(ways, static_cast<std::uint32_t>(line) << 1);
    if (way == kNowhere) return;
    ways[way] = kEmpty;
    if (orders_.empty())
      std::rotate(ways + way, ways + way + 1, ways + ways_);
    else
      make_last(orders_[set], way);
  }

  void prefetch(std::int32_t line) const {
    if (held_.empty() || line < 0) return;
    const std::size_t set = set_of(line);
    prefetch_line(&held_[set * stride_]);
    if (!orders_.empty()) prefetch_line(&orders_[set]);
  }

  /// Forgets everything (an acquire invalidates an L1): every set when it is used next.
  void clear() {
    if (held_.empty()) return;
    cleared_.resize(sets_);
    ++clears_;
  }

 private:
  static constexpr std::uint32_t kEmpty = ~0U;
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  static constexpr std::size_t kTogether = 4;  ///< ways that are compared at a time
  // The order of up to 16 ways is a word: four bits each, the most recently used one lowest. Ways
  // that hold nothing come last.
  static constexpr std::size_t kOrdered = 16;
  static constexpr std::uint64_t kInOrder = 0xFEDC'BA98'7654'3210;
  static constexpr std::uint64_t kEach = 0x1111'1111'1111'1111;

  [[gnu::noinline]] void allocate() {
    held_.resize(sets_ * stride_, kEmpty);
    if (ways_ <= kOrdered) orders_.resize(sets_, kInOrder);
  }
  std::size_t set_of(std::int32_t line) const {
    const auto x = static_cast<std::uint32_t>(line);
    return set_of_(x ^ (x >> 13) ^ (x >> 27));
  }
  /// Emptied if that is still to be done.
  std::size_t set_at(std::int32_t line) {
    const std::size_t set = set_of(line);
    if (!cleared_.empty() && cleared_[set] != clears_) {
      cleared_[set] = clears_;
      std::fill_n(&held_[set * stride_], stride_, kEmpty);
    }
    return set;
  }
  /// The way that holds it, dirty or not.
  std::size_t find(const std::uint32_t* ways, std::uint32_t wanted) const {
#ifdef __SSE2__
    const __m128i all = _mm_set1_epi32(static_cast<int>(wanted)), clean = _mm_set1_epi32(-2);
    const auto equal = [&](std::size_t at) {
      const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(ways + at));
      return _mm_cmpeq_epi32(_mm_and_si128(four, clean), all);
    };
    if (stride_ == kOrdered) {
      const __m128i low = _mm_packs_epi32(equal(0), equal(4)),
                    high = _mm_packs_epi32(equal(8), equal(12));
      const auto found = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
      return found == 0 ? kNowhere : static_cast<std::size_t>(std::countr_zero(found));
    }
    for (std::size_t at = 0; at < stride_; at += kTogether) {
      const auto found = static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(equal(at))));
      if (found != 0) return at + static_cast<std::size_t>(std::countr_zero(found));
    }
#else
    for (std::size_t way = 0; way < ways_; ++way)
      if ((ways[way] & ~1U) == wanted) return way;
#endif
    return kNowhere;
  }

  static int bit_of(std::uint64_t order, std::uint64_t way) {
    const std::uint64_t zero = order ^ way * kEach;  // its four bits are
    return (std::countr_zero((zero - kEach) & ~zero & kEach << 3)) & ~3;
  }
  /// A way, or the last one, becomes the most recently used one. Which it is.
  std::size_t make_first(std::uint64_t& order, std::size_t way) const {
    int bit = last_;
    if (way == kNowhere)
      way = order >> bit & 15;
    else
      bit = bit_of(order, way);
    const std::uint64_t moved = (std::uint64_t{16} << bit) - 1;
    order ^= (order ^ (order << 4 | way)) & moved;
    return way;
  }
  void make_last(std::uint64_t& order, std::uint64_t way) const {
    const int bit = bit_of(order, way);
    const std::uint64_t moved = (std::uint64_t{1} << last_) - (std::uint64_t{1} << bit);
    const std::uint64_t kept = ~(moved | std::uint64_t{15} << last_);
    order = (order & kept) | (order >> 4 & moved) | way << last_;
  }
  /// Wider sets are kept in the order of use.
  std::size_t move_first(std::uint32_t* ways, std::size_t way) const {
    const std::size_t end = std::min(way, ways_ - 1);
    const std::uint32_t moved = ways[end];
    std::move_backward(ways, ways + end, ways + end + 1);
    ways[0] = moved;
    return 0;
  }

  std::size_t ways_ = 0;
  std::size_t stride_ = 0;  ///< of a set; what comes behind its ways is always empty
  int last_ = 0;            ///< bit of the least recently used way in an order
  std::size_t sets_ = 0;
  Modulo set_of_;
  std::vector<std::uint32_t> held_;    ///< set by set: line << 1 | dirty
  std::vector<std::uint64_t> orders_;  ///< by set; none: of wider sets
  std::uint32_t clears_ = 0;
  std::vector<std::uint32_t> cleared_;  ///< by set: how many clears it knows of; none: no clears
};

}  // namespace hemiola::sim
