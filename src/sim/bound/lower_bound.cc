// Two lower bounds of a program on a machine. Bandwidth: its wire bytes over each cut. Latency: its
// dependency path with every request alone on its way.
//
// Both hold for every engine, because they leave things out only: queueing, contention, partial
// lines, the time between polls. A simulated time below them is an internal error.

#include "sim/bound/lower_bound.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "sim/bound/walk.h"
#include "sim/result/host_calls.h"
#include "sim/simulate.h"
#include "sim/support/index.h"

namespace hemiola::sim {

BoundWalk::BoundWalk(const machine::Machine& machine, const program::Bound& program,
                     const Options& options, const Addresses& addresses, int period, bool alike)
    : machine_(machine),
      program_(program),
      options_(options),
      addresses_(addresses),
      period_(period),
      traffic_(machine),
      latencies_(machine, program, alike ? program.ranks() : period) {}

BoundWalk::BoundWalk(const machine::Machine& machine, const program::Bound& program,
                     const Options& options, const Addresses& addresses, const Classes& classes)
    : BoundWalk(machine, program, options, addresses, program.ranks(), true) {
  classes_ = &classes;
}

LowerBound BoundWalk::run() {
  if (program_.linked() != nullptr)
    start_hosts();
  else if (classes_ != nullptr)
    add_classes();
  else
    for (int rank = 0; rank < period_; ++rank) add_rank(rank);
  bool moved = true;
  while (moved) {
    moved = false;
    for (Host& host : hosts_) moved = advance(host) || moved;
    for (std::size_t a = first_open_; a < agents_.size(); ++a) moved = advance(agents_[a]) || moved;
  }
  count_posts();
  traffic_.repeat(period_, program_.ranks(), program_.groups());
  LowerBound bound = traffic_.bound(program_.groups(), classes_);
  bound.moved_bytes = moved_bytes_;
  bound.posted_bytes = posted_bytes_;
  bound.ranks = period_;
  const bool complete =
      std::ranges::all_of(agents_, [](const Agent& agent) { return agent.done; }) &&
      std::ranges::all_of(hosts_, [](const Host& host) { return host.done; });
  std::int64_t end = 0;
  for (const Agent& agent : agents_) end = std::max(end, agent.end);
  for (const Host& host : hosts_) end = std::max(end, host.time);
  if (options_.iterations > 0) {
    end = launch_interval(machine_.model(0), options_) * (options_.iterations - 1) /
          options_.iterations;
  }
  if (complete) bound.latency = {end};
  return bound;
}

std::int64_t BoundWalk::start_of(int rank) const {
  return start_delay(machine_, program_, options_, rank) +
         launch_latency(machine_.model(rank), options_);
}

void BoundWalk::start_hosts() {
  for (int rank = 0; rank < period_; ++rank)
    for (const program::Stream& stream : program_.code(rank).streams)
      hosts_.push_back(
          {.rank = rank, .items = &stream, .start = start_of(rank), .time = start_of(rank)});
  totals_.resize(index(program_.ranks()));
}

bool BoundWalk::advance(Host& host) {
  bool moved = false;
  while (!host.done) {
    for (std::size_t a = host.first; a < host.last; ++a)
      if (!agents_[a].done) return moved;
    for (; host.first < host.last; ++host.first) {
      Agent& agent = agents_[host.first];
      host.time = std::max(host.time, agent.end);
      agent.cursor->leave(totals_[index(host.rank)]);
      agent.cursor.reset();
    }
    while (first_open_ < agents_.size() && agents_[first_open_].done &&
           agents_[first_open_].cursor == nullptr)
      ++first_open_;
    host.done = host.item == host.items->size();
    if (host.done || !start(host, (*host.items)[host.item])) return moved;
    ++host.item;
    moved = true;
  }
  return moved;
}

bool BoundWalk::start(Host& host, const program::StreamItem& item) {
  const std::pair event{host.rank, item.index};
  switch (item.kind) {
    case program::StreamItem::Kind::kernel: {
      const program::Kernel& kernel = program_.kernels()[index(item.index)];
      host.first = agents_.size();
      for (std::size_t w = 0; w < kernel.bodies.size(); ++w)
        add_workgroup(host.rank, kernel, w, item.frame, host.time);
      host.last = agents_.size();
      break;
    }
    case program::StreamItem::Kind::engine:
      host.first = agents_.size();
      add_queue(host.rank, item, host.time);
      host.last = agents_.size();
      break;
    case program::StreamItem::Kind::host:
      host.time += item.duration.fs;
      break;
    case program::StreamItem::Kind::until:
      host.time = std::max(host.time, host.start + item.duration.fs);
      break;
    case program::StreamItem::Kind::event_record:
      events_[event] = host.time;
      break;
    case program::StreamItem::Kind::event_wait: {
      const auto recorded = events_.find(event);
      if (recorded == events_.end()) return false;
      host.time = std::max(host.time, recorded->second);
      break;
    }
    default:
      break;
  }
  for (std::size_t a = host.first; a < host.last; ++a)
    agents_[a].cursor->restart(0, totals_[index(host.rank)]);
  return true;
}

void BoundWalk::add_rank(int rank) {
  for (const program::Stream& stream : program_.code(rank).streams) {
    for (const program::StreamItem& item : stream) {
      if (item.kind == program::StreamItem::Kind::engine) add_queue(rank, item, start_of(rank));
      if (item.kind != program::StreamItem::Kind::kernel) continue;
      const program::Kernel& kernel = program_.kernels()[index(item.index)];
      for (std::size_t w = 0; w < kernel.bodies.size(); ++w)
        add_workgroup(rank, kernel, w, 0, start_of(rank));
    }
  }
}

void BoundWalk::add_queue(int rank, const program::StreamItem& item, std::int64_t start) {
  Agent agent;
  agent.rank = rank;
  agent.copies = Agent::Copies{.prelaunched = item.prelaunched};
  agent.cursor = std::make_unique<program::Cursor>(program_, rank, item.index, item.frame);
  agent.lead = agent.rest = start;
  agents_.push_back(std::move(agent));
}

void BoundWalk::add_workgroup(int rank, const program::Kernel& kernel, std::size_t w,
                              std::int32_t frame, std::int64_t start) {
  const machine::GpuModel& model = machine_.model(rank);
  Agent agent;
  agent.rank = rank;
  agent.cursor = std::make_unique<program::Cursor>(program_, rank, kernel.bodies[w], frame);
  agent.waves = (kernel.threads_in(w) + model.cu_wavefront_size - 1) / model.cu_wavefront_size;
  agent.posts_apart = kernel.posts_apart && agent.waves > 1;
  if (agent.posts_apart) --agent.waves;
  agent.grain = kernel.grain;
  agent.bare = kernel.bare;
  agent.unroll = std::max<std::int64_t>(1, kernel.unroll > 0 ? kernel.unroll : model.cu_unroll);
  agent.lead = agent.rest = agent.poster =
      start + kernel.block_number(w) * model.dispatch_interval.fs + model.dispatch_latency.fs;
  agents_.push_back(std::move(agent));
}

void BoundWalk::add_classes() {
  for (const AgentClass& agents : classes_->agents()) {
    const sim::Agent& first = agents.first;
    if (first.kernel < 0) {
      add_queue(first.rank,
                program_.code(first.rank).streams[index(first.stream)][index(first.item)],
                start_of(first.rank));
    } else {
      add_workgroup(first.rank, program_.kernels()[index(first.kernel)], index(first.workgroup), 0,
                    start_of(first.rank));
    }
    agents_.back().stands_for = &agents;
  }
}

std::int64_t BoundWalk::users(const WalkedAgent& agent, program::SemaphoreId id) const {
  if (classes_ == nullptr) return 1;
  return std::max<std::int64_t>(
      1, agent.members() / classes_->semaphores_in(classes_->semaphore_class(id)));
}

Signals& BoundWalk::signals_of(program::SemaphoreId id) {
  if (classes_ != nullptr) return signals_[classes_->semaphore_class(id)];
  return signals_[pair_number(id.rank % period_, id.index)];
}

void BoundWalk::arrive(const WalkedAgent& agent, program::SemaphoreId id, std::int64_t value,
                       std::int64_t at) {
  const int from = classes_ != nullptr
                       ? static_cast<int>(agent.stands_for - classes_->agents().data())
                       : (agent.rank - id.rank + program_.ranks()) % program_.ranks();
  signals_of(id).add(from, value * users(agent, id), at);
}

bool BoundWalk::advance(Agent& agent) {
  bool moved = false;
  while (!agent.done) {
    if (!agent.loaded) {
      if (!agent.copies.has_value()) pass_tiles(agent);
      if (!agent.cursor->next(agent.primitive)) {
        agent.done = true;
        agent.end =
            std::max({agent.lead, agent.rest, agent.stores, agent.stores_lead, agent.stores_joined,
                      agent.posts_apart ? agent.poster : 0}) +
            (agent.copies.has_value() ? 0 : machine_.model(agent.rank).launch_end_latency.fs);
        return true;
      }
      agent.loaded = true;
    }
    if (!(agent.copies.has_value() ? interpret_copy(agent) : interpret(agent))) return moved;
    agent.loaded = false;
    moved = true;
  }
  return moved;
}

void BoundWalk::pass_tiles(Agent& agent) {
  const std::int64_t left = agent.cursor->iterations_left();
  if (left == 0) return;
  const auto now = agent.clock();
  const auto& [left_before, moved_before, before] = agent.tile_began;
  const std::int64_t took = now.front() - before.front();
  const bool is_like = std::equal(now.begin(), now.end(), before.begin(),
                                  [&](std::int64_t a, std::int64_t b) { return a - b == took; });
  if (left_before != left + 1 || !is_like) {
    agent.tile_began = {left, moved_bytes_, now};
    return;
  }
  const std::int64_t tiles = left - 1;  // the last one is walked
  agent.shift(tiles * took);
  moved_bytes_ += tiles * (moved_bytes_ - moved_before);  // of all its members
  agent.cursor->skip_iterations(tiles);
  agent.tile_began = {};
}

void BoundWalk::count_posts() {
  std::set<std::pair<std::size_t, int>> awaited;
  for (auto post = posts_.rbegin(); post != posts_.rend(); ++post) {
    for (const auto& [id, ordinal] : post->signals)
      if (signals_of(id).needed > ordinal) awaited.insert({post->agent, post->to});
    if (post->flushed) awaited.insert({post->agent, post->to});
    if (awaited.contains({post->agent, post->to}))
      carry(agents_[post->agent], post->from, post->to, post->bytes, 1);
  }
}

namespace {

bool start_together(const machine::Machine& machine, const program::Bound& program,
                    const Options& options) {
  for (int rank = 1; rank < program.ranks(); ++rank)
    if (start_delay(machine, program, options, rank) != start_delay(machine, program, options, 0))
      return false;
  return true;
}

/// So many that those who are alike are found sooner than all are walked.
bool has_many(const program::Bound& program) {
  constexpr std::size_t kMany = 2048;
  std::size_t workgroups = 0;
  for (int rank = 0; rank < program.ranks(); ++rank)
    for (const program::Stream& stream : program.code(rank).streams)
      for (const program::StreamItem& item : stream)
        if (item.kind == program::StreamItem::Kind::kernel)
          workgroups += program.kernels()[index(item.index)].bodies.size();
  return workgroups > kMany;
}

}  // namespace

LowerBound lower_bound(const machine::Machine& machine, const program::Bound& program,
                       const Options& options, const Addresses& addresses, const Fold& fold) {
  const program::Rotation& rotation = addresses.rotation();
  const int ranks = program.ranks();
  int period = fold.period;
  bool alike = true;
  const bool apart = period == ranks && program.linked() == nullptr;
  if (apart && program.program().protocol != program::Protocol::ll && has_many(program)) {
    const Classes classes(machine, program, options, AlikeBy::time);
    if (classes.folded()) return BoundWalk(machine, program, options, addresses, classes).run();
  }
  if (period == ranks && rotation.period < ranks && program.linked() == nullptr &&
      start_together(machine, program, options)) {
    // Nothing is folded, but ranks that do the same have one bound; on a machine whose ways differ
    // the first of them, with the shortest way that any has, bounds them all.
    Fabric fabric(machine);
    if (ranks == machine.ranks()) period = alike_ranks(fabric, program, rotation).period;
    if (period == ranks && same_models(machine, rotation.period, ranks)) {
      period = rotation.period;
      alike = false;
    }
  }
  return BoundWalk(machine, program, options, addresses, period, alike).run();
}

LowerBound lower_bound(const program::Bound& program, const Options& options) {
  const machine::Machine& machine = *program.machine();
  const Addresses addresses(program,
                            program::rotation_of(program, machine.model(0).line_size.count));
  Fabric fabric(machine);
  const Fold fold = fold_of(fabric, program, addresses.rotation(), options);
  return lower_bound(machine, program, options, addresses, fold);
}

}  // namespace hemiola::sim
