// Objects with stable addresses, numbered from 0, whose numbers are used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hemiola::sim {

template <typename T>
class Pool {
 public:
  T& operator[](std::size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  const T& operator[](std::size_t i) const { return blocks_[i / kBlock][i % kBlock]; }

  /// A default-initialised object.
  std::int32_t take() {
    if (free_.empty()) {
      const auto first = static_cast<std::int32_t>(blocks_.size() * kBlock);
      blocks_.push_back(std::make_unique<T[]>(kBlock));
      for (std::int32_t i = static_cast<std::int32_t>(kBlock) - 1; i >= 0; --i)
        free_.push_back(first + i);
    }
    const std::int32_t id = free_.back();
    free_.pop_back();
    (*this)[static_cast<std::size_t>(id)] = T{};
    return id;
  }
  void give_back(std::int32_t id) { free_.push_back(id); }

 private:
  static constexpr std::size_t kBlock = 1024;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::vector<std::int32_t> free_;
};

}  // namespace hemiola::sim
