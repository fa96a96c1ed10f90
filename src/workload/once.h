// Values that are kept once: which index an equal one has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace hemiola::workload {

/// A hash table of indices into a list that somebody else keeps, for values by the millions. Linear
/// probing, at most half full.
class OnceIndex {
 public:
  /// The index of the value for which `is_equal(index)`; if there is none, what `add()` returns.
  template <typename IsEqual, typename Add>
  std::uint32_t find(std::uint64_t hash, const IsEqual& is_equal, const Add& add) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    std::size_t at = place(hash);
    for (; slots_[at].index != kNone; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].hash == static_cast<std::uint32_t>(hash) && is_equal(slots_[at].index))
        return slots_[at].index;
    slots_[at] = {static_cast<std::uint32_t>(hash), add()};
    ++count_;
    return slots_[at].index;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t index = kNone;
  };

  /// By the lower half, which slots keep.
  std::size_t place(std::uint64_t hash) const {
    return static_cast<std::uint32_t>(hash) * std::size_t{0x9E3779B1} & (slots_.size() - 1);
  }

  void grow() {
    constexpr std::size_t kFirst = 64;
    std::vector<Slot> old(slots_.empty() ? kFirst : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index == kNone) continue;
      std::size_t at = place(slot.hash);
      while (slots_[at].index != kNone) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// Indices into a list, of which it knows what it has put there.
template <class Value>
class OnceList {
 public:
  /// Of the value that is equal; of a new one at the end of `values`, which is the same each time.
  std::int32_t find(std::vector<Value>& values, const Value& value) {
    const auto [at, is_new] = known_.emplace(value, static_cast<std::int32_t>(values.size()));
    if (is_new) values.push_back(value);
    return at->second;
  }

 private:
  std::map<Value, std::int32_t> known_;
};

}  // namespace hemiola::workload
