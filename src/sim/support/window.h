// A queue whose elements are used again: what they have allocated stays.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace hemiola::sim {

/// References to elements hold until they are popped.
template <typename T>
class Window {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return *ring_[(first_ + i) & (ring_.size() - 1)]; }
  T& front() { return (*this)[0]; }

  /// One more at the end, as it was left by whoever popped it, or new.
  T& add() {
    if (size_ == ring_.size()) grow();
    return (*this)[size_++];
  }
  void pop_front() {
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }

 private:
  void grow() {
    std::vector<std::unique_ptr<T>> larger(ring_.empty() ? 4 : 2 * ring_.size());
    for (std::size_t i = 0; i < ring_.size(); ++i)
      larger[i] = std::move(ring_[(first_ + i) & (ring_.size() - 1)]);
    for (std::unique_ptr<T>& element : larger)
      if (element == nullptr) element = std::make_unique<T>();
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<std::unique_ptr<T>> ring_;  ///< a power of two
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace hemiola::sim
