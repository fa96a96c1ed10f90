#include "verify/programs/semaphores.h"

#include <algorithm>
#include <span>

namespace hemiola::verify {

void SemaphoreState::add(Signal signal, std::int64_t value) {
  const std::pair from{signal.actor, signal.image};
  several_signal_ = several_signal_ || (signaller_ && *signaller_ != from);
  signaller_ = from;
  for (const Waiter& waiter : waiters_) {
    const bool after = from == std::pair{waiter.actor, waiter.image} ||
                       signal.performed.reads(waiter.actor, waiter.image) > waiter.segment ||
                       (signal.swap && waiter.reached <= total_);
    late_signal_ = late_signal_ || !after;
  }
  signal.first = total_;
  total_ += value;
  signals_ += value;
  if (!signal.must_be_awaited) optional_ += value;
  forget_old();
  kept_.push_back(std::move(signal));
}

bool SemaphoreState::reached(const Wait& wait) const {
  return (wait.consume ? present() : total_) >= wait.value;
}

SemaphoreState::Waiter& SemaphoreState::waiter(const Wait& wait) {
  for (Waiter& known : waiters_)
    if (known.actor == wait.actor && known.image == wait.image) return known;
  waiters_.push_back({wait.actor, wait.image, 0, forgotten_, 0, false});
  return waiters_.back();
}

bool SemaphoreState::in_scope(const Signal& signal, const Wait& wait) {
  return (signal.system_scope && wait.system_scope) || signal.rank == wait.rank;
}

/// What was released includes the loads that were over.
bool SemaphoreState::learns_all(const Signal& signal, const Wait& wait) {
  return in_scope(signal, wait) && wait.acquire && signal.releases;
}

void SemaphoreState::learn(const Signal& signal, const Wait& wait, Acquired& acquired) {
  // In this order the second finds what the first brought.
  if (in_scope(signal, wait))
    signal.released.join_into(wait.acquire ? acquired.now : acquired.after_fence);
  if (!learns_all(signal, wait)) signal.performed.join_reads_into(acquired.now);
}

Acquired SemaphoreState::take(const Wait& wait) {
  Waiter& self = waiter(wait);
  if (wait.consume) consumed_ += wait.value;
  // Whoever takes one of several workgroups' tokens may get any: it learns of all that are there.
  const bool any = wait.consume && waiters_.size() > 1;
  const std::int64_t needed = any ? total_ : wait.consume ? consumed_ : wait.value;
  took_part_ = took_part_ || total_ > needed;
  self.segment = wait.segment;
  self.reached = std::max(self.reached, needed);
  self.consumes = wait.consume;
  // What one workgroup learns others often learn too, from the same signals.
  std::size_t end = self.seen;
  while (end - forgotten_ < kept_.size() && kept_[end - forgotten_].first < needed) ++end;
  const bool same = lesson_.begin == self.seen && lesson_.end == end && lesson_.rank == wait.rank &&
                    lesson_.acquire == wait.acquire && lesson_.system_scope == wait.system_scope;
  if (!same) {
    lesson_ = {self.seen, end, wait.rank, wait.acquire, wait.system_scope, {}};
    const std::span<const Signal> seen =
        std::span(kept_).subspan(self.seen - forgotten_, end - self.seen);
    if (seen.size() == 1 && learns_all(seen.front(), wait))
      lesson_.acquired.whole = seen.front().released;
    else
      for (const Signal& signal : seen) learn(signal, wait, lesson_.acquired);
  }
  self.seen = end;
  return lesson_.acquired;
}

/// Signals that the only waiting workgroup has learned are not needed any more. Some are kept, so
/// that the cost is small; where several wait, all are.
void SemaphoreState::forget_old() {
  constexpr std::size_t kBatch = 64;
  if (!one_waiter_ || waiters_.size() != 1 || waiters_[0].seen - forgotten_ < kBatch) return;
  kept_.erase(kept_.begin(),
              kept_.begin() + static_cast<std::ptrdiff_t>(waiters_[0].seen - forgotten_));
  forgotten_ = waiters_[0].seen;
}

/// Over all calls so far.
std::int64_t SemaphoreState::asked() const {
  std::int64_t asked = consumed_;
  for (const Waiter& known : waiters_) asked = std::max(asked, known.reached);
  return asked;
}

std::int64_t SemaphoreState::left_over() const {
  return std::clamp<std::int64_t>(total_ - initial_ - asked(), 0, signals_ - optional_);
}

std::int64_t SemaphoreState::drained() const {
  return initial_ > 0 ? std::max<std::int64_t>(asked() - (total_ - initial_), 0) : 0;
}

const char* SemaphoreState::order_dependent() const {
  if (waiters_.size() > 1) {
    for (const Waiter& known : waiters_)
      if (known.consumes) return "several workgroups take signals from it";
  }
  if (several_signal_ && (took_part_ || late_signal_))
    return "several workgroups signal it, and a wait needs only some of their signals";
  return nullptr;
}

}  // namespace hemiola::verify
