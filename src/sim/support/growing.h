// An array that grows while others read it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <memory>

namespace hemiola::sim {

/// Elements stay where they are. One thread at a time may reserve(); whoever was told of an element
/// since may read it.
template <typename T>
class Growing {
 public:
  T& operator[](std::size_t i) { return parts_[part_of(i)][i + 1 - begin_of(part_of(i))]; }
  const T& operator[](std::size_t i) const {
    return parts_[part_of(i)][i + 1 - begin_of(part_of(i))];
  }
  /// There is an element `i`, as it is by default.
  void reserve(std::size_t i) {
    std::unique_ptr<T[]>& part = parts_[part_of(i)];
    if (part == nullptr) part = std::make_unique<T[]>(begin_of(part_of(i)));
  }

 private:
  // Part k has 2^k elements, the first of them number 2^k - 1.
  static std::size_t part_of(std::size_t i) {
    return static_cast<std::size_t>(std::bit_width(i + 1)) - 1;
  }
  static std::size_t begin_of(std::size_t part) { return std::size_t{1} << part; }

  std::array<std::unique_ptr<T[]>, 48> parts_;
};

}  // namespace hemiola::sim
