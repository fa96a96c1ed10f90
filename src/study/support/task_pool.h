// Tasks in several threads, and one thread that takes what they bring.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "core/index.h"

namespace hemiola::study {

/// Says which task is next where it is not simply the one behind. Thread-safe.
class TaskSource {
 public:
  virtual ~TaskSource() = default;
  /// Nothing: there is none, or `halt` was set.
  virtual std::optional<std::size_t> next(const std::atomic<bool>& halt) = 0;
};

template <typename Brought>
class TaskPool {
 public:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// Not more threads than tasks. `source` (null: none) outlives the pool.
  TaskPool(int threads, std::size_t tasks, TaskSource* source = nullptr)
      : tasks_(tasks), source_(source), at_(std::min(index(std::max(1, threads)), tasks), kNone) {}

  std::size_t threads() const { return at_.size(); }
  /// Set once the work is to end: for monitors of tasks.
  const std::atomic<bool>& halt() const { return halt_; }

  using Work = std::function<Brought(std::size_t thread, std::size_t task)>;
  /// What has come since the last call, and the task that each thread is at (kNone: none).
  using Take =
      std::function<void(std::vector<Brought> brought, const std::vector<std::size_t>& at)>;

  /// Calls `work` for each task, in their order, and several times a second `take`, in the thread
  /// that called. Once `stop` (null: never) is set, or either throws, no task begins any more, and
  /// what has been brought is taken. A task that throws Interrupted brings nothing; what else is
  /// thrown, first of all by `take`, is thrown again once all threads have ended.
  void run(const Work& work, const Take& take, const std::atomic<bool>* stop) {
    running_ = threads();
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < at_.size(); ++i)
      threads.emplace_back([this, i, &work] { work_on(i, work); });
    std::exception_ptr problem;
    try {
      take_until_done(take, stop);
    } catch (...) {
      problem = std::current_exception();
      halt_ = true;
    }
    for (std::thread& thread : threads) thread.join();
    if (problem) std::rethrow_exception(problem);
    if (problem_) std::rethrow_exception(problem_);
  }

 private:
  void work_on(std::size_t thread, const Work& work) {
    try {
      while (!halt_) {
        const std::optional<std::size_t> task = next_task();
        if (!task) break;
        be_at(thread, *task);
        Brought brought = work(thread, *task);
        const std::lock_guard lock(mutex_);
        at_[thread] = kNone;
        brought_.push_back(std::move(brought));
        changed_.notify_one();
      }
    } catch (const Interrupted&) {  // whoever set `stop` knows
    } catch (...) {
      const std::lock_guard lock(mutex_);
      problem_ = std::current_exception();
      halt_ = true;
    }
    const std::lock_guard lock(mutex_);
    --running_;
    changed_.notify_one();
  }

  std::optional<std::size_t> next_task() {
    if (source_ != nullptr) return source_->next(halt_);
    const std::size_t task = next_.fetch_add(1);
    return task < tasks_ ? std::optional(task) : std::nullopt;
  }

  void be_at(std::size_t thread, std::size_t task) {
    const std::lock_guard lock(mutex_);
    at_[thread] = task;
  }

  void take_until_done(const Take& take, const std::atomic<bool>* stop) {
    constexpr auto kInterval = std::chrono::milliseconds(50);
    std::unique_lock lock(mutex_);
    while (running_ > 0 || !brought_.empty()) {
      changed_.wait_for(lock, kInterval, [&] { return !brought_.empty() || running_ == 0; });
      if (stop != nullptr && stop->load()) halt_ = true;
      std::vector<Brought> brought = std::exchange(brought_, {});
      const std::vector<std::size_t> at = at_;
      lock.unlock();
      take(std::move(brought), at);
      lock.lock();
    }
  }

  std::size_t tasks_;
  TaskSource* source_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> halt_{false};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> at_;   ///< by thread
  std::vector<Brought> brought_;  ///< not taken yet
  std::size_t running_ = 0;       ///< threads
  std::exception_ptr problem_;
};

}  // namespace hemiola::study
