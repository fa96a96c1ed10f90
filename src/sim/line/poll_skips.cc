#include "sim/line/poll_skips.h"

#include <algorithm>
#include <array>
#include <bit>

#include "sim/line/replayer.h"
#include "sim/line/stages.h"

namespace hemiola::sim {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Busy beyond `now`: the number of the server, and for how long.
void note(Numbers& state, std::int64_t& number, std::int64_t free, std::int64_t now) {
  ++number;
  if (free <= now) return;
  state.push_back(number);
  state.push_back(free - now);
}

}  // namespace

// Events of progress and requests other than polls count as active, and so are rows to come.
bool PollSkips::only_polls() const {
  if (device_.options.replay == nullptr || device_.options.table != TableKind::heap) return false;
  if (replayer_.quiet_until() < 0) return false;
  if (std::ranges::any_of(stages_.busy_merges, [](auto bits) { return bits != 0; })) return false;
  return std::ranges::all_of(stages_.simulated, [&](int rank) {
    const GpuStages& gpu = stages_.gpus[index(stages_.gpu_of[index(rank)])];
    const std::vector<Cu>& cus = device_.rank(rank).cus;
    return gpu.filled.empty() &&
           std::ranges::all_of(cus, [](const Cu& cu) { return cu.queue.empty(); });
  });
}

template <typename Visit>
void PollSkips::for_each_free(int rank, Visit visit) {
  GpuStages& gpu = stages_.of(rank);
  for (auto* servers :
       {&gpu.cu_out_free, &gpu.cu_in_free, &gpu.slice_free, &gpu.io_out_free, &gpu.io_in_free})
    for (std::int64_t& free : *servers) visit(free);
  for (Cu& cu : device_.rank(rank).cus)
    for (std::int64_t* free : {&cu.issue_free, &cu.peer_in, &cu.peer_out}) visit(*free);
  const auto first = index(device_.fabric.gpu_base[index(rank)]);
  for (std::size_t s = first; s < first + index(device_.layout(rank).servers); ++s)
    visit(device_.fabric.servers[s].free);
  device_.gpus[index(rank)].flag_lines.for_each(
      [&](std::int64_t, std::int64_t& free) { visit(free); });
}

/// All that is to come and when servers are free, since the earliest of it, in `times`.
Numbers PollSkips::state_of_polls(std::pair<std::int64_t, std::int64_t>& times) {
  struct Item {
    std::int64_t time;
    std::array<std::int64_t, 8> what;  // stage, tag, order, wavefront, line, kind, size, sleep
  };
  std::vector<Item> items;
  for (const int rank : stages_.simulated) {
    GpuStages& gpu = stages_.of(rank);
    for (const CoreEvent& e : gpu.events) {
      const bool retry = e.kind == kRetry;
      const Request* const request = retry ? &device_.request(e.a) : nullptr;
      const std::int32_t wave = retry ? request->wave : e.a;
      items.push_back({e.time,
                       {rank * 8, e.tag, static_cast<std::int64_t>(e.sequence), wave,
                        retry ? request->line : -1, e.kind, e.b, device_.wave(wave).sleep}});
    }
    int number = 0;
    for (const Calendar* calendar : gpu.calendars()) {
      ++number;
      calendar->for_each([&](const Arrival& arrival) {
        const Request& request = device_.request(arrival.id);
        items.push_back({arrival.time,
                         {rank * 8 + number, arrival.tag, std::int64_t{request.accepted},
                          request.wave, request.line, static_cast<std::int64_t>(request.intent),
                          request.size * 8 + static_cast<int>(request.stage),
                          device_.wave(request.wave).sleep}});
      });
    }
  }
  if (items.empty()) return {};
  // The order of equal ones matters, not their numbers.
  std::ranges::sort(items, [](const Item& a, const Item& b) {
    return std::tie(a.what[0], a.time, a.what[1], a.what[2]) <
           std::tie(b.what[0], b.time, b.what[1], b.what[2]);
  });
  times = {INT64_MAX, 0};
  for (const Item& item : items)
    times = {std::min(times.first, item.time), std::max(times.second, item.time)};
  Numbers state;
  for (const Item& item : items) {
    state.push_back(item.time - times.first);
    for (const std::size_t part : {0, 1, 3, 4, 5, 6, 7}) state.push_back(item.what[part]);
  }
  std::int64_t number = 0;
  for (const int rank : stages_.simulated)
    for_each_free(rank, [&](std::int64_t free) { note(state, number, free, times.first); });
  return state;
}

// To be asked between rounds. A state that comes back twice after the same time, with the same
// counts, does so until something else comes.
std::int64_t PollSkips::skip() {
  const std::int64_t next = only_polls() ? replayer_.quiet_until() : -1;
  if (next != skip_until_) {
    states_.clear();
    skip_until_ = next;
    skipped_ = false;
  }
  constexpr std::size_t kMostStates = 4096;
  constexpr std::int64_t kFewRounds = 16;
  if (next < 0 || skipped_ || states_.size() > kMostStates ||
      (next >> stages_.shift) - stages_.last_round < kFewRounds)
    return 0;
  std::pair<std::int64_t, std::int64_t> times;
  const Numbers state = state_of_polls(times);
  if (state.empty()) return 0;
  Counters& counters = device_.counters();  // a replay has one worker
  const auto counts = std::bit_cast<Counts>(counters);
  PollState now{.time = times.first, .counts = {counts.begin(), counts.end()}};
  const auto [found, fresh] = states_.try_emplace(state, now);
  if (fresh) return 0;
  const PollState& before = found->second;
  now.period = now.time - before.time;
  for (std::size_t c = 0; c < counts.size(); ++c)
    now.more.push_back(now.counts[c] - before.counts[c]);
  const bool repeats = now.period > 0 && now.period == before.period && now.more == before.more;
  const std::int64_t periods =
      repeats ? (next - stages_.latest_offset - (4LL << stages_.shift) - times.second) / now.period
              : 0;
  found->second = now;
  if (!repeats) return 0;
  skipped_ = true;
  if (periods < 1) return 0;
  Counts sum = counts;
  for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += periods * now.more[c];
  hops_skipped_ -= counters.hops;
  counters = std::bit_cast<Counters>(sum);
  hops_skipped_ += counters.hops;
  shift_polls(times.first, periods * now.period);
  return periods * now.period;
}

// All that is to come later by `by`.
void PollSkips::shift_polls(std::int64_t now, std::int64_t by) {
  stages_.last_round += by >> stages_.shift;
  if (stages_.has_engines()) stages_.engines_from += by;
  const auto charge = [by](LatencyBreakdown& spent) { spent.charge(Reason::poll, by); };
  for (const int rank : stages_.simulated) {
    GpuStages& gpu = stages_.of(rank);
    for (CoreEvent& e : gpu.events) {
      e.time += by;
      charge(e.kind == kRetry ? device_.request(e.a).spent : device_.wave(e.a).spent);
    }
    for (Calendar* calendar : gpu.calendars()) {
      std::vector<Arrival> arrivals;
      calendar->for_each([&](const Arrival& arrival) { arrivals.push_back(arrival); });
      calendar->restart(stages_.last_round + 1);
      for (Arrival& arrival : arrivals) {
        arrival.time += by;
        charge(device_.request(arrival.id).spent);
        calendar->push(arrival);
      }
    }
    for_each_free(rank, [&](std::int64_t& free) {
      if (free > now) free += by;
    });
  }
}

}  // namespace hemiola::sim
