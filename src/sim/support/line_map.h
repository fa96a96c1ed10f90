// A hash table from line numbers to small values: open addressing, linear probing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/index.h"
#include "sim/support/prefetch.h"

namespace hemiola::sim {

/// Pointers and references to values hold until the next insertion or erasure.
template <typename Value>
class LineMap {
 public:
  Value* find(std::int64_t line) {
    if (size_ == 0) return nullptr;
    for (std::size_t i = home(line);; i = (i + 1) & mask_) {
      if (slots_[i].line == line) return &slots_[i].value;
      if (slots_[i].line == kFree) return nullptr;
    }
  }

  /// The value of the line, default-constructed if it had none.
  Value& operator[](std::int64_t line) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    std::size_t i = home(line);
    while (slots_[i].line != kFree && slots_[i].line != line) i = (i + 1) & mask_;
    if (slots_[i].line == kFree) {
      slots_[i].line = line;
      ++size_;
    }
    return slots_[i].value;
  }

  void erase(std::int64_t line) {
    if (size_ == 0) return;
    std::size_t i = home(line);
    while (slots_[i].line != line) {
      if (slots_[i].line == kFree) return;
      i = (i + 1) & mask_;
    }
    --size_;
    // Move back what probed past the hole.
    for (std::size_t j = (i + 1) & mask_; slots_[j].line != kFree; j = (j + 1) & mask_) {
      const std::size_t wanted = home(slots_[j].line);
      if (((j - wanted) & mask_) < ((j - i) & mask_)) continue;
      slots_[i] = std::move(slots_[j]);
      i = j;
    }
    slots_[i] = Slot{};
  }

  void prefetch(std::int64_t line) const {
    if (size_ != 0) prefetch_line(&slots_[home(line)]);
  }

  /// In no particular order, which is always the same for the same lines in as many slots.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (const Slot& slot : slots_)
      if (slot.line != kFree) visit(slot.line, slot.value);
  }
  template <typename Visit>
  void for_each(Visit visit) {
    for (Slot& slot : slots_)
      if (slot.line != kFree) visit(slot.line, slot.value);
  }

 private:
  static constexpr std::int64_t kFree = INT64_MIN;
  struct Slot {
    std::int64_t line = kFree;
    Value value{};
  };
  std::size_t home(std::int64_t line) const {
    return index(static_cast<std::uint64_t>(line) * 0x9E3779B97F4A7C15ULL >> 32) & mask_;
  }
  void grow() {
    std::vector<Slot> old =
        std::exchange(slots_, std::vector<Slot>(slots_.empty() ? 16 : 2 * slots_.size()));
    mask_ = slots_.size() - 1;
    size_ = 0;
    for (Slot& slot : old)
      if (slot.line != kFree) (*this)[slot.line] = std::move(slot.value);
  }
  std::vector<Slot> slots_;
  std::size_t mask_ = 0;  ///< of their number, a power of two
  std::size_t size_ = 0;
};

}  // namespace hemiola::sim
