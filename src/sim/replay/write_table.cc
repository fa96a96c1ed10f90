#include "sim/replay/write_table.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace hemiola::sim {
namespace {

using Entry = std::pair<std::int64_t, std::int32_t>;  // time, number

class Heap : public WriteTable {
 public:
  void add(std::int64_t time, std::int32_t number) override {
    entries_.emplace_back(time, number);
    std::push_heap(entries_.begin(), entries_.end(), std::greater<>());
  }
  std::int64_t next() const override {
    return entries_.empty() ? INT64_MAX : entries_.front().first;
  }
  std::int32_t take(std::int64_t end) override {
    if (next() >= end) return -1;
    std::pop_heap(entries_.begin(), entries_.end(), std::greater<>());
    const std::int32_t number = entries_.back().second;
    entries_.pop_back();
    return number;
  }
  bool empty() const override { return entries_.empty(); }

 private:
  std::vector<Entry> entries_;
};

class Polled : public WriteTable {
 public:
  explicit Polled(Time cycle) : cycle_(std::max<std::int64_t>(1, cycle.fs)) {}

  void add(std::int64_t time, std::int32_t number) override {
    const Entry entry(time, number);
    // The head stands at the back. Tables are filled once, in any order, and grow rarely.
    if (filling_) {
      entries_.push_back(entry);
      return;
    }
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry, std::greater<>()),
                    entry);
  }
  std::int64_t next() const override { return entries_.empty() ? INT64_MAX : now_; }
  std::int32_t take(std::int64_t end) override {
    if (std::exchange(filling_, false)) std::ranges::sort(entries_, std::greater<>());
    // [now_, now_ + cycle_) is the present cycle; what is due in it comes out at its own time.
    for (; !entries_.empty(); now_ += cycle_) {
      ++polls_;
      const std::int64_t due = entries_.back().first;
      if (due < now_ + cycle_ && due < end) {
        const std::int32_t number = entries_.back().second;
        entries_.pop_back();
        return number;
      }
      if (now_ + cycle_ >= end) break;
    }
    return -1;
  }
  bool empty() const override { return entries_.empty(); }
  std::int64_t polls() const override { return polls_; }

 private:
  const std::int64_t cycle_;
  std::int64_t now_ = 0;  ///< fs: the present cycle begins
  std::int64_t polls_ = 0;
  bool filling_ = true;
  std::vector<Entry> entries_;  ///< the first one last
};

}  // namespace

std::unique_ptr<WriteTable> make_write_table(TableKind kind, Time cycle) {
  if (kind == TableKind::polled) return std::make_unique<Polled>(cycle);
  return std::make_unique<Heap>();
}

}  // namespace hemiola::sim
