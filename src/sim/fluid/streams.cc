// Streams and kernels.
#include "sim/fluid/streams.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/model/host_streams.h"
#include "sim/result/host_calls.h"
#include "sim/result/period_shares.h"

namespace hemiola::sim::fluid {

Streams::Streams(Run& run)
    : run_(run),
      machine_(run.machine),
      program_(run.program),
      options_(run.options),
      launches_(program_),
      repetitions_(options_.iterations > 0 ? options_.warmup + options_.iterations : 1) {
  for (std::int32_t c = 0; c < run.fold.rank_classes(); ++c) {
    RankState& state = ranks_.emplace_back();
    state.room = machine_.model(first_rank(c)).cu_count * kRoomOfUnit;
    for (const program::Stream& items : program_.code(first_rank(c)).streams) {
      Stream& stream = state.streams.emplace_back();
      stream.kernels.resize(items.size());
      stream.copy_agent.assign(items.size(), -1);
    }
  }
  for (const Walker& walker : run.walkers) {
    Stream& stream = ranks_[index(walker.rank_class)].streams[index(walker.agent.stream)];
    if (walker.agent.kernel < 0)
      stream.copy_agent[index(walker.agent.item)] = walker.number;
    else
      kernel_of(walker).agents.push_back(walker.number);
  }
}

void Streams::show_stream(std::int32_t rank, std::int32_t stream, std::string_view name,
                          std::int64_t begin, std::int64_t end) const {
  if (options_.trace != nullptr && end > begin)
    options_.trace->stream(first_rank(rank), stream, name, {begin}, {end});
}

void Streams::start() {
  for (std::int32_t c = 0; c < run_.fold.rank_classes(); ++c) {
    const FirstCall call = first_call(machine_, program_, options_, first_rank(c));
    ranks_[index(c)].launched = call.skew + call.called;
    Attribution spent{};
    charge(spent, Reason::skew, call.skew);
    charge(spent, Reason::software, call.called);
    charge(spent, Reason::launch, call.latency);
    run_.events.push(call.start(), EventKind::repeat, c, 0, &spent);
  }
}

void Streams::come_to(HostStep step, std::int32_t rank, std::int32_t stream, std::int64_t now,
                      const Attribution& spent) {
  HostStreams<Streams, Attribution>(*this, false).come_to(step, rank, stream, now, spent);
}

void Streams::start_work(std::int32_t rank, std::int32_t number, std::int64_t now,
                         const Attribution& spent) {
  const Stream& stream = ranks_[index(rank)].streams[index(number)];
  const std::int32_t agent = stream.copy_agent[stream.item];
  if (agent < 0) return start_kernel(rank, number, now, spent);
  Walker& walker = run_.walkers[index(agent)];
  begin(walker);
  walker.at = {now, spent};
  walker.copied = false;
  if (program_.code(first_rank(rank)).streams[index(number)][stream.item].prelaunched) {
    // The poll that its turn ends.
    const std::int64_t interval =
        std::max<std::int64_t>(1, run_.model(walker).sync_poll_interval.fs);
    walker.at.add(Reason::poll, interval);
  }
  run_.wake(agent);
}

void Streams::push_host(HostStep step, std::int64_t at, std::int32_t rank, std::int32_t stream,
                        const Attribution& spent) {
  constexpr EventKind kKinds[] = {EventKind::repeat, EventKind::item, EventKind::finished};
  run_.events.push(at, kKinds[index(step)], rank, stream, &spent);
}

void Streams::begin(Walker& walker) {
  const Agent& agent = walker.agent;
  begin_walk(walker.place.cursor, program_, ranks_[index(walker.rank_class)], agent.rank,
             agent.body, agent.frame);
}

// --- Kernels.

void Streams::start_kernel(std::int32_t rank, std::int32_t stream, std::int64_t now,
                           const Attribution& spent) {
  const std::size_t item = ranks_[index(rank)].streams[index(stream)].item;
  Kernel& kernel = ranks_[index(rank)].streams[index(stream)].kernels[item];
  kernel.next = 0;
  kernel.left = std::ssize(kernel.agents);
  kernel.began = now;
  kernel.end.time = 0;
  kernel.spent = spent;
  for (const std::int32_t agent : kernel.agents) {
    Walker& walker = run_.walkers[index(agent)];
    begin(walker);
    walker.place.last_op = -1;
    walker.fetched = false;
    walker.acknowledged.time = 0;
    walker.place.tiles = 0;
    walker.place.tiled = false;
  }
  if (kernel.agents.empty()) {
    return end_kernel(rank, stream, {now, spent});
  }
  dispatch(rank, stream, static_cast<std::int32_t>(item), now);
}

/// Whether a stream that may use a part of the compute units only has room in it.
bool Streams::has_part(std::int32_t rank, std::int32_t number, const Walker& walker) const {
  const int first = first_rank(rank);
  const std::int32_t units = program_.code(first).option(index(number)).units;
  if (units == 0) return true;
  const std::int64_t used = ranks_[index(rank)].streams[index(number)].room_used;
  return used == 0 || used + walker.room <= units * kRoomOfUnit;
}

/// `sign` -1: it leaves.
void Streams::take_room(const Walker& walker, std::int64_t sign) {
  RankState& state = ranks_[index(walker.rank_class)];
  state.room -= sign * walker.room;
  state.streams[index(walker.agent.stream)].room_used += sign * walker.room;
  if (walker.has_products)
    state.blocks_of_products += sign * walker.per_rank * kRoomOfUnit / walker.unit.parts;
}

void Streams::share_unit(Walker& walker) const {
  const std::int64_t all = run_.model(walker).cu_count * kRoomOfUnit;
  const std::int64_t blocks = ranks_[index(walker.rank_class)].blocks_of_products;
  walker.sharing = std::clamp<std::int64_t>((blocks + all - 1) / all, 1, walker.most_sharing);
}

/// Kernels that wait, those of the highest priority first.
void Streams::give_room(const Walker& walker) {
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
void Streams::dispatch(std::int32_t rank, std::int32_t stream, std::int32_t item,
                       std::int64_t now) {
  RankState& state = ranks_[index(rank)];
  Kernel& kernel = state.streams[index(stream)].kernels[index(item)];
  const machine::GpuModel& model = machine_.model(first_rank(rank));
  const std::int64_t all = model.cu_count * kRoomOfUnit;
  const std::int64_t interval = std::max<std::int64_t>(1, model.dispatch_interval.fs);
  while (kernel.next < kernel.agents.size()) {
    const std::int32_t agent = kernel.agents[kernel.next];
    Walker& walker = run_.walkers[index(agent)];
    if ((state.room < walker.room && state.room < all) || !has_part(rank, stream, walker)) {
      state.blocked.emplace_back(stream, item);
      return;
    }
    take_room(walker, 1);
    ++kernel.next;
    const program::Kernel& code = program_.kernels()[index(walker.agent.kernel)];
    const std::int64_t number =
        code.block_number(index(run_.fold.agents()[index(agent)].last_workgroup));
    const std::int64_t at = std::max(now, kernel.began + interval * number);
    const std::int64_t latency = std::max<std::int64_t>(
        1, model.dispatch_latency.fs + (code.largest_tile > 0 ? model.gemm_setup.fs : 0));
    const auto& spent = kernel.spent;
    walker.at = {std::accumulate(spent.begin(), spent.end(), std::int64_t{0}), spent};
    walker.at.add(Reason::dispatch, at + latency - walker.at.time);
    walker.dispatched = at;
    walker.poster = walker.at;
    run_.wake(agent);
  }
}

// The end of a kernel is a release: all its stores are acknowledged.
void Streams::agent_over(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  walker.blocked = Blocked::over;
  end_walk(walker.place.cursor, program_, ranks_[index(walker.rank_class)]);
  if (walker.agent.kernel < 0 && options_.one_host && walker.copied) {
    const std::int64_t each = run_.model(walker).dma_completion_time.fs;
    const std::int64_t seen = by_host(walker.at.time, each * walker.members, walker.at.spent);
    run_.events.push(seen, EventKind::finished, walker.rank_class, walker.agent.stream,
                     &walker.at.spent);
    return;
  }
  if (walker.agent.kernel < 0) {
    come_to(HostStep::finished, walker.rank_class, walker.agent.stream, walker.at.time,
            walker.at.spent);
    return;
  }
  if (walker.posts_apart) walker.at.join(walker.poster);
  if (options_.trace != nullptr)
    options_.trace->workgroup(walker.agent.rank, walker.agent.stream,
                              run_.number_in_rank(walker.agent), {walker.dispatched},
                              {walker.at.time});
  take_room(walker, -1);
  give_room(walker);
  part_over(walker, walker.acknowledged.time > walker.at.time ? walker.acknowledged : walker.at);
}

void Streams::part_over(const Walker& walker, const Moment& end) {
  Kernel& kernel = kernel_of(walker);
  kernel.end.join(end);
  if (--kernel.left > 0) return;
  const std::string& name = program_.kernels()[index(walker.agent.kernel)].name;
  show_stream(walker.rank_class, walker.agent.stream, name, kernel.began, kernel.end.time);
  end_kernel(walker.rank_class, walker.agent.stream, kernel.end);
}

void Streams::end_kernel(std::int32_t rank, std::int32_t stream, Moment end) {
  const std::int64_t began = end.time;
  end.add(Reason::launch,
          std::max<std::int64_t>(1, machine_.model(first_rank(rank)).launch_end_latency.fs));
  show_stream(rank, stream, "end", began, end.time);
  run_.events.push(end.time, EventKind::finished, rank, stream, &end.spent);
}

std::int64_t Streams::by_host(std::int64_t now, std::int64_t time, Attribution& spent) {
  host_free_ = std::max(now, host_free_) + time;
  charge(spent, Reason::dma, host_free_ - now);
  return host_free_;
}

// --- The end.

Result Streams::result() const {
  Result result;
  std::int64_t end = 0, warm = 0;
  for (const RankState& rank : ranks_) {
    end = std::max(end, rank.end);
    warm = std::max(warm, rank.warm_end);
  }
  const bool period = options_.iterations > 0;
  result.time = {period ? (end - warm) / options_.iterations : end};
  std::vector<Attribution> by_class;
  for (const RankState& rank : ranks_) {
    Attribution spent = rank.spent;
    if (program_.linked() != nullptr) spent = launches_.whole(spent);
    charge(spent, Reason::finished, end - rank.end);
    if (period) scale_to_period(spent, end, result.time);
    by_class.push_back(spent);
  }
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    const std::size_t number = index(run_.fold.rank_class(rank));
    result.attribution.push_back(by_class[number]);
    result.rank_end.push_back({period ? result.time.fs : ranks_[number].end});
  }
  std::vector<int> home;
  for (int rank = 0; rank < program_.ranks(); ++rank)
    home.push_back(first_rank(run_.fold.rank_class(rank)));
  result.launches = launches_.results(home);
  result.visited_hops = run_.shares.updates();
  return result;
}

void Streams::report_waits(Diagnostics& waits) const {
  for (std::size_t c = 0; c < ranks_.size(); ++c) {
    for (std::size_t s = 0; s < ranks_[c].streams.size(); ++s) {
      if (!ranks_[c].streams[s].waits) continue;
      waits.error("rank " + std::to_string(first_rank(static_cast<std::int32_t>(c))) + " stream " +
                      std::to_string(s) + " waits for an event that nobody records",
                  {.file = program_.source()});
    }
  }
}

}  // namespace hemiola::sim::fluid
