// The event queue of the reference engine: events come out in order of (time, order, sequence).
//
// A wheel of short buckets holds the near future, a heap the rest. Only the bucket that time is in
// is ordered: sorted when it is opened, with a small heap for what is pushed into it later. Both
// stay in the first-level cache; that is what makes it fast (a single heap of all events spends its
// time on cache misses).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hemiola::sim {

/// What happens when; `kind` and the two operands mean something to the engine only.
struct Event {
  std::int64_t time = 0;       ///< fs
  std::uint64_t sequence = 0;  ///< order of pushing: decides inside one input only
  std::uint32_t order = 0;  ///< (phase, order tag): static and relative, see docs/model.md "Order"
  std::int32_t kind = 0;
  std::int32_t a = 0;
  std::int32_t b = 0;
};

class EventQueue {
 public:
  EventQueue() : buckets_(kBuckets) {}

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// `time` must not be before the last event that was popped.
  void push(std::int64_t time, std::uint32_t order, std::int32_t kind, std::int32_t a,
            std::int32_t b = 0) {
    push_as(next_++, time, order, kind, a, b);
  }
  /// The same with a place of its own among events of its time and order.
  void push_as(std::uint64_t sequence, std::int64_t time, std::uint32_t order, std::int32_t kind,
               std::int32_t a, std::int32_t b = 0) {
    ++size_;
    place({time, sequence, order, kind, a, b});
  }

  /// Whether the next pop() has to open a bucket; open() does it. For prefetching: what stands in
  /// it, and what stands in the one that comes next, as far as it is known.
  bool closed() const { return current_.empty() && added_.empty(); }
  void open() {
    while (closed()) advance();
  }
  const std::vector<Event>& bucket() const { return current_; }
  const std::vector<Event>& next_bucket() const {
    const std::int64_t next = next_occupied();
    return next == INT64_MAX ? none_ : buckets_[static_cast<std::size_t>(next % kBuckets)];
  }

  Event pop() {
    open();
    --size_;
    if (!added_.empty() && (current_.empty() || Later{}(current_.back(), added_.front()))) {
      std::pop_heap(added_.begin(), added_.end(), Later{});
      const Event event = added_.back();
      added_.pop_back();
      return event;
    }
    const Event event = current_.back();
    current_.pop_back();
    return event;
  }

 private:
  static constexpr int kShift = 18;  // a bucket is 2^18 fs, about a quarter of a nanosecond
  static constexpr std::int64_t kBuckets = 1 << 13;  // the wheel spans 2.1 us

  struct Later {  // a functor: std::push_heap inlines it
    bool operator()(const Event& x, const Event& y) const {
      if (x.time != y.time) return x.time > y.time;
      if (x.order != y.order) return x.order > y.order;
      return x.sequence > y.sequence;
    }
  };

  void place(const Event& event) {
    const std::int64_t bucket = event.time >> kShift;
    if (bucket <= now_) {
      added_.push_back(event);
      std::push_heap(added_.begin(), added_.end(), Later{});
    } else if (bucket < now_ + kBuckets) {
      const auto slot = static_cast<std::size_t>(bucket % kBuckets);
      buckets_[slot].push_back(event);
      occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
    } else {
      far_.push_back(event);
      std::push_heap(far_.begin(), far_.end(), Later{});
    }
  }

  // Moves to the next bucket that holds events, and fetches what has come near.
  void advance() {
    const std::int64_t wheel = next_occupied();
    const std::int64_t far = far_.empty() ? INT64_MAX : far_.front().time >> kShift;
    now_ = std::min(wheel, far);
    const auto slot = static_cast<std::size_t>(now_ % kBuckets);
    if (wheel == now_) {
      current_.swap(buckets_[slot]);
      occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
      std::ranges::sort(current_, Later{});
    }
    while (!far_.empty() && far_.front().time >> kShift < now_ + kBuckets) {
      std::pop_heap(far_.begin(), far_.end(), Later{});
      const Event event = far_.back();
      far_.pop_back();
      place(event);
    }
  }

  std::int64_t next_occupied() const {
    const auto start = static_cast<std::size_t>((now_ + 1) % kBuckets);
    constexpr std::size_t words = kBuckets / 64;
    for (std::size_t i = 0; i <= words; ++i) {
      const std::size_t word = (start / 64 + i) % words;
      std::uint64_t bits = occupied_[word];
      if (i == 0) bits &= ~std::uint64_t{0} << (start % 64);
      if (i == words) bits &= start % 64 == 0 ? 0 : (std::uint64_t{1} << (start % 64)) - 1;
      if (bits == 0) continue;
      const auto slot = static_cast<std::int64_t>(word * 64) + std::countr_zero(bits);
      const std::int64_t ahead = (slot - static_cast<std::int64_t>(start) + kBuckets) % kBuckets;
      return now_ + 1 + ahead;
    }
    return INT64_MAX;
  }

  std::vector<Event> current_;  ///< of the bucket `now_`: sorted, the next one last
  std::vector<Event> added_;    ///< heap: pushed into it, or due before it
  std::vector<Event> none_;
  std::vector<std::vector<Event>> buckets_;
  std::array<std::uint64_t, kBuckets / 64> occupied_{};
  std::vector<Event> far_;  ///< heap: beyond the wheel
  std::int64_t now_ = 0;
  std::size_t size_ = 0;
  std::uint64_t next_ = 0;
};

}  // namespace hemiola::sim
