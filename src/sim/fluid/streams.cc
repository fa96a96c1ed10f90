// The fluid engine: streams and kernels.
#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/fluid/fluid.h"
#include "sim/model/host_streams.h"
#include "sim/result/host_calls.h"

namespace hemiola::sim {

void Fluid::show_stream(std::int32_t rank, std::int32_t stream, std::string_view name,
                        std::int64_t begin, std::int64_t end) const {
  if (options_.trace != nullptr && end > begin)
    options_.trace->stream(fold_.first_rank(rank), stream, name, {begin}, {end});
}

int Fluid::number_in_rank(const Agent& agent) const {
  const auto& streams = program_.code(agent.rank).streams;
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

void Fluid::come_to(HostStep step, std::int32_t rank, std::int32_t stream, std::int64_t now,
                    const Attribution& spent) {
  HostStreams<Fluid, Attribution>(*this, false).come_to(step, rank, stream, now, spent);
}

void Fluid::start_work(std::int32_t rank, std::int32_t number, std::int64_t now,
                       const Attribution& spent) {
  const Stream& stream = ranks_[index(rank)].streams[index(number)];
  const std::int32_t agent = stream.copy_agent[stream.item];
  if (agent < 0) return start_kernel(rank, number, now, spent);
  Walker& walker = walkers_[index(agent)];
  begin(walker);
  walker.at = {now, spent};
  walker.copied = false;
  if (program_.code(first_rank(rank)).streams[index(number)][stream.item].prelaunched) {
    // The poll that its turn ends.
    const std::int64_t interval =
        std::max<std::int64_t>(1, machine_.model(walker.agent.rank).sync_poll_interval.fs);
    walker.at.add(Reason::poll, interval);
  }
  wake(agent);
}

void Fluid::push_host(HostStep step, std::int64_t at, std::int32_t rank, std::int32_t stream,
                      const Attribution& spent) {
  constexpr Kind kKinds[] = {Kind::repeat, Kind::item, Kind::finished};
  push(at, kKinds[index(step)], rank, stream, &spent);
}

void Fluid::begin(Walker& walker) {
  const Agent& agent = walker.agent;
  begin_walk(walker.cursor, program_, ranks_[index(walker.rank_class)], agent.rank, agent.body,
             agent.frame);
}

// --- Kernels.

void Fluid::start_kernel(std::int32_t rank, std::int32_t stream, std::int64_t now,
                         const Attribution& spent) {
  const std::size_t item = ranks_[index(rank)].streams[index(stream)].item;
  Kernel& kernel = ranks_[index(rank)].streams[index(stream)].kernels[item];
  kernel.next = 0;
  kernel.left = std::ssize(kernel.agents);
  kernel.began = now;
  kernel.end.time = 0;
  kernel.spent = spent;
  for (const std::int32_t agent : kernel.agents) {
    Walker& walker = walkers_[index(agent)];
    begin(walker);
    walker.last_op = -1;
    walker.fetched = false;
    walker.acknowledged.time = 0;
    walker.first_step = 0;
    walker.tiles = 0;
    walker.tiled = false;
  }
  if (kernel.agents.empty()) {
    return end_kernel(rank, stream, {now, spent});
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
    std::ranges::stable_sort(waiting, [&](const auto& a, const auto& b) {
      return code.option(index(a.first)).priority > code.option(index(b.first)).priority;
    });
  }
  for (const auto& [stream, item] : waiting) {
    state.streams[index(stream)].kernels[index(item)].spent = walker.at.spent;
    dispatch(walker.rank_class, stream, item, walker.at.time);
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
    const auto& spent = kernel.spent;
    walker.at = {std::accumulate(spent.begin(), spent.end(), std::int64_t{0}), spent};
    walker.at.add(Reason::dispatch, at + latency - walker.at.time);
    walker.dispatched = at;
    walker.poster = walker.at;
    wake(agent);
  }
}

// The end of a kernel is a release: all its stores are acknowledged.
void Fluid::agent_over(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  walker.blocked = Blocked::over;
  end_walk(walker.cursor, program_, ranks_[index(walker.rank_class)]);
  if (walker.agent.kernel < 0 && options_.one_host && walker.copied) {
    const std::int64_t each = machine_.model(walker.agent.rank).dma_completion_time.fs;
    const std::int64_t seen = by_host(walker.at.time, each * walker.members, walker.at.spent);
    push(seen, Kind::finished, walker.rank_class, walker.agent.stream, &walker.at.spent);
    return;
  }
  if (walker.agent.kernel < 0) {
    come_to(HostStep::finished, walker.rank_class, walker.agent.stream, walker.at.time,
            walker.at.spent);
    return;
  }
  if (walker.posts_apart) walker.at.join(walker.poster);
  if (options_.trace != nullptr)
    options_.trace->workgroup(walker.agent.rank, walker.agent.stream, number_in_rank(walker.agent),
                              {walker.dispatched}, {walker.at.time});
  take_room(walker, -1);
  give_room(walker);
  part_over(walker, walker.acknowledged.time > walker.at.time ? walker.acknowledged : walker.at);
}

void Fluid::part_over(const Walker& walker, const Moment& end) {
  Kernel& kernel = kernel_of(walker);
  kernel.end.join(end);
  if (--kernel.left > 0) return;
  const std::string& name = program_.kernels()[index(walker.agent.kernel)].name;
  show_stream(walker.rank_class, walker.agent.stream, name, kernel.began, kernel.end.time);
  end_kernel(walker.rank_class, walker.agent.stream, kernel.end);
}

void Fluid::end_kernel(std::int32_t rank, std::int32_t stream, Moment end) {
  const std::int64_t began = end.time;
  end.add(Reason::launch,
          std::max<std::int64_t>(1, machine_.model(fold_.first_rank(rank)).launch_end_latency.fs));
  show_stream(rank, stream, "end", began, end.time);
  push(end.time, Kind::finished, rank, stream, &end.spent);
}

}  // namespace hemiola::sim
