// The fluid engine: events, streams, kernels.

#include "sim/fluid.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/host_calls.h"

namespace hemiola::sim {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

Fluid::Fluid(const machine::Machine& machine, const program::Bound& program, const Options& options,
             AlikeBy by)
    : machine_(machine),
      program_(program),
      options_(options),
      fold_(machine, program, options, by),
      ways_(machine, program, fold_, shares_),
      launches_(program) {
  repetitions_ = options.iterations > 0 ? options.warmup + options.iterations : 1;
  barrier_base_ = static_cast<std::int32_t>(program.semaphores().size());
  semaphores_.resize(index(fold_.semaphore_classes() + fold_.rank_classes() * program.barriers()));
  if (!program.semaphores().empty()) {
    for (std::int32_t c = 0; c < fold_.rank_classes(); ++c) {
      for (std::int32_t s = 0; s < barrier_base_; ++s)
        semaphores_[index(semaphore_class({fold_.first_rank(c), s}))].value =
            program.semaphores()[index(s)].initial;
    }
  }
  make_agents();
}

void Fluid::make_agents() {
  for (std::int32_t c = 0; c < fold_.rank_classes(); ++c) {
    const int rank = fold_.first_rank(c);
    const machine::GpuModel& model = machine_.model(rank);
    RankState& state = ranks_.emplace_back();
    state.units_free.assign(index(model.cu_count), 0);
    state.threads_free = model.cu_count * model.cu_max_threads;
    for (const program::Stream& items :
         program_.codes()[index(program_.code_of()[index(rank)])].streams) {
      Stream& stream = state.streams.emplace_back();
      stream.kernels.resize(items.size());
      stream.copy_agent.assign(items.size(), -1);
    }
  }
  for (std::size_t a = 0; a < fold_.agents().size(); ++a) {
    const AgentClass& agents = fold_.agents()[a];
    Walker& walker = walkers_.emplace_back();
    walker.number = static_cast<std::int32_t>(a);
    walker.agent = agents.first;
    walker.rank_class = fold_.rank_class(agents.first.rank);
    walker.members = agents.members;
    walker.per_rank = agents.members / fold_.ranks_in(walker.rank_class);
    if (program_.linked() == nullptr)
      walker.cursor =
          std::make_unique<program::Cursor>(program_, agents.first.rank, agents.first.body);
    Stream& stream = ranks_[index(walker.rank_class)].streams[index(agents.first.stream)];
    if (agents.first.kernel < 0) {
      stream.copy_agent[index(agents.first.item)] = walker.number;
      continue;
    }
    const program::Kernel& kernel = program_.kernels()[index(agents.first.kernel)];
    const machine::GpuModel& model = machine_.model(agents.first.rank);
    const std::int64_t threads = kernel.threads_in(index(agents.first.workgroup));
    walker.waves = (threads + model.cu_wavefront_size - 1) / model.cu_wavefront_size;
    walker.posts_apart = kernel.posts_apart && walker.waves > 1;
    walker.movers = walker.waves - (walker.posts_apart ? 1 : 0);
    walker.grain = kernel.grain;
    walker.unroll = std::max<std::int64_t>(1, kernel.unroll > 0 ? kernel.unroll : model.cu_unroll);
    walker.bare = kernel.bare;
    walker.cu = static_cast<std::int32_t>(agents.first.workgroup % model.cu_count);
    const std::size_t block = kernel.block_of(index(agents.first.workgroup));
    walker.parts = static_cast<std::int64_t>(kernel.parts_from(block));
    const std::int64_t each = std::clamp<std::int64_t>(
        model.cu_max_threads / std::max<std::int64_t>(1, kernel.threads_in_block(block)), 1,
        model.cu_max_workgroups);
    walker.sharing = std::clamp<std::int64_t>(
        (kernel.block_count() + model.cu_count - 1) / model.cu_count, 1, each);
    Kernel& run = stream.kernels[index(agents.first.item)];
    run.agents.push_back(walker.number);
    const auto& ops = program_.bodies()[index(agents.first.body)].ops;
    run.products = run.products || std::any_of(ops.begin(), ops.end(), [](const program::Op& op) {
                     return op.product.m > 0;
                   });
  }
}

// --- Events.

void Fluid::push(std::int64_t time, Kind kind, std::int32_t a, std::int32_t b,
                 const Attribution* spent) {
  std::int32_t kept = -1;
  if (spent != nullptr) {
    kept = kept_.take();
    kept_[index(kept)] = *spent;
  }
  events_.push({time, sequence_++, kind, a, b, kept});
}

void Fluid::handle(const Event& event) {
  Attribution spent{};
  if (event.kept >= 0) {
    spent = kept_[index(event.kept)];
    kept_.give_back(event.kept);
  }
  switch (event.kind) {
    case Kind::repeat:
      return start_repetition(event.a, event.time, spent);
    case Kind::item:
      return start_item(event.a, event.b, event.time, spent);
    case Kind::finished:
      return item_done(event.a, event.b, event.time, spent);
    case Kind::wake: {
      const Blocked wanted = event.b == 1 ? Blocked::packets : Blocked::time;
      if (walkers_[index(event.a)].blocked == wanted) advance(event.a);
      return;
    }
    case Kind::depart:
      return depart(event.a, event.time);
    case Kind::arrive:
      return arrive(event.a, event.time);
    case Kind::proxy:
      return to_engine(event.a, event.time);
    case Kind::transfer:
      return begin_transfer(event.a, event.time);
    case Kind::done:
      return descriptor_done(event.a, event.time);
    case Kind::computed:
      return computed(event.a, event.time);
  }
}

void Fluid::start_flow(FlowKind kind, std::int32_t a, std::int32_t b, std::int64_t bytes,
                       std::int64_t limit, Reason reason, const Attribution& spent) {
  const std::int32_t flow = shares_.start(demands_, bytes, limit, reason, now_);
  if (index(flow) >= flows_.size()) flows_.resize(index(flow) + 1);
  flows_[index(flow)] = {kind, a, b, spent};
}

void Fluid::flow_over(std::int32_t flow, const Attribution& charged, std::int64_t now) {
  const FlowUse use = flows_[index(flow)];
  Attribution spent = use.spent;
  for (std::size_t r = 0; r < kReasons; ++r) spent[r] += charged[r];
  switch (use.kind) {
    case FlowKind::move: {
      Walker& walker = walkers_[index(use.a)];
      walker.spent = spent;
      walker.time = now;
      walker.stage = 2;
      walker.blocked = Blocked::no;
      advance(use.a);
      return;
    }
    case FlowKind::behind:
      return moved_behind(use.a, spent, now);
    case FlowKind::flag: {
      Signal& signal = signals_[index(use.a)];
      const Latency& way = ways_.store(signal.from, signal.id.rank);
      signal.spent = spent;
      charge(signal.spent, way);
      push(now + way.fs, Kind::arrive, use.a);
      return;
    }
    case FlowKind::transfer:
      return transferred(use.a, use.b, spent, now);
    case FlowKind::operand:
      return operand_loaded(use.a, use.b, spent, now);
  }
}

std::optional<Result> Fluid::run() {
  start();
  while (ranks_done_ < fold_.rank_classes()) {
    const std::int64_t event = events_.empty() ? kNever : events_.top().time;
    const std::int64_t flow = shares_.next();
    if (!shares_.settled() && event > now_ && flow > now_) {
      shares_.settle(now_);
      continue;
    }
    if (event == kNever && flow == kNever) {
      if (fold_.folded()) return std::nullopt;
      report_deadlock();
    }
    if (flow < event) {
      now_ = flow;
      Attribution charged{};
      const std::int32_t number = shares_.finish(charged);
      flow_over(number, charged, now_);
    } else {
      const Event next = events_.top();
      events_.pop();
      now_ = next.time;
      handle(next);
    }
  }
  return result();
}

// --- Streams: as in cores_host.cc, by class of ranks.

std::int64_t Fluid::launch_interval(const machine::GpuModel& model) const {
  return options_.launch == Launch::graph ? model.launch_graph_interval.fs
                                          : model.launch_stream_interval.fs;
}

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
    for (std::size_t i = 0; i < items; ++i) {
      if (streams[s][i].kind == program::StreamItem::Kind::kernel)
        before += static_cast<int>(program_.kernels()[index(streams[s][i].index)].bodies.size());
    }
  }
  return before + agent.workgroup;
}

void Fluid::start() {
  for (std::int32_t c = 0; c < fold_.rank_classes(); ++c) {
    const int rank = fold_.first_rank(c);
    const machine::GpuModel& model = machine_.model(rank);
    const std::int64_t skew = skew_of(options_, rank);
    const std::int64_t called = call_time(machine_, program_, options_, rank, 0);
    const std::int64_t latency = std::max<std::int64_t>(1, options_.launch == Launch::graph
                                                               ? model.launch_graph_latency.fs
                                                               : model.launch_stream_latency.fs);
    ranks_[index(c)].launched = skew + called;
    Attribution spent{};
    charge(spent, Reason::skew, skew);
    charge(spent, Reason::software, called);
    charge(spent, Reason::launch, latency);
    push(skew + called + latency, Kind::repeat, c, 0, &spent);
  }
}

// A job has every rank as a class of its own.
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
    state.streams[s].item = 0;
    state.streams[s].kernel_began = -1;
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
  stream.started = now;
  const program::StreamItem& item = items[stream.item];
  const auto event = [&]() -> std::int32_t& {
    state.events.resize(std::max(state.events.size(), index(item.index) + 1), -1);
    return state.events[index(item.index)];
  };
  switch (item.kind) {
    case program::StreamItem::Kind::kernel:
      stream.kernel_began = now;
      start_kernel(rank, number, now, spent);
      return;
    case program::StreamItem::Kind::engine: {
      const std::int32_t agent = stream.copy_agent[stream.item];
      Walker& walker = walkers_[index(agent)];
      begin_walk(walker);
      walker.spent = spent;
      walker.time = now;
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
      event() = state.repetition;
      for (std::size_t s = 0; s < state.streams.size(); ++s) {
        Stream& other = state.streams[s];
        if (!other.waits || streams[s][other.item].index != item.index) continue;
        other.waits = false;
        item_done(rank, static_cast<std::int32_t>(s), now, spent);
      }
      item_done(rank, number, now, spent);
      return;
    case program::StreamItem::Kind::event_wait:
      if (event() == state.repetition) {
        item_done(rank, number, now, spent);
      } else {
        stream.waits = true;
      }
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
  const program::Stream& items =
      program_.codes()[index(program_.code_of()[index(first)])].streams[index(number)];
  const auto is_kernel = [&](std::size_t i) {
    return i < items.size() && items[i].kind == program::StreamItem::Kind::kernel;
  };
  const bool kernels = is_kernel(stream.item) && is_kernel(stream.item + 1);
  if (!is_kernel(stream.item))
    show_stream(rank, number, name_of(items[stream.item].kind), stream.started, now);
  ++stream.item;
  std::int64_t start = now;
  if (kernels) start = std::max(now, stream.started + launch_interval(machine_.model(first)));
  // Between kernels of a job stand items that take no time.
  if (program_.linked() != nullptr && is_kernel(stream.item) && stream.kernel_began >= 0)
    start = std::max(now, stream.kernel_began + launch_interval(machine_.model(first)));
  Attribution later = spent;
  charge(later, Reason::launch, start - now);
  show_stream(rank, number, "launch", now, start);
  push(start, Kind::item, rank, number, &later);
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
                                  state.started + launch_interval(machine_.model(first)));
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
  kernel.products_began = -1;
  kernel.power_free = 0;
  for (const std::int32_t agent : kernel.agents) {
    Walker& walker = walkers_[index(agent)];
    begin_walk(walker);
    walker.last_op = -1;
    walker.fetched = false;
    walker.acknowledged = 0;
    walker.first_step = 0;
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

std::int64_t Fluid::room(const Walker& walker) const {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const std::int64_t threads = walker.waves * model.cu_wavefront_size;
  const std::int64_t each = std::clamp<std::int64_t>(
      model.cu_max_threads / std::max<std::int64_t>(1, threads), 1, model.cu_max_workgroups);
  return model.cu_max_threads / each * walker.per_rank;
}

/// Whether a stream that may use a part of the compute units only has room in it.
bool Fluid::has_part(std::int32_t rank, std::int32_t number, const Walker& walker) const {
  const int first = fold_.first_rank(rank);
  const std::int32_t units = program_.code(first).option(index(number)).units;
  if (units == 0) return true;
  const std::int64_t used = ranks_[index(rank)].streams[index(number)].threads_used;
  return used == 0 || used + room(walker) <= units * machine_.model(first).cu_max_threads;
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
  const std::int64_t all = model.cu_count * model.cu_max_threads;
  const std::int64_t interval = std::max<std::int64_t>(1, model.dispatch_interval.fs);
  while (kernel.next < kernel.agents.size()) {
    const std::int32_t agent = kernel.agents[kernel.next];
    Walker& walker = walkers_[index(agent)];
    if ((state.threads_free < room(walker) && state.threads_free < all) ||
        !has_part(rank, stream, walker)) {
      state.blocked.emplace_back(stream, item);
      return;
    }
    state.threads_free -= room(walker);
    state.streams[index(stream)].threads_used += room(walker);
    ++kernel.next;
    const std::int64_t number = program_.kernels()[index(walker.agent.kernel)].block_number(
        index(fold_.agents()[index(agent)].last_workgroup));
    const std::int64_t at = std::max(now, kernel.began + interval * number);
    const std::int64_t latency = std::max<std::int64_t>(
        1, model.dispatch_latency.fs + (kernel.products ? model.gemm_setup.fs : 0));
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
  RankState& state = ranks_[index(walker.rank_class)];
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
  state.threads_free += room(walker);
  state.streams[index(walker.agent.stream)].threads_used -= room(walker);
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
