// A long computation and who watches it from another thread: how far it is, and whether it is to
// stop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "hemiola/error.h"

namespace hemiola {

/// The computation writes its figures now and then, several times a second where it can; they
/// decide nothing, so that a run with a monitor gives what it gives without. Any thread may read
/// them, each for itself: together they may be of two moments.
struct Monitor {
  const std::atomic<bool>* stop = nullptr;  ///< set by who watches; null: never

  std::atomic<std::int64_t> time_fs{-1};   ///< simulated; -1: nothing is being simulated
  std::atomic<std::int64_t> line_hops{0};  ///< simulated so far
  std::atomic<std::int64_t> done{0};       ///< work, in units of `total`
  std::atomic<std::int64_t> total{0};      ///< about; 0: not known

  bool stopping() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  /// To be called where the computation can be left.
  void leave_if_stopping() const {
    if (stopping()) throw Interrupted();
  }

  /// Something else begins.
  void begin(std::int64_t work) {
    time_fs.store(-1, std::memory_order_relaxed);
    line_hops.store(0, std::memory_order_relaxed);
    done.store(0, std::memory_order_relaxed);
    total.store(work, std::memory_order_relaxed);
  }
  /// From 0 to 1; 0 where it is not known.
  double fraction() const {
    const std::int64_t all = total.load(std::memory_order_relaxed);
    if (all <= 0) return 0;
    const auto part = static_cast<double>(done.load(std::memory_order_relaxed));
    return std::clamp(part / static_cast<double>(all), 0.0, 1.0);
  }
};

}  // namespace hemiola
