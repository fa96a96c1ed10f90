#include "verify/threads.h"

#include <chrono>
#include <thread>

namespace hemiola::verify {

// Nobody is between a change and advance(): such a thread would not wait. So if all wait, and all
// have seen the present progress, no condition can become true. Threads that have ended do not
// count.
bool Threads::all_wait() const {
  const std::uint32_t progress = progress_.load(std::memory_order_acquire);
  bool waits = false;
  for (const Wait& wait : waits_) {
    const std::uint64_t seen = wait.seen.load(std::memory_order_acquire);
    if (seen != kEnded && seen != (kWaits | progress)) return false;
    waits = waits || seen != kEnded;
  }
  return waits && progress_.load(std::memory_order_acquire) == progress;
}

bool Threads::run(const std::function<void(int)>& body, const Monitor* monitor) {
  running_.store(static_cast<int>(waits_.size()));
  for (Wait& wait : waits_) wait.seen.store(0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    threads.emplace_back([this, &body, i] {
      body(static_cast<int>(i));
      waits_[i].seen.store(kEnded, std::memory_order_release);
      running_.fetch_sub(1, std::memory_order_release);
    });
  }
  bool hang = false;
  auto pause = std::chrono::microseconds(20);
  while (running_.load(std::memory_order_acquire) > 0) {
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(2000));
    if (monitor != nullptr && monitor->stopping()) stop();
    if (hang || !all_wait()) continue;
    hang = !stop_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < waits_.size() && stuck_ < 0; ++i) {
      if (waits_[i].seen.load(std::memory_order_acquire) == kEnded) continue;
      stuck_ = static_cast<int>(i);
      stuck_in_ = waits_[i].what.load(std::memory_order_relaxed);
    }
    stop();
  }
  for (std::thread& thread : threads) thread.join();
  if (monitor != nullptr) monitor->leave_if_stopping();
  return !hang;
}

void delay(std::uint64_t& random) {
  random = random * 6364136223846793005u + 1442695040888963407u;
  const std::uint64_t drawn = random >> 33;
  if (drawn % 4 != 0) return;
  if (drawn % 64 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(1 + (drawn >> 6) % 50));
  else
    std::this_thread::yield();
}

}  // namespace hemiola::verify
