#include "sim/device/residency.h"

#include <algorithm>

#include "sim/device/host.h"
#include "sim/device/issue.h"
#include "sim/device/sync.h"

namespace hemiola::sim {
namespace {

/// Lines behind flags and logs that hold states.
constexpr std::int32_t kFirstStateLine = 1 << 18;
constexpr std::int64_t kStateLines = 1 << 19;

}  // namespace

bool Residency::is_idle(const Workgroup& group) const {
  if (!group.steps.empty()) return false;
  bool sleeps = false;
  for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
    const Wave& wave = device_.wave(w);
    if (wave.waiting == Waiting::sync || wave.waiting == Waiting::finished) continue;
    if (wave.waiting != Waiting::poll) return false;
    const auto count = static_cast<std::int32_t>(wave.watched.size());
    for (std::int32_t first = 0; first < count; first = wave.watched[index(first)].end)
      if (!wave.watched[index(first)].asleep && wave.watched[index(first)].missing > 0)
        return false;
    sleeps = true;
  }
  return sleeps;
}

void Residency::fell_asleep(std::int32_t id, std::int64_t now) {
  const Workgroup& group = device_.group(id);
  if (device_.model(group.rank).sync_wait != machine::WaitPolicy::syncmon || !is_idle(group))
    return;
  device_.rank(group.rank).idle.push_back(id);
  make_room(group.rank, now);
}

void Residency::make_room(int rank, std::int64_t now) {
  RankState& state = device_.rank(rank);
  while (!state.idle.empty() &&
         index(state.leaving) < state.blocked_kernels.size() + state.wanted.size()) {
    const std::int32_t id = state.idle.front();
    state.idle.pop_front();
    ++state.leaving;
    ++device_.counters().switched_out;
    device_.group(id).place = Place::leaving;
    device_.group(id).wanted = false;
    move_state(id, Intent::state_store, now);
  }
}

// Whether a kernel of higher priority is about to take the room.
bool Residency::is_outranked(const RankState& state, std::int32_t priority) const {
  return std::ranges::any_of(state.streams, [&](const StreamRun& stream) {
    if (stream.item >= stream.runs.size() || stream.runs[stream.item] < 0) return false;
    const KernelRun& kernel = device_.kernel(stream.runs[stream.item]);
    return kernel.dispatching && host_.options_of(kernel).priority > priority;
  });
}

// Who has waited longest among those of the highest priority that find room in their part of the
// compute units; without priorities and parts, who has waited longest.
std::deque<std::int32_t>::iterator Residency::first_to_get_room(RankState& state, int rank) const {
  std::deque<std::int32_t>& blocked = state.blocked_kernels;
  if (device_.program.code(rank).options.empty()) return blocked.begin();
  auto best = blocked.end();
  for (auto it = blocked.begin(); it != blocked.end(); ++it) {
    const KernelRun& kernel = device_.kernel(*it);
    const program::StreamOptions stream = host_.options_of(kernel);
    if (best != blocked.end() &&
        stream.priority <= host_.options_of(device_.kernel(*best)).priority)
      continue;
    if (is_outranked(state, stream.priority)) continue;
    const program::Kernel& code = device_.program.kernels()[index(kernel.kernel)];
    const machine::GpuModel& model = device_.model(rank);
    if (host_.find_cu(state, model, stream,
                      program::occupancy_of_block(code, index(kernel.next), model)) >= 0)
      best = it;
  }
  return best;
}

void Residency::give_room(int rank, const LatencyBreakdown& spent, bool newcomers_first,
                          std::int64_t now) {
  RankState& state = device_.rank(rank);
  const bool newcomers = !state.blocked_kernels.empty();
  if (!state.wanted.empty() && !(newcomers && newcomers_first) &&
      switch_in(state.wanted.front(), now)) {
    state.wanted.pop_front();
    return;
  }
  if (!newcomers) return;
  const auto first = first_to_get_room(state, rank);
  if (first == state.blocked_kernels.end()) return;
  const std::int32_t run = *first;
  state.blocked_kernels.erase(first);
  device_.kernel(run).spent = spent;  // its next workgroup waited for this one
  host_.dispatch(run, now);
}

void Residency::move_state(std::int32_t id, Intent intent, std::int64_t now) {
  Workgroup& group = device_.group(id);
  const machine::GpuModel& model = device_.model(group.rank);
  const auto lines_of = [&](std::int64_t threads) {
    return (threads * model.sync_thread_state.count + device_.lines.size - 1) / device_.lines.size;
  };
  const std::int64_t lines = lines_of(group.threads);
  const std::int64_t first = group.index * lines_of(model.cu_max_threads);
  const std::int32_t base =
      device_.lines.flag(device_.barrier_base + device_.program.barriers()) + kFirstStateLine;
  group.state_moving = static_cast<std::int32_t>(lines);
  device_.counters().state_requests += lines;
  for (std::int64_t l = 0; l < lines; ++l) {
    const auto line = static_cast<std::int32_t>((first + l) % kStateLines);
    const std::int32_t request =
        issue_.make_request(group.first_wave, intent, group.rank, base + line, device_.lines.size);
    device_.request(request).spent.charge_until(Reason::poll, now);
    issue_.issue(request, now);
  }
}

void Residency::state_moved(std::int32_t id, const LatencyBreakdown& spent, std::int64_t now) {
  Workgroup& group = device_.group(id);
  if (--group.state_moving > 0) return;
  RankState& state = device_.rank(group.rank);
  if (group.place == Place::leaving) {
    group.place = Place::out;
    --state.leaving;
    state.cus[index(group.cu)].used -= group.occupancy;
    if (group.wanted) state.wanted.push_back(id);
    give_room(group.rank, spent, true, now);
    make_room(group.rank, now);
    return;
  }
  group.place = Place::resident;
  for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
    Wave& wave = device_.wave(w);
    if (wave.waiting != Waiting::poll) continue;
    const auto count = static_cast<std::int32_t>(wave.watched.size());
    for (std::int32_t first = 0; first < count; first = wave.watched[index(first)].end)
      if (wave.watched[index(first)].asleep && wave.watched[index(first)].woken)
        sync_.look_again(w, first, now);
  }
}

void Residency::want(std::int32_t id, std::int64_t now) {
  Workgroup& group = device_.group(id);
  if (group.place == Place::returning || std::exchange(group.wanted, true)) return;
  if (group.place == Place::leaving) return;
  if (switch_in(id, now)) return;
  device_.rank(group.rank).wanted.push_back(id);
  make_room(group.rank, now);
}

// False: no CU has room for it.
bool Residency::switch_in(std::int32_t id, std::int64_t now) {
  Workgroup& group = device_.group(id);
  RankState& state = device_.rank(group.rank);
  const std::int32_t cu =
      host_.find_cu(state, device_.model(group.rank),
                    host_.options_of(device_.kernel(group.kernel)), group.occupancy);
  if (cu < 0) return false;
  group.cu = cu;
  state.cus[index(cu)].used += group.occupancy;
  group.place = Place::returning;
  ++device_.counters().switched_in;
  move_state(id, Intent::state_load, now);
  return true;
}

}  // namespace hemiola::sim
