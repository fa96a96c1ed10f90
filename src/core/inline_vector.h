// A vector of small trivial values that keeps the first ones in itself: coordinates of a tensor
// have two or three entries, and a heap block for each of them is most of what areas would cost.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace hemiola {

/// As std::vector, for what of it is used. Up to `Inline` values are stored without the heap.
template <class T, std::size_t Inline>
class InlineVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InlineVector() = default;
  explicit InlineVector(std::size_t count, T value = {}) { assign(count, value); }
  InlineVector(std::initializer_list<T> values) { append(values.begin(), values.size()); }
  /*implicit*/ InlineVector(const std::vector<T>& values) { append(values.data(), values.size()); }
  InlineVector(const InlineVector& other) { append(other.data(), other.size()); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this == &other) return *this;
    size_ = 0;
    append(other.data(), other.size());
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return heap_ ? heap_.get() : inline_; }
  const T* data() const { return heap_ ? heap_.get() : inline_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void clear() { size_ = 0; }
  void reserve(std::size_t count) {
    if (count > capacity_) grow(count);
  }
  void push_back(T value) {
    if (size_ == capacity_) grow(2 * capacity_);
    data()[size_++] = value;
  }
  T* erase(T* at) {
    std::copy(at + 1, end(), at);
    --size_;
    return at;
  }
  void assign(std::size_t count, T value) {
    reserve(count);
    std::fill_n(data(), count, value);
    size_ = count;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const InlineVector& a, const InlineVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  void append(const T* values, std::size_t count) {
    reserve(size_ + count);
    if (count > 0) std::memcpy(data() + size_, values, count * sizeof(T));
    size_ += count;
  }
  void grow(std::size_t count) {
    auto more = std::make_unique<T[]>(count);
    if (size_ > 0) std::memcpy(more.get(), data(), size_ * sizeof(T));
    heap_ = std::move(more);
    capacity_ = count;
  }
  void take(InlineVector& other) {
    heap_ = std::move(other.heap_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, Inline);
    if (!heap_ && size_ > 0) std::memcpy(inline_, other.inline_, size_ * sizeof(T));
  }

  std::size_t size_ = 0, capacity_ = Inline;
  std::unique_ptr<T[]> heap_;
  T inline_[Inline] = {};
};

}  // namespace hemiola
