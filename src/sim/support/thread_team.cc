#include "sim/support/thread_team.h"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hemiola::sim {
namespace {

constexpr int kMostSpins = 2000;  // some tens of microseconds
constexpr int kLeastSpins = 20;

/// Until it is no longer `old`. What is waited for often takes less than waking up does. Where it
/// takes longer, others have the cores: from then on this thread spins for a shorter while.
std::uint32_t changed(const std::atomic<std::uint32_t>& value, std::uint32_t old, int& spins) {
  for (int spin = 0; spin < spins; ++spin) {
    const std::uint32_t now = value.load(std::memory_order_acquire);
    if (now != old) {
      spins = std::min(2 * spins, kMostSpins);
      return now;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
  spins = std::max(spins / 2, kLeastSpins);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

}  // namespace

int available_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

ThreadTeam::ThreadTeam(int size, int cores) : thrown_(static_cast<std::size_t>(size)) {
  for (int number = 1; number < std::min(size, cores); ++number)
    threads_.emplace_back([this, number] { serve(number); });
}

ThreadTeam::~ThreadTeam() {
  over_ = true;
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  work_ = &work;
  at_work_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
  phase_.fetch_add(1, std::memory_order_release);
  phase_.notify_all();
  call(0);
  for (std::uint32_t left = at_work_.load(std::memory_order_acquire); left > 0;)
    left = changed(at_work_, left, spins_);
  std::exception_ptr first;
  for (std::exception_ptr& thrown : thrown_) {
    std::exception_ptr taken = std::exchange(thrown, nullptr);
    if (first == nullptr) first = std::move(taken);
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void ThreadTeam::serve(int number) {
  int spins = kMostSpins;
  for (std::uint32_t phase = 0;;) {
    phase = changed(phase_, phase, spins);
    if (over_) return;
    call(number);
    if (at_work_.fetch_sub(1, std::memory_order_acq_rel) == 1) at_work_.notify_one();
  }
}

void ThreadTeam::call(int number) {
  for (; number < size(); number += static_cast<int>(threads_.size()) + 1) {
    try {
      (*work_)(number);
    } catch (...) {
      thrown_[static_cast<std::size_t>(number)] = std::current_exception();
    }
  }
}

}  // namespace hemiola::sim
