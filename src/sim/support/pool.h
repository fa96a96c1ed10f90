// Objects with stable addresses, numbered from 0, whose numbers are used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "sim/support/append.h"
#include "sim/support/prefetch.h"
#include "sim/support/worker.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace hemiola::sim {

/// Objects come in blocks of so many: few where a pool is made for each of many short runs.
template <typename T, std::size_t kBlock = 1 << 14>
class Pool {
 public:
  Pool() { blocks_.reserve(kMostBlocks); }  // readers of other threads: it never moves
  /// Workers take and give back without asking each other. Before the first take().
  void share(int workers) { free_.resize(static_cast<std::size_t>(workers)); }

  T& operator[](std::size_t i) { return blocks_[i / kBlock].get()[i % kBlock]; }
  const T& operator[](std::size_t i) const { return blocks_[i / kBlock].get()[i % kBlock]; }

  /// An object as it is by default.
  std::int32_t take() {
    const std::int32_t id = take_as_left();
    (*this)[static_cast<std::size_t>(id)] = T{};
    return id;
  }
  /// An object as it was given back, or by default.
  std::int32_t take_as_left() {
    std::vector<std::int32_t>& free = mine();
    if (free.empty()) add_block(free);
    const std::int32_t id = free.back();
    free.pop_back();
    if (free.size() >= kAhead) prefetch(free[free.size() - kAhead]);
    return id;
  }
  void give_back(std::int32_t id) { append(mine(), id); }

 private:
  // Large blocks are on huge pages where the system has them: objects are visited in the
  // order of time, not of memory, and with small pages most of that is address translation.
  static constexpr std::size_t kMostBlocks = (std::size_t{1} << 31) / kBlock;
  static constexpr std::size_t kHugePage = 2 << 20;
  static constexpr bool kHuge = kBlock * sizeof(T) >= kHugePage;
  static constexpr std::align_val_t kAlign{kHuge ? kHugePage : 64};

  /// What was given back long ago has left the host's caches: it is asked for some takes ahead.
  static constexpr std::size_t kAhead = 6;

  void prefetch(std::int32_t id) const {
    const char* const object =
        reinterpret_cast<const char*>(&(*this)[static_cast<std::size_t>(id)]);
    for (std::size_t at = 0; at < sizeof(T); at += 64) prefetch_line(object + at);
  }

  struct alignas(128) Free {
    std::vector<std::int32_t> numbers;
  };
  std::vector<std::int32_t>& mine() { return free_[static_cast<std::size_t>(this_worker)].numbers; }
  [[gnu::noinline]] void add_block(std::vector<std::int32_t>& free) {
    const std::lock_guard lock(growing_);
    const auto first = static_cast<std::int32_t>(blocks_.size() * kBlock);
    blocks_.push_back(make_block());
    for (std::int32_t i = static_cast<std::int32_t>(kBlock) - 1; i >= 0; --i)
      free.push_back(first + i);
  }

  struct Delete {
    void operator()(T* objects) const {
      std::destroy_n(objects, kBlock);
      ::operator delete(objects, kAlign);
    }
  };
  using Block = std::unique_ptr<T, Delete>;

  static Block make_block() {
    constexpr std::size_t unit = kHuge ? kHugePage : 64;
    constexpr std::size_t bytes = (kBlock * sizeof(T) + unit - 1) / unit * unit;
    void* memory = ::operator new(bytes, kAlign);
#ifdef __linux__
    if constexpr (kHuge) madvise(memory, bytes, MADV_HUGEPAGE);  // advice: failing changes nothing
#endif
    T* objects = static_cast<T*>(memory);
    std::uninitialized_value_construct_n(objects, kBlock);
    return Block(objects);
  }

  std::vector<Block> blocks_;
  std::vector<Free> free_ = std::vector<Free>(1);
  std::mutex growing_;
};

}  // namespace hemiola::sim
