// What was made once and is asked for again, by several threads.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>

namespace hemiola::study {

/// Values by key. Whoever asks first makes the value; others who ask for the same wait for it, and
/// nobody else does. If that fails, the failure is the first one's alone, and the next one tries.
///
/// At most `capacity` values are kept, those that were asked for last. A value that is in use lives
/// on when it is dropped.
template <typename Key, typename Value>
class Cache {
 public:
  explicit Cache(std::size_t capacity) : capacity_(capacity) {}

  template <typename Make>
  Value get(const Key& key, const Make& make) {
    const std::shared_ptr<Slot> slot = slot_of(key);
    const std::lock_guard lock(slot->mutex);
    if (!slot->made) {
      slot->value = make();
      slot->made = true;
      const std::lock_guard count(mutex_);
      ++made_;
    }
    return slot->value;
  }

  std::int64_t made() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    slots_.clear();
    order_.clear();
  }

 private:
  struct Slot {
    std::mutex mutex;
    bool made = false;
    Value value{};
  };
  using Order = std::list<Key>;
  struct Entry {
    std::shared_ptr<Slot> slot;
    typename Order::iterator place;
  };

  std::shared_ptr<Slot> slot_of(const Key& key) {
    const std::lock_guard lock(mutex_);
    const auto known = slots_.find(key);
    if (known != slots_.end()) {
      order_.splice(order_.begin(), order_, known->second.place);
      return known->second.slot;
    }
    order_.push_front(key);
    Entry& entry = slots_[key];
    entry = {std::make_shared<Slot>(), order_.begin()};
    std::shared_ptr<Slot> slot = entry.slot;
    if (slots_.size() > capacity_) {
      slots_.erase(order_.back());
      order_.pop_back();
    }
    return slot;
  }

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::map<Key, Entry> slots_;
  Order order_;  ///< keys, the one that was asked for last first
  std::int64_t made_ = 0;
};

}  // namespace hemiola::study
