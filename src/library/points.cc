#include "library/points.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace hemiola {
namespace {

/// Threads take experiments in their order. What is no Failure ends all of them.
class Points {
 public:
  Points(std::span<const Experiment> experiments, const Watch& watch, const RunOne& run)
      : experiments_(experiments), watch_(watch), run_(run), points_(experiments.size()) {
    each_.stop = watch.stop;
    if (watch.on_step) each_.on_step = [this](const std::string& step) { tell(step); };
  }

  void work() {
    while (!ended_.load()) {
      const std::size_t next = next_.fetch_add(1);
      if (next >= points_.size()) return;
      try {
        points_[next].outcome = run_(experiments_[next], each_);
      } catch (const Failure&) {
        points_[next].failure = std::current_exception();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!ended_.exchange(true)) reason_ = std::current_exception();
      }
    }
  }

  std::vector<Point> take() {
    if (reason_) std::rethrow_exception(reason_);
    return std::move(points_);
  }

 private:
  void tell(const std::string& step) {
    const std::lock_guard lock(mutex_);
    watch_.on_step(step);
  }

  std::span<const Experiment> experiments_;
  const Watch& watch_;
  const RunOne& run_;
  Watch each_;
  std::vector<Point> points_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  std::exception_ptr reason_;
};

}  // namespace

std::vector<Point> run_points(std::span<const Experiment> experiments, int threads,
                              const Watch& watch, const RunOne& run) {
  Points points(experiments, watch, run);
  const auto most = static_cast<std::ptrdiff_t>(experiments.size());
  std::vector<std::jthread> others;
  for (std::ptrdiff_t i = 1; i < std::min<std::ptrdiff_t>(threads, most); ++i)
    others.emplace_back([&points] { points.work(); });
  points.work();
  others.clear();
  return points.take();
}

}  // namespace hemiola
