// The event queue of the reference engine: a 4-ary heap ordered by (time, order, sequence).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hemiola::sim {

/// What happens when; `kind` and the two operands mean something to the engine only.
struct Event {
  std::int64_t time = 0;      ///< fs
  std::uint64_t sequence = 0; ///< order of pushing: decides inside one stream only
  std::uint32_t order = 0;    ///< (phase, stream tag): static and relative, see docs/model.md "Order"
  std::int32_t kind = 0;
  std::int32_t a = 0;
  std::int32_t b = 0;

  friend bool operator<(const Event& x, const Event& y) {
    if (x.time != y.time) return x.time < y.time;
    if (x.order != y.order) return x.order < y.order;
    return x.sequence < y.sequence;
  }
};

class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }

  void push(std::int64_t time, std::uint32_t order, std::int32_t kind, std::int32_t a, std::int32_t b = 0) {
    heap_.push_back({time, next_++, order, kind, a, b});
    std::size_t i = heap_.size() - 1;
    const Event event = heap_[i];
    while (i > 0) {
      const std::size_t parent = (i - 1) / 4;
      if (!(event < heap_[parent])) break;
      heap_[i] = heap_[parent];
      i = parent;
    }
    heap_[i] = event;
  }

  Event pop() {
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t n = heap_.size();
    if (n > 0) {
      std::size_t i = 0;
      for (;;) {
        const std::size_t first = 4 * i + 1;
        if (first >= n) break;
        std::size_t best = first;
        const std::size_t end = first + 4 < n ? first + 4 : n;
        for (std::size_t child = first + 1; child < end; ++child) {
          if (heap_[child] < heap_[best]) best = child;
        }
        if (!(heap_[best] < last)) break;
        heap_[i] = heap_[best];
        i = best;
      }
      heap_[i] = last;
    }
    return top;
  }

 private:
  std::vector<Event> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace hemiola::sim
