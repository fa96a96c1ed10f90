// Where the time of a request or wavefront went, while it is under way: an Attribution in a third
// of its size. Requests are visited in the order of time, not of memory, so their size is the speed
// of the reference engine.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/result/result.h"
#include "sim/support/worker.h"

namespace hemiola::sim {

/// A value type. Copies share what was charged long ago (a counted snapshot) and own what was
/// charged lately; equal to an Attribution in all that it says. Copies may be in different threads.
class LatencyBreakdown {
 public:
  LatencyBreakdown() = default;
  explicit LatencyBreakdown(const Attribution& spent) : old_(new Old(spent, -1)) {}
  LatencyBreakdown(const LatencyBreakdown& other) : old_(other.old_), late_(other.late_) { hold(); }
  LatencyBreakdown(LatencyBreakdown&& other) noexcept
      : old_(std::exchange(other.old_, nullptr)), late_(std::exchange(other.late_, {})) {}
  // NOLINTNEXTLINE(bugprone-unhandled-self-assignment): to itself nothing changes
  LatencyBreakdown& operator=(const LatencyBreakdown& other) {
    if (old_ != other.old_) {
      drop();
      old_ = other.old_;
      hold();
    }
    late_ = other.late_;
    return *this;
  }
  LatencyBreakdown& operator=(LatencyBreakdown&& other) noexcept {
    std::swap(old_, other.old_);
    std::swap(late_, other.late_);
    return *this;
  }
  ~LatencyBreakdown() { drop(); }

  void clear() {
    drop();
    old_ = nullptr;
    late_ = {};
  }
  void charge(Reason reason, std::int64_t fs) {
    assert(fs >= 0);
    const auto r = static_cast<std::size_t>(reason);
    if (r < kLate && static_cast<std::uint64_t>(fs) <= kMost - late_[r])
      late_[r] += static_cast<std::uint32_t>(fs);
    else
      charge_old(r, fs);
  }
  /// Makes it sum to `time`, which is not before what it sums to now.
  void charge_until(Reason reason, std::int64_t time) { charge(reason, time - sum()); }
  /// Makes it sum to `time`, before which nothing was charged to another reason since.
  void take_back(Reason reason, std::int64_t time) {
    const auto r = static_cast<std::size_t>(reason);
    const std::int64_t fs = sum() - time;
    assert(fs >= 0);
    if (r < kLate && fs <= late_[r])
      late_[r] -= static_cast<std::uint32_t>(fs);
    else
      charge_old(r, -fs);
  }

  /// Reason::peer, and which waits that makes in all (peer_waits.h).
  void charge_wait(std::int64_t fs, std::int32_t waits) {
    charge_old(static_cast<std::size_t>(Reason::peer), fs);
    old_->waits = waits;
  }
  std::int32_t waits() const { return old_ == nullptr ? -1 : old_->waits; }

  std::int64_t sum() const {
    const std::int64_t late = std::accumulate(late_.begin(), late_.end(), std::int64_t{0});
    return old_ == nullptr ? late : std::accumulate(old_->at.begin(), old_->at.end(), late);
  }
  Attribution attribution() const {
    Attribution all = old_ == nullptr ? Attribution{} : old_->at;
    for (std::size_t r = 0; r < kLate; ++r) all[r] += late_[r];
    return all;
  }

 private:
  /// The reasons that a request meets on its way; the first of Reason.
  static constexpr std::size_t kLate = static_cast<std::size_t>(Reason::issue) + 1;
  static constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  /// Snapshots come and go with every few requests: their memory is kept, by thread.
  struct Old {
    Old(const Attribution& charged, std::int32_t waited) : at(charged), waits(waited) {}
    static void* operator new(std::size_t size);
    static void operator delete(void* memory);
    std::atomic<std::int64_t> holders = 1;
    Attribution at;
    std::int32_t waits;
  };

  // One worker counts without locking the bus, which would take longer than all else in a copy.
  /// How many holders there are then.
  std::int64_t count(std::int64_t more) const {
    if (several_workers) return old_->holders.fetch_add(more, std::memory_order_acq_rel) + more;
    const std::int64_t holders = old_->holders.load(std::memory_order_relaxed) + more;
    old_->holders.store(holders, std::memory_order_relaxed);
    return holders;
  }
  void hold() const {
    if (old_ != nullptr) count(1);
  }
  void drop() const {
    if (old_ != nullptr && (alone() || count(-1) == 0)) end();
  }
  void end() const;
  /// Nobody else can become a holder meanwhile: that takes a copy of this one.
  bool alone() const { return old_->holders.load(std::memory_order_acquire) == 1; }
  /// Not inline: charges are everywhere, and few come here.
  void charge_old(std::size_t reason, std::int64_t fs);

  Old* old_ = nullptr;  ///< none: zeros
  std::array<std::uint32_t, kLate> late_{};
};

}  // namespace hemiola::sim
