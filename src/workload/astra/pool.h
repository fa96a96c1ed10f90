// Things that come and go by the million, by number.
#pragma once

#include <cstdint>
#include <vector>

namespace hemiola::workload::astra {

/// Numbers that are given back are taken again, and what has them keeps its memory.
template <typename Thing>
class Pool {
 public:
  std::uint32_t take() {
    if (unused_.empty()) {
      all_.emplace_back();
      return static_cast<std::uint32_t>(all_.size() - 1);
    }
    const std::uint32_t number = unused_.back();
    unused_.pop_back();
    return number;
  }
  void give_back(std::uint32_t number) { unused_.push_back(number); }

  Thing& operator[](std::uint32_t number) { return all_[number]; }
  const Thing& operator[](std::uint32_t number) const { return all_[number]; }

 private:
  std::vector<Thing> all_;
  std::vector<std::uint32_t> unused_;
};

}  // namespace hemiola::workload::astra
