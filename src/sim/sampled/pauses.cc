#include "sim/sampled/pauses.h"

#include <algorithm>

namespace hemiola::sim::sampled {
namespace {

constexpr std::int64_t kLook = 500'000'000;  // fs: whether all pause

}  // namespace

void Pauses::look_between(std::int64_t length) {
  if (window_pauses_ > 0) between_ = length * window_groups_ / window_pauses_;
}

void Pauses::end_window(std::int64_t length) {
  measured_ += length * window_groups_;
  if (pauses_.empty()) return;
  const auto quarter = pauses_.begin() + std::ssize(pauses_) / 4;
  std::nth_element(pauses_.begin(), quarter, pauses_.end());
  least_ = *quarter;
  // What a skip leaves behind says nothing of that.
  if (windows_.count() == 1) lockstep_ = 10 * together_ > 9 * std::ssize(pauses_);
}

void Pauses::measure(std::int32_t number, std::int64_t now, bool products,
                     const RankMovers& movers) {
  Group& group = groups_[at(number)];
  const bool measures = windows_.measures() && !products;
  if (group.moving == 0 && std::exchange(group.waited, false) && measures) {
    pauses_.push_back(now - group.ended);
    paused_ += now - std::max(group.ended, windows_.from());
    ++window_pauses_;
    if (movers.empty >= group.ended) {
      ++together_;
      after_all_.add(1, now - movers.empty);
    }
  }
  if (measures && std::exchange(group.window, windows_.count()) != windows_.count())
    ++window_groups_;
}

void Pauses::end_batch(std::int32_t number, std::int64_t now) {
  Group& group = groups_[at(number)];
  group.stored = true;
  if (--group.moving == 0) group.ended = now;
}

// Where workgroups pause together, what is simulated keeps them together: the first are through
// when the last ones are, for all share queues. Passed over, they would drift apart.
std::int64_t Pauses::hold(std::int32_t number, std::int64_t now, bool products,
                          const RankMovers& movers) {
  Group& group = groups_[at(number)];
  if (!windows_.skips(now) || group.moving > 0 || !group.waited || products) return group.hold;
  if (lockstep_ && movers.moving > 0 && movers.empty < group.ended) return now + kLook;
  group.waited = false;
  return group.hold = lockstep_ ? std::max(group.ended, movers.empty) + after_all_.time_for(1)
                                : group.ended + least_;
}

void Pauses::begin_drain(std::int32_t number, std::int64_t now) {
  Group& group = groups_[at(number)];
  if (group.began < 0) group.began = now;
}

std::int64_t Pauses::end_drain(std::int32_t number, std::int64_t now) {
  Group& group = groups_[at(number)];
  const std::int64_t began = std::exchange(group.began, -1);
  if (std::exchange(group.passed, false)) return windows_.skips(now) ? draining_.time_for(1) : 0;
  if (std::exchange(group.stored, false) && windows_.measures())
    draining_.add(1, began < 0 ? 0 : now - began);
  return 0;
}

double Pauses::share() const {
  return measured_ > 0 ? static_cast<double>(paused_) / static_cast<double>(measured_) : 0;
}

}  // namespace hemiola::sim::sampled
