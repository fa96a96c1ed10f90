#include "sim/line/chip.h"

#include <algorithm>
#include <utility>

#include "sim/device/flag_monitors.h"
#include "sim/device/memory.h"
#include "sim/device/tracing.h"
#include "sim/line/arrivals.h"
#include "sim/line/engine_stages.h"
#include "sim/line/stages.h"

namespace hemiola::sim {
namespace {

bool is_of_engine(const Request& request) {
  return request.intent == Intent::burst || (request.intent == Intent::flag && request.wave < 0);
}

}  // namespace

// --- Slices: look-ups in the order of acceptance.

// Data or an acknowledgement goes back.
[[gnu::always_inline]] inline void Chip::answer(int rank, std::int32_t id, Request& request,
                                                std::int64_t now) {
  if (request.takes && is_of_engine(request)) [[unlikely]] {
    engine_stages_.answer_engine(rank, id, now);
    return;
  }
  GpuStages& gpu = stages_.of(rank);
  request.stage = Stage::back_out;
  Calendar* next = &gpu.io_out;
  std::uint32_t tag = kFromSlices;
  if (request.local) {
    next = &gpu.cu_in;
    if (!is_load(request.intent)) {
      const std::int64_t latency = gpu.way(request);
      request.spent.charge(Reason::noc, latency);
      now += latency;
      next = &gpu.done;
      tag = gpu.home_slices + static_cast<std::uint32_t>(request.cu);
    } else if (request.intent == Intent::poll && poll_again(rank, id, now)) {
      return;
    }
  }
  next->push({now, tag, id});
}

// True: it is answered at `ready`; else memory will do that, or a fill that is on its way.
[[gnu::always_inline]] inline bool Chip::look_up(int rank, std::int32_t id, Request& request,
                                                 std::int64_t now, std::int64_t& ready,
                                                 Counters& counters) {
  GpuStages& gpu = stages_.of(rank);
  L2& l2 = device_.gpus[index(rank)].l2;
  const bool writes = request.intent == Intent::store || request.intent == Intent::member_store ||
                      request.intent == Intent::flag || request.intent == Intent::state_store;
  GpuStages::Fill* fill = writes ? nullptr : gpu.fills.find(request.line);
  if (fill != nullptr && fill->time >= 0 && fill->time <= now) fill = nullptr;  // it is there
  if (request.near) {
    const Tags::Outcome copy = l2.copy(request.line, request.cu);
    if (copy.evicted_dirty) write_back(rank, copy.victim, ready);
    if (copy.hit && fill == nullptr) {
      ++counters.l2_hits;
      return true;
    }
    ready = memory_.go_home(request, ready);
  }
  const Tags::Outcome outcome = l2.access(request.line, request.slice, writes);
  if (outcome.evicted_dirty) write_back(rank, outcome.victim, ready);
  if (fill != nullptr) {  // on its way: a hit that waits
    ++counters.l2_hits;
    request.queued_at = ready;
    if (fill->time < 0) {
      if (fill->last < 0)
        fill->first = id;
      else
        device_.request(fill->last).next_pending = id;
      fill->last = id;
      return false;
    }
    const std::int64_t time = std::max(fill->time, ready);
    request.spent.charge(Reason::hbm, time - ready);
    ready = time;
    return true;
  }
  if (outcome.hit || writes) {
    ++(outcome.hit ? counters.l2_hits : counters.l2_misses);
    return true;
  }
  ++counters.l2_misses;
  gpu.fills[request.line] = GpuStages::Fill{};
  gpu.memory.push({ready, 0, id});
  return false;
}

void Chip::run_slices(int rank, std::int64_t round) {
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_with_answers(gpu.slices, round, kLocalBursts, kLocalBursts + 1, taken)) return;
  stages_.prefetch_first(taken);
  forget_fills(gpu, gpu.slices.begin_of(round));
  GpuState& state = device_.gpus[index(rank)];
  Counters& counters = device_.counters();
  gpu.slices_run = true;
  for (std::size_t i = 0; i < taken.size() || !gpu.own.empty();) {
    stages_.prefetch(taken, i + kAhead);
    if (i + kAhead / 2 < taken.size()) {
      const Request& next = device_.request(taken[i + kAhead / 2].id);
      state.l2.prefetch(next.line, next.near ? next.cu : next.slice);
      gpu.fills.prefetch(next.line);
      if (next.packet) state.packets.prefetch(next.line);
      stages_.prefetch_detail(taken, i + kAhead / 2);
    }
    const auto [now, tag, id] =
        gpu.own.empty() ? taken[i++] : engine_stages_.next_at_slices(gpu, taken, i);
    Request& request = device_.request(id);
    if (request.size == kLarge) [[unlikely]] {
      engine_stages_.burst_at_slice(rank, id, now);
      continue;
    }
    ++counters.hops;
    const bool operand = request.intent == Intent::posted_load && request.local;
    const std::int64_t service = request.intent == Intent::flag ? gpu.flag_cost
                                 : operand                      ? gpu.operand[request.size]
                                                                : gpu.slice[request.size];
    std::int64_t ready = serve_at(gpu.slice_free[index(request.slice)], service, now) + gpu.l2;
    request.spent.charge(Reason::l2, ready - now);
    request.accepted = ++state.accepted;
    if (device_.options.trace != nullptr && !operand && request.intent != Intent::flag)
      tracing_.show_request(request, Reason::l2, now, ready - gpu.l2);
    if (request.takes)
      memory_.take_effect(id, now, ready);
    else if (!request.local && request.intent == Intent::store)
      counters.delivered += std::int64_t{request.size} << device_.lines.sector_shift;
    if (!state.l2.exists() || request.uncached)
      gpu.memory.push({ready, 0, id});
    else if (look_up(rank, id, request, now, ready, counters))
      answer(rank, id, request, ready);
  }
  gpu.slices_run = false;
}

void Chip::write_back(int rank, std::int32_t line, std::int64_t now) {
  stages_.of(rank).memory.push({now, 0, memory_.make_write_back(rank, line)});
}

// Lines that are in the L2 are no longer on their way.
void Chip::forget_fills(GpuStages& gpu, std::int64_t before) {
  std::erase_if(gpu.filled, [&](const auto& filled) {
    if (filled.first >= before) return false;
    const GpuStages::Fill* fill = gpu.fills.find(filled.second);
    if (fill != nullptr && fill->time == filled.first) gpu.fills.erase(filled.second);
    return true;
  });
}

// --- Behind the slices.

void Chip::run_memory(int rank, std::int64_t round) {
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_by_tag(gpu.memory, round, taken)) return;
  stages_.prefetch_first(taken, true);
  const bool cached = device_.gpus[index(rank)].l2.exists();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    stages_.prefetch_whole(taken, i + kAhead);
    const Arrival& arrival = taken[i];
    const std::int32_t id = arrival.id;
    Request& request = device_.request(id);
    const std::int64_t time = memory_.through_memory(request, arrival.time);
    if (FlagMonitors::ends_in_memory(request)) {
      device_.release(id);
      continue;
    }
    const bool fills = cached && is_load(request.intent) && !request.uncached;
    const std::int32_t line = request.line;
    answer(rank, id, request, time);
    if (!fills) continue;
    GpuStages::Fill& fill = *gpu.fills.find(line);
    fill.time = time;
    gpu.filled.emplace_back(time, line);
    for (std::int32_t other = fill.first; other >= 0;) {
      Request& waiting = device_.request(other);
      const std::int32_t following = std::exchange(waiting.next_pending, -1);
      const std::int64_t there = std::max(time, waiting.queued_at);
      waiting.spent.charge(Reason::hbm, there - waiting.queued_at);
      answer(rank, other, waiting, there);
      other = following;
    }
  }
}

void Chip::answer_at(std::int32_t id, std::int64_t time) {
  Request& request = device_.request(id);
  request.local = request.target == request.source;
  answer(device_.home(request.place()), id, request, time);
}

// --- Merges on chip.

void Chip::run_cu_in(int rank, std::int64_t round) {
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_with_answers(gpu.cu_in, round, kFromSlices, kFromSlices + 1, taken)) return;
  stages_.prefetch_first(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    stages_.prefetch(taken, i + kAhead);
    const auto& [now, tag, id] = taken[i];
    Request& request = device_.request(id);
    const std::int64_t way = request.local ? gpu.way(request) : gpu.noc;
    const std::int64_t time =
        serve_at(gpu.cu_in_free[index(request.cu)], gpu.cu_in_costs[request.size], now) + way;
    request.spent.charge(Reason::noc, time - now);
    if (device_.options.trace != nullptr)
      tracing_.show_request(request, Reason::noc, now, time - way);
    gpu.done.push({time, gpu.home_cu_in + static_cast<std::uint32_t>(request.cu), id});
  }
  device_.counters().hops += std::ssize(taken);
}

}  // namespace hemiola::sim
