// Threads that wait for each other's progress, and a watchdog that knows when none will come.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/monitor.h"

namespace hemiola::verify {

/// Whoever changes what others may wait for calls advance() afterwards; waits look again then. The
/// conditions read atomics only.
class Threads {
 public:
  explicit Threads(int count) : waits_(static_cast<std::size_t>(count)) {}

  /// Runs `body(thread)` in every thread, and returns when all have ended. False if they had to be
  /// stopped because all that were left waited: a hang. A condition may then still be false.
  /// Interrupted, once they have ended, when `monitor` asks for it.
  bool run(const std::function<void(int)>& body, const Monitor* monitor = nullptr);

  /// Blocks thread `self` until `condition()`; false: the threads are being stopped, return.
  template <class Condition>
  bool wait(int self, Condition condition, const char* what) {
    while (true) {
      const std::uint32_t seen = progress_.load(std::memory_order_acquire);
      if (condition()) return true;
      if (stop_.load(std::memory_order_acquire)) return false;
      Wait& own = waits_[static_cast<std::size_t>(self)];
      own.what.store(what, std::memory_order_relaxed);
      own.seen.store(kWaits | seen, std::memory_order_release);
      progress_.wait(seen, std::memory_order_acquire);
      own.seen.store(0, std::memory_order_release);
    }
  }
  void advance() {
    progress_.fetch_add(1, std::memory_order_acq_rel);
    progress_.notify_all();
  }
  /// Ends the run; waits return false.
  void stop() {
    stop_.store(true, std::memory_order_release);
    advance();
  }
  /// After a hang: the number of a thread that waits, and what for.
  int stuck() const { return stuck_; }
  const std::string& stuck_in() const { return stuck_in_; }

 private:
  static constexpr std::uint64_t kWaits = std::uint64_t{1} << 32;
  static constexpr std::uint64_t kEnded = std::uint64_t{1} << 33;
  struct Wait {
    /// kWaits with the progress at which the condition was false; or kEnded; or 0: it runs.
    std::atomic<std::uint64_t> seen{0};
    std::atomic<const char*> what{""};
  };
  bool all_wait() const;

  std::vector<Wait> waits_;
  std::atomic<std::uint32_t> progress_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> running_{0};
  int stuck_ = -1;
  std::string stuck_in_;
};

/// Gives other threads a chance, now and then for long; from a stream of pseudo-random numbers.
void delay(std::uint64_t& random);

}  // namespace hemiola::verify
