#include "workload/scheduler/progress.h"

#include <algorithm>
#include <utility>

namespace hemiola::workload {

std::int32_t Progress::start(const LaunchKind& kind, std::vector<Member> members, Time begin,
                             Time alone) {
  std::int32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::int32_t>(states_.size());
    states_.emplace_back();
    order_.push_back(0);
  } else {
    number = free_.back();
    free_.pop_back();
  }
  State& state = states_[index(number)];
  state = {.launch = {kind, std::move(members), begin, alone},
           .kind = kind.fixed.fs > 0 ? -1 : numbers_.find(kinds_, kind),
           .since = begin,
           .left = alone.fs,
           .version = state.version + 1};
  order_[index(number)] = ++started_;
  if (state.kind < 0) {
    begun_.push_back(number);
    return number;
  }
  for (const Member& member : state.launch.members) {
    auto& under_way = classes_[index(member.rank_class)].under_way;
    // A class that sends to itself takes part once.
    if (under_way.empty() || under_way.back() != number) under_way.push_back(number);
  }
  touch(state);
  return number;
}

void Progress::touch(const State& state) {
  for (const Member& member : state.launch.members) {
    OfClass& one = classes_[index(member.rank_class)];
    if (!std::exchange(one.is_changed, true)) changed_.push_back(member.rank_class);
  }
}

void Progress::settle(Time now) {
  for (const std::int32_t number : std::exchange(begun_, {})) set_speed(number, kFullSpeed, now);
  std::vector<std::int32_t> launches;
  for (const std::int32_t number : std::exchange(changed_, {})) {
    OfClass& one = classes_[index(number)];
    one.is_changed = false;
    launches.insert(launches.end(), one.under_way.begin(), one.under_way.end());
  }
  std::ranges::sort(launches);
  launches.erase(std::unique(launches.begin(), launches.end()), launches.end());
  for (const std::int32_t number : launches)
    set_speed(number, speed_of(states_[index(number)]), now);
}

/// The slowest of its ranks holds all of them.
std::int64_t Progress::speed_of(const State& state) {
  std::int64_t speed = kFullSpeed;
  for (const Member& member : state.launch.members) {
    if (classes_[index(member.rank_class)].under_way.size() < 2) continue;
    const std::vector<std::int64_t>& speeds = speeds_at(member.rank_class);
    const auto at = std::lower_bound(key_.begin() + 1, key_.end(), state.kind);
    speed = std::min(speed, speeds[index(at - key_.begin() - 1)]);
  }
  return std::clamp<std::int64_t>(speed, 1, kFullSpeed);
}

const std::vector<std::int64_t>& Progress::speeds_at(std::int32_t rank_class) {
  key_.assign(1, rank_class);
  for (const std::int32_t number : classes_[index(rank_class)].under_way)
    key_.push_back(states_[index(number)].kind);
  std::sort(key_.begin() + 1, key_.end());
  std::vector<std::int64_t>& speeds = speeds_[key_];
  if (speeds.empty()) {
    std::vector<LaunchKind> together;
    for (std::size_t k = 1; k < key_.size(); ++k) together.push_back(kinds_[index(key_[k])]);
    speeds = costs_.speeds(rank_class, together);
  }
  return speeds;
}

void Progress::set_speed(std::int32_t number, std::int64_t speed, Time now) {
  State& state = states_[index(number)];
  if (speed == state.speed) return;
  if (now > state.since && state.speed > 0) {
    const auto done = static_cast<__int128>((now - state.since).fs) * state.speed / kFullSpeed;
    state.left = std::max<std::int64_t>(0, state.left - static_cast<std::int64_t>(done));
    state.since = now;
  }
  state.speed = speed;
  ++state.version;
  const auto rest = (static_cast<__int128>(state.left) * kFullSpeed + speed - 1) / speed;
  ends_.push({state.since + Time{static_cast<std::int64_t>(rest)}, order_[index(number)], number,
              state.version});
}

void Progress::drop_stale() {
  while (!ends_.empty() && states_[index(ends_.top().number)].version != ends_.top().version)
    ends_.pop();
}

bool Progress::is_empty() {
  drop_stale();
  return ends_.empty();
}

Time Progress::next_end() {
  drop_stale();
  return ends_.top().at;
}

Progress::Launch Progress::take_next() {
  drop_stale();
  const std::int32_t number = ends_.top().number;
  ends_.pop();
  State& state = states_[index(number)];
  ++state.version;
  if (state.kind >= 0) {
    for (const Member& member : state.launch.members) {
      auto& under_way = classes_[index(member.rank_class)].under_way;
      under_way.erase(std::remove(under_way.begin(), under_way.end(), number), under_way.end());
    }
    touch(state);
  }
  free_.push_back(number);
  return std::move(state.launch);
}

}  // namespace hemiola::workload
