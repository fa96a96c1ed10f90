// Counting semaphores of all ranks: how far they are, and what waiting for them teaches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program/semantics/primitive.h"
#include "verify/programs/clock.h"

namespace hemiola::verify {

/// One signal, by its effect on the clocks of those who see it; as the semaphore's rank counts
/// images.
struct Signal {
  Actor actor = 0;
  std::int32_t image = 0;
  Actor workgroup = 0;          ///< the actor itself, or who posted what the proxy signals
  std::int32_t op = 0;          ///< in the workgroup's body
  std::int32_t rank = 0;        ///< where the signaller runs
  bool system_scope = true;     ///< of the release
  bool must_be_awaited = true;  ///< one that is left over breaks the next run
  bool swap = false;            ///< by the access that waited for all signals before it
  bool releases = false;        ///< what was released includes the loads that were over
  Snapshot released;            ///< everything that an acquiring wait learns; none if relaxed
  Snapshot performed;           ///< the loads that were over
  std::int64_t first = 0;       ///< the running total before it; set by add()
};

/// A wait, as the semaphore sees it.
struct Wait {
  Actor actor = 0;
  std::int32_t image = 0;
  std::int32_t rank = 0;
  Segment segment = 0;
  std::int64_t value = 0;  ///< a running total; with `consume` a number to take away
  bool acquire = false;
  bool system_scope = true;
  bool consume = false;
};

/// What a wait that has ended gives to its thread.
struct Acquired {
  Clock now;          ///< what it learned
  Clock after_fence;  ///< what it learns if a fence follows (relaxed waits)
  Snapshot whole;     ///< also learned: of one signal, not joined before somebody needs it

  void join_into(Clock& into) const {
    into.join(now);
    whole.join_into(into);
  }
};

/// One semaphore of one rank.
class SemaphoreState {
 public:
  /// `one_waiter`: no second workgroup ever waits for it, so that what one has learned is
  /// forgotten.
  explicit SemaphoreState(std::int64_t initial = 0, bool one_waiter = true)
      : one_waiter_(one_waiter), initial_(initial), total_(initial) {}

  void add(Signal signal, std::int64_t value);
  bool reached(const Wait& wait) const;
  /// Only when reached.
  Acquired take(const Wait& wait);

  std::int64_t present() const { return total_ - consumed_; }
  std::int64_t running_total() const { return total_; }
  std::int64_t signals() const { return signals_; }
  /// Signals that no wait has asked for, of those that must be awaited; not the initial value.
  std::int64_t left_over() const;
  /// What waits took from the initial value and no signal has brought back.
  std::int64_t drained() const;
  /// The last signal; only where there was one.
  const Signal& last_signal() const { return kept_.back(); }
  bool awaited() const { return !waiters_.empty(); }
  /// Why the order of events could decide what a wait learns or who goes first; null if it cannot.
  const char* order_dependent() const;

  std::vector<std::int32_t> blocked;  ///< workgroups that wait for a signal

 private:
  struct Waiter {
    Actor actor = 0;
    std::int32_t image = 0;
    Segment segment = 0;       ///< of its last wait
    std::size_t seen = 0;      ///< signals learned, counted from the very first
    std::int64_t reached = 0;  ///< the total its last wait needed
    bool consumes = false;
  };
  struct Lesson {           ///< what the last wait learned
    std::size_t begin = 0;  ///< of the signals, counted from the very first
    std::size_t end = 0;
    std::int32_t rank = -1;  ///< where it waited
    bool acquire = false;
    bool system_scope = false;
    Acquired acquired;
  };
  Waiter& waiter(const Wait& wait);
  static bool in_scope(const Signal& signal, const Wait& wait);
  static bool learns_all(const Signal& signal, const Wait& wait);
  static void learn(const Signal& signal, const Wait& wait, Acquired& acquired);
  void forget_old();
  std::int64_t asked() const;

  bool one_waiter_ = true;
  std::int64_t initial_ = 0;
  std::int64_t total_ = 0;  ///< initial value and all signals
  std::int64_t consumed_ = 0;
  std::int64_t signals_ = 0;
  std::int64_t optional_ = 0;  ///< signals that need not be awaited
  std::vector<Signal> kept_;
  std::size_t forgotten_ = 0;  ///< signals before kept_
  std::vector<Waiter> waiters_;
  Lesson lesson_;
  std::optional<std::pair<Actor, std::int32_t>> signaller_;  ///< the first, with its image
  bool several_signal_ = false;
  bool took_part_ = false;    ///< a wait ended while more signals than it needs were there
  bool late_signal_ = false;  ///< a signal that might have come before an earlier wait
};

}  // namespace hemiola::verify
