// The fluid engine: streams and kernels.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/fluid/fluid.h"
#include "sim/result/host_calls.h"

namespace hemiola::sim {

// --- Streams: as in cores_host.cc, by class of ranks.

void Fluid::show_stream(std::int32_t rank, std::int32_t stream, std::string_view name,
                        std::int64_t begin, std::int64_t end) const {
  if (options_.trace != nullptr && end > begin)
    options_.trace->stream(fold_.first_rank(rank), stream, name, {begin}, {end});
}

int Fluid::number_in_rank(const Agent& agent) const {
  const auto& streams = program_.codes()[index(program_.code_of()[index(agent.rank)])].streams;
  int before = 0;
  for (std::size_t s = 0; s <= index(agent.stream); ++s) {
    const std::size_t items = s < index(agent.stream) ? streams[s].size() : index(agent.item);
    for (std::size_t i = 0; i < items; ++i)
      if (streams[s][i].kind == program::StreamItem::Kind::kernel)
        before += static_cast<int>(program_.kernels()[index(streams[s][i].index)].bodies.size());
  }
  return before + agent.workgroup;
}

void Fluid::start() {
  for (std::int32_t c = 0; c < fold_.rank_classes(); ++c) {
    const FirstCall call = first_call(machine_, program_, options_, fold_.first_rank(c));
    ranks_[index(c)].launched = call.skew + call.called;
    Attribution spent{};
    charge(spent, Reason::skew, call.skew);
    charge(spent, Reason::software, call.called);
    charge(spent, Reason::launch, call.latency);
    push(call.start(), Kind::repeat, c, 0, &spent);
  }
}

// Calls of a job go on from where the running totals of their rank stand.
void Fluid::begin_walk(Walker& walker) {
  const RankState& state = ranks_[index(walker.rank_class)];
  if (program_.linked() == nullptr) {
    if (state.repetition > 0) walker.cursor->repeat();
    return;
  }
  const Agent& agent = walker.agent;
  walker.cursor = std::make_unique<program::Cursor>(program_, agent.rank, agent.body, agent.frame);
  walker.cursor->restart(state.repetition, state.totals);
}

void Fluid::end_walk(Walker& walker) {
  if (program_.linked() == nullptr) return;
  walker.cursor->leave(ranks_[index(walker.rank_class)].totals);
  walker.cursor.reset();
}

void Fluid::start_repetition(std::int32_t rank, std::int64_t now, const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  state.started = now;
  state.streams_done = 0;
  if (state.streams.empty()) {
    state.streams_done = -1;
    stream_done(rank, now, spent);
    return;
  }
  for (std::size_t s = 0; s < state.streams.size(); ++s) {
    state.streams[s].restart();
    show_stream(rank, static_cast<std::int32_t>(s), "launch", state.launched, now);
    start_item(rank, static_cast<std::int32_t>(s), now, spent);
  }
}

void Fluid::start_item(std::int32_t rank, std::int32_t number, std::int64_t now,
                       const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  Stream& stream = state.streams[index(number)];
  const auto& streams =
      program_.codes()[index(program_.code_of()[index(fold_.first_rank(rank))])].streams;
  const program::Stream& items = streams[index(number)];
  if (stream.item == items.size()) {
    stream_done(rank, now, spent);
    return;
  }
  const program::StreamItem& item = items[stream.item];
  stream.start(program_, item, now);
  switch (item.kind) {
    case program::StreamItem::Kind::kernel:
      start_kernel(rank, number, now, spent);
      return;
    case program::StreamItem::Kind::engine: {
      const std::int32_t agent = stream.copy_agent[stream.item];
      Walker& walker = walkers_[index(agent)];
      begin_walk(walker);
      walker.spent = spent;
      walker.time = now;
      walker.copied = false;
      if (item.prelaunched) {  // the poll that its turn ends
        const std::int64_t interval =
            std::max<std::int64_t>(1, machine_.model(walker.agent.rank).sync_poll_interval.fs);
        charge(walker.spent, Reason::poll, interval);
        walker.time += interval;
      }
      wake(agent);
      return;
    }
    case program::StreamItem::Kind::host: {
      Attribution later = spent;
      charge(later, Reason::launch, item.duration.fs);
      push(now + item.duration.fs, Kind::finished, rank, number, &later);
      return;
    }
    case program::StreamItem::Kind::event_record:
      state.events.record(item.index, state.repetition);
      for (std::size_t s = 0; s < state.streams.size(); ++s) {
        Stream& other = state.streams[s];
        if (!other.waits || streams[s][other.item].index != item.index) continue;
        other.waits = false;
        item_done(rank, static_cast<std::int32_t>(s), now, spent);
      }
      item_done(rank, number, now, spent);
      return;
    case program::StreamItem::Kind::event_wait:
      if (state.events.is_recorded(item.index, state.repetition))
        item_done(rank, number, now, spent);
      else
        stream.waits = true;
      return;
    case program::StreamItem::Kind::until: {
      const std::int64_t start = std::max(now, state.started + item.duration.fs);
      Attribution later = spent;
      charge(later, Reason::skew, start - now);
      push(start, Kind::finished, rank, number, &later);
      return;
    }
    case program::StreamItem::Kind::launch_begin:
      item_done(
          rank, number, now,
          launches_.begin(fold_.first_rank(rank), program_.frame(item.frame).launch, now, spent));
      return;
    case program::StreamItem::Kind::launch_end:
      launches_.end(fold_.first_rank(rank), program_.frame(item.frame).launch, now, spent);
      item_done(rank, number, now, spent);
      return;
  }
}

void Fluid::item_done(std::int32_t rank, std::int32_t number, std::int64_t now,
                      const Attribution& spent) {
  Stream& stream = ranks_[index(rank)].streams[index(number)];
  const int first = fold_.first_rank(rank);
  const program::Stream& items = program_.code(first).streams[index(number)];
  const program::StreamItem::Kind kind = items[stream.item].kind;
  if (kind != program::StreamItem::Kind::kernel)
    show_stream(rank, number, name_of(kind), stream.started, now);
  const NextCall next = next_item(stream, items, machine_.model(first), program_, options_, now);
  Attribution later = spent;
  charge(later, Reason::launch, next.alone - now);
  charge(later, Reason::software, next.start - next.alone);
  show_stream(rank, number, "launch", now, next.start);
  push(next.start, Kind::item, rank, number, &later);
}

void Fluid::stream_done(std::int32_t rank, std::int64_t now, const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  if (++state.streams_done < static_cast<std::int32_t>(state.streams.size())) return;
  ++state.repetition;
  state.launched = now;
  if (state.repetition == options_.warmup) state.warm_end = now;
  if (state.repetition == repetitions_) {
    state.end = now;
    state.spent = spent;
    ++ranks_done_;
    return;
  }
  const int first = fold_.first_rank(rank);
  const NextCall next = next_call(machine_, program_, options_, first, state.repetition, now,
                                  state.started + launch_interval(machine_.model(first), options_));
  Attribution later = spent;
  charge(later, Reason::launch, next.alone - now);
  charge(later, Reason::software, next.start - next.alone);
  push(next.start, Kind::repeat, rank, 0, &later);
}

// --- Kernels.

void Fluid::start_kernel(std::int32_t rank, std::int32_t stream, std::int64_t now,
                         const Attribution& spent) {
  const std::size_t item = ranks_[index(rank)].streams[index(stream)].item;
  Kernel& kernel = ranks_[index(rank)].streams[index(stream)].kernels[item];
  kernel.next = 0;
  kernel.left = std::ssize(kernel.agents);
  kernel.began = now;
  kernel.end = 0;
  kernel.spent = spent;
  for (const std::int32_t agent : kernel.agents) {
    Walker& walker = walkers_[index(agent)];
    begin_walk(walker);
    walker.last_op = -1;
    walker.fetched = false;
    walker.acknowledged = 0;
    walker.first_step = 0;
    walker.tiles = 0;
    walker.tiled = false;
  }
  if (kernel.agents.empty()) {
    Attribution later = spent;
    const std::int64_t latency =
        std::max<std::int64_t>(1, machine_.model(fold_.first_rank(rank)).launch_end_latency.fs);
    charge(later, Reason::launch, latency);
    show_stream(rank, stream, "end", now, now + latency);
    push(now + latency, Kind::finished, rank, stream, &later);
    return;
  }
  dispatch(rank, stream, static_cast<std::int32_t>(item), now);
}

/// Whether a stream that may use a part of the compute units only has room in it.
bool Fluid::has_part(std::int32_t rank, std::int32_t number, const Walker& walker) const {
  const int first = fold_.first_rank(rank);
  const std::int32_t units = program_.code(first).option(index(number)).units;
  if (units == 0) return true;
  const std::int64_t used = ranks_[index(rank)].streams[index(number)].room_used;
  return used == 0 || used + walker.room <= units * kRoomOfUnit;
}

/// `sign` -1: it leaves.
void Fluid::take_room(const Walker& walker, std::int64_t sign) {
  RankState& state = ranks_[index(walker.rank_class)];
  state.room -= sign * walker.room;
  state.streams[index(walker.agent.stream)].room_used += sign * walker.room;
  if (walker.has_products)
    state.blocks_of_products += sign * walker.per_rank * kRoomOfUnit / walker.unit.parts;
}

/// Kernels that wait, those of the highest priority first.
void Fluid::give_room(const Walker& walker) {
  RankState& state = ranks_[index(walker.rank_class)];
  if (state.blocked.empty()) return;
  const program::RankCode& code = program_.code(walker.agent.rank);
  std::vector<std::pair<std::int32_t, std::int32_t>> waiting;
  if (code.options.empty()) {
    waiting.push_back(state.blocked.front());
    state.blocked.erase(state.blocked.begin());
  } else {
    waiting.swap(state.blocked);
    std::stable_sort(waiting.begin(), waiting.end(), [&](const auto& a, const auto& b) {
      return code.option(index(a.first)).priority > code.option(index(b.first)).priority;
    });
  }
  for (const auto& [stream, item] : waiting) {
    state.streams[index(stream)].kernels[index(item)].spent = walker.spent;
    dispatch(walker.rank_class, stream, item, walker.time);
  }
}

// Workgroups in order, one per dispatch interval while compute units have room. A class starts with
// the last of its members.
void Fluid::dispatch(std::int32_t rank, std::int32_t stream, std::int32_t item, std::int64_t now) {
  RankState& state = ranks_[index(rank)];
  Kernel& kernel = state.streams[index(stream)].kernels[index(item)];
  const machine::GpuModel& model = machine_.model(fold_.first_rank(rank));
  const std::int64_t all = model.cu_count * kRoomOfUnit;
  const std::int64_t interval = std::max<std::int64_t>(1, model.dispatch_interval.fs);
  while (kernel.next < kernel.agents.size()) {
    const std::int32_t agent = kernel.agents[kernel.next];
    Walker& walker = walkers_[index(agent)];
    if ((state.room < walker.room && state.room < all) || !has_part(rank, stream, walker)) {
      state.blocked.emplace_back(stream, item);
      return;
    }
    take_room(walker, 1);
    ++kernel.next;
    const program::Kernel& code = program_.kernels()[index(walker.agent.kernel)];
    const std::int64_t number =
        code.block_number(index(fold_.agents()[index(agent)].last_workgroup));
    const std::int64_t at = std::max(now, kernel.began + interval * number);
    const std::int64_t latency = std::max<std::int64_t>(
        1, model.dispatch_latency.fs + (code.largest_tile > 0 ? model.gemm_setup.fs : 0));
    walker.spent = kernel.spent;
    walker.time = std::accumulate(walker.spent.begin(), walker.spent.end(), std::int64_t{0});
    charge(walker.spent, Reason::dispatch, at + latency - walker.time);
    walker.time = at + latency;
    walker.dispatched = at;
    walker.poster = walker.time;
    walker.poster_spent = walker.spent;
    wake(agent);
  }
}

// The end of a kernel is a release: all its stores are acknowledged.
void Fluid::agent_over(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  walker.blocked = Blocked::over;
  end_walk(walker);
  if (walker.agent.kernel < 0 && options_.one_host && walker.copied) {
    const std::int64_t each = machine_.model(walker.agent.rank).dma_completion_time.fs;
    const std::int64_t seen = by_host(walker.time, each * walker.members, walker.spent);
    push(seen, Kind::finished, walker.rank_class, walker.agent.stream, &walker.spent);
    return;
  }
  if (walker.agent.kernel < 0) {
    item_done(walker.rank_class, walker.agent.stream, walker.time, walker.spent);
    return;
  }
  if (walker.posts_apart && walker.poster > walker.time) {
    walker.time = walker.poster;
    walker.spent = walker.poster_spent;
  }
  if (options_.trace != nullptr)
    options_.trace->workgroup(walker.agent.rank, walker.agent.stream, number_in_rank(walker.agent),
                              {walker.dispatched}, {walker.time});
  take_room(walker, -1);
  give_room(walker);
  const bool stores = walker.acknowledged > walker.time;
  part_over(walker, stores ? walker.acknowledged : walker.time,
            stores ? walker.acknowledged_spent : walker.spent);
}

void Fluid::part_over(const Walker& walker, std::int64_t time, const Attribution& spent) {
  Kernel& kernel = kernel_of(walker);
  if (time > kernel.end) {
    kernel.end = time;
    kernel.end_spent = spent;
  }
  if (--kernel.left > 0) return;
  const std::int64_t latency =
      std::max<std::int64_t>(1, machine_.model(walker.agent.rank).launch_end_latency.fs);
  const std::string& name = program_.kernels()[index(walker.agent.kernel)].name;
  show_stream(walker.rank_class, walker.agent.stream, name, kernel.began, kernel.end);
  show_stream(walker.rank_class, walker.agent.stream, "end", kernel.end, kernel.end + latency);
  Attribution later = kernel.end_spent;
  charge(later, Reason::launch, latency);
  push(kernel.end + latency, Kind::finished, walker.rank_class, walker.agent.stream, &later);
}

}  // namespace hemiola::sim
