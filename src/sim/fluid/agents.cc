// The fluid engine: agents walk their primitives; signals and waits.

#include <algorithm>
#include <iterator>
#include <utility>

#include "program/semantics/barrier.h"
#include "program/semantics/costs.h"
#include "sim/fluid/fluid.h"
#include "sim/model/large_code.h"

namespace hemiola::sim {
namespace {

using program::Primitive;
using program::PrimitiveKind;

/// A flag whose bytes take less than this part of its latency does not queue, nor make others.
constexpr std::int64_t kSmall = 100;

/// Tiles that differ in their place only are one flow, so many of them to a table that others wait
/// for the end of: enough for what runs beside them to see how their operands change.
constexpr std::int64_t kPiecesOfTable = 4;

}  // namespace

// --- The walk. An agent may be ahead of the time of the run as long as nobody can notice.

bool Fluid::is_now(std::int32_t number) {
  const Walker& walker = walkers_[index(number)];
  if (walker.at.time <= now_) return true;
  wake(number);
  return false;
}

void Fluid::wake(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  walker.blocked = Blocked::time;
  push(walker.at.time, Kind::wake, number);
}

// The steps of a tile are one compute.
bool Fluid::next(Walker& walker, Primitive& primitive) {
  if (walker.agent.kernel < 0 || walker.tiled) return walker.cursor->next(primitive);
  const bool more = walker.cursor->next(primitive, walker.tile, kPiecesOfTable);
  walker.tiled = walker.tile.steps > 0;
  return more;
}

bool Fluid::fetch(Walker& walker) {
  if (walker.loaded) return true;
  walker.loaded = true;
  if (!walker.pending.empty()) {
    walker.present = std::move(walker.pending.front());
    walker.pending.pop_front();
  } else if (!next(walker, walker.present)) {
    return walker.loaded = false;
  }
  if (walker.present.kind == PrimitiveKind::barrier && walker.agent.kernel >= 0) {
    auto parts = program::parts_of_barrier(walker.present, walker.agent.rank, barrier_base_,
                                           walker.barrier_rounds);
    walker.present = std::move(parts.front());
    walker.pending.assign(std::move_iterator(parts.begin() + 1), std::move_iterator(parts.end()));
  }
  return true;
}

const Primitive* Fluid::peek(Walker& walker) {
  if (walker.pending.empty()) {
    Primitive ahead;
    if (!next(walker, ahead)) return nullptr;
    walker.pending.push_back(std::move(ahead));
  }
  return &walker.pending.front();
}

void Fluid::advance(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  walker.blocked = Blocked::no;
  while (true) {
    if (!fetch(walker)) {
      if (!walker.steps.empty()) {  // they end with the workgroup
        walker.blocked = Blocked::steps;
        return;
      }
      if (!is_now(number)) return;
      if (walker.legs.empty()) return agent_over(number);
      walker.blocked = Blocked::flush;
      return queue_copy(number);
    }
    if (walker.op_began < 0) walker.op_began = walker.at.time;
    const bool copies = walker.agent.kernel < 0;
    if (!(copies ? interpret_copy(number) : interpret(number))) return;
    pass(walker);
  }
}

void Fluid::pass(Walker& walker) {
  const Primitive& primitive = walker.present;
  if (options_.trace != nullptr && walker.agent.kernel >= 0 && walker.at.time > walker.op_began) {
    const program::Op& op = program_.bodies()[index(walker.agent.body)].ops[index(primitive.op)];
    options_.trace->operation(walker.agent.rank, number_in_rank(walker.agent),
                              program::name_of(op.kind), {walker.op_began}, {walker.at.time}, {});
  }
  if (primitive.kind == PrimitiveKind::wait) walker.recent_bytes = 0;  // an acquire empties the L1
  walker.loaded = false;
  walker.stage = 0;
  walker.op_began = -1;
}

// Instructions around an operation, and its code where that is fetched.
void Fluid::overhead(Walker& walker, const Primitive& primitive) {
  if (!program::begins_operation(walker.last_op, primitive)) return;
  walker.last_op = primitive.op;
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const program::Kernel& kernel = program_.kernels()[index(walker.agent.kernel)];
  const program::Op& op = program_.bodies()[index(walker.agent.body)].ops[index(primitive.op)];
  if (!walker.fetched &&
      needs_large_code(*program_.frame(walker.agent.frame).program, kernel, op)) {
    walker.fetched = true;
    std::int64_t& free = ranks_[index(walker.rank_class)].code_fetches;
    free = std::max(free, walker.at.time) +
           model.cu_code_fetch_interval.fs * walker.per_rank * kernel.large_code;
    walker.code_ready = free + model.cu_code_fetch.fs * kernel.large_code;
  }
  const std::int64_t start = program::operation_overhead(model, walker.bare, primitive).fs;
  const std::int64_t fs = std::max(start, walker.code_ready - walker.at.time);
  if (fs <= 0) return;
  walker.at.add(Reason::issue, start);
  walker.at.add(Reason::software, fs - start);
}

/// In the time of the wavefront that posts, where that is one of its own: it has come as far as
/// those that move.
template <typename Work>
void Fluid::by_poster(Walker& walker, Work work) {
  if (!walker.posts_apart) return work();
  walker.poster.join(walker.at);
  std::swap(walker.at, walker.poster);
  work();
  std::swap(walker.at, walker.poster);
}

bool Fluid::interpret(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  const Primitive& primitive = walker.present;
  if (walker.stage == 0) overhead(walker, primitive);
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  switch (primitive.kind) {
    case PrimitiveKind::sync:
      if (!walker.steps.empty()) {
        walker.blocked = Blocked::steps;
        return false;
      }
      if (walker.posts_apart && !primitive.movers) walker.at.join(walker.poster);
      walker.at.add(Reason::barrier, model.sync_barrier_latency.fs);
      if (!primitive.movers) walker.poster = walker.at;
      return true;
    case PrimitiveKind::move:
      if (!primitive.posted) return move(number);
      if (!is_now(number)) return false;
      post_operand(number);
      return true;
    case PrimitiveKind::signal:
      signal(walker, primitive);
      return true;
    case PrimitiveKind::wait:
      return wait(number);
    case PrimitiveKind::fence:
    case PrimitiveKind::post:
      by_poster(walker, [&] {
        release(walker, true);
        if (primitive.kind == PrimitiveKind::post) post(walker, number);
      });
      return true;
    case PrimitiveKind::flush:
      if (walker.posted_done >= walker.posted) return true;
      walker.blocked = Blocked::flush;
      return false;
    case PrimitiveKind::compute:
      return walker.tiled ? tile(number) : compute(number);
    case PrimitiveKind::barrier:
      return true;  // expanded
  }
  return true;
}

// A queue does one submission of copies after the other; its flags go out behind them.
bool Fluid::interpret_copy(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  const Primitive& primitive = walker.present;
  if (!is_now(number)) return false;
  const bool copies = primitive.kind == PrimitiveKind::move && !primitive.remote;
  if (copies && walker.stage == 0) {
    add_legs(walker.legs, primitive);
    if (primitive.batched) return true;
  }
  if (!walker.legs.empty()) {
    walker.stage = copies ? 1 : 0;
    walker.blocked = Blocked::flush;
    queue_copy(number);
    return false;
  }
  switch (primitive.kind) {
    case PrimitiveKind::move:
    case PrimitiveKind::post:
      if (walker.stage == 1) return true;  // copied
      walker.stage = 1;
      walker.blocked = Blocked::flush;
      queue_copy(number);
      return false;
    case PrimitiveKind::signal:
      for (const program::SemaphoreId id : primitive.semaphores)
        send(-1, walker.agent.rank, id, 1, walker.members, walker.at);
      return true;
    case PrimitiveKind::wait:
      return wait(number);
    default:
      return true;
  }
}

// --- Signals.

// Until the stores are acknowledged, then the fence.
void Fluid::release(Walker& walker, bool system_scope) {
  walker.at.join(walker.acknowledged);
  walker.at.add(Reason::fence,
                program::release_time(machine_.model(walker.agent.rank), system_scope).fs);
}

void Fluid::signal(Walker& walker, const Primitive& primitive) {
  if (primitive.swap) return;  // done by the wait before it
  by_poster(walker, [&] {
    if (primitive.release) release(walker, primitive.system_scope);
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
      send(walker.number, walker.agent.rank, primitive.semaphores[s], primitive.values[s],
           walker.members, walker.at);
  });
}

std::int32_t Fluid::semaphore_class(program::SemaphoreId id) const {
  if (id.index < barrier_base_) return fold_.semaphore_class(id);
  return fold_.semaphore_classes() + fold_.rank_class(id.rank) * program_.barriers() + id.index -
         barrier_base_;
}

std::int64_t Fluid::semaphores_in(program::SemaphoreId id) const {
  return id.index < barrier_base_ ? fold_.semaphores_in(fold_.semaphore_class(id))
                                  : fold_.ranks_in(fold_.rank_class(id.rank));
}

void Fluid::send(std::int32_t agent, int from, program::SemaphoreId id, std::int64_t increment,
                 std::int64_t members, const Moment& at) {
  const std::int32_t number = signals_.take();
  Signal& signal = signals_[index(number)];
  signal.agent = agent;
  signal.from = from;
  signal.id = id;
  if (agent >= 0) ++kernel_of(walkers_[index(agent)]).left;
  // Of the members of a class equally many signal each semaphore of its class.
  signal.increment = increment * std::max<std::int64_t>(1, members / semaphores_in(id));
  signal.members = members;
  signal.spent = at.spent;
  const std::int64_t issue = std::max<std::int64_t>(1, machine_.model(from).cu_issue_interval.fs);
  charge(signal.spent, Reason::issue, issue);
  push(at.time + issue, Kind::depart, number);
}

// A flag to another rank is a flow of one sector where that takes long; else it is not in the way.
void Fluid::depart(std::int32_t number, std::int64_t now) {
  Signal& signal = signals_[index(number)];
  const int to = signal.id.rank;
  if (to == signal.from) {
    const Latency& way = ways_.store(to, to);
    charge(signal.spent, way);
    push(now + way.fs, Kind::arrive, number);
    return;
  }
  const Latency& way = ways_.store(signal.from, to);
  if (ways_.flag_time(signal.from, to) * kSmall < way.fs) {
    charge(signal.spent, way);
    push(now + way.fs, Kind::arrive, number);
    return;
  }
  const std::int64_t bytes = machine_.model(signal.from).sector_size.count;
  demands_.clear();
  ways_.over_links(signal.from, to, bytes, 1, 0, false, bytes, signal.members, demands_);
  start_flow(FlowKind::flag, number, 0, bytes, 0, Reason::link, signal.spent);
}

void Fluid::arrive(std::int32_t number, std::int64_t now) {
  const Signal signal = signals_[index(number)];
  signals_.give_back(number);
  if (signal.agent >= 0) {
    Walker& walker = walkers_[index(signal.agent)];
    Moment back{now, signal.spent};
    back.add(ways_.acknowledgement(signal.from, signal.id.rank));
    walker.acknowledged.join(back);
    part_over(walker, back);
  }
  add_to(semaphore_class(signal.id), signal.increment, now, signal.spent);
}

void Fluid::add_to(std::int32_t number, std::int64_t increment, std::int64_t now,
                   const Attribution& spent) {
  semaphores_[index(number)].value += increment;
  for (const auto& [agent, wait] : std::exchange(semaphores_[index(number)].waiting, {})) {
    Walker& walker = walkers_[index(agent)];
    if (walker.blocked != Blocked::flags || walker.wait_number != wait) continue;
    if (!look(walker, walker.present)) {
      semaphores_[index(number)].waiting.emplace_back(agent, wait);
      continue;
    }
    seen(walker, now, spent);
    const Primitive& primitive = walker.present;
    if (primitive.swap)
      for (const program::SemaphoreId id : primitive.semaphores)
        add_to(semaphore_class(id), 1, now, spent);
    pass(walker);
    wake(agent);
  }
}

// --- Waits.

/// Whether all flags are there; what is consumed is taken at once.
bool Fluid::look(Walker& walker, const Primitive& primitive) {
  bool all = true;
  for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
    if (walker.seen[s]) continue;
    const program::SemaphoreId id = primitive.semaphores[s];
    SemaphoreState& state = semaphores_[index(semaphore_class(id))];
    const std::int64_t consumers =
        primitive.consume ? std::max<std::int64_t>(1, walker.members / semaphores_in(id)) : 1;
    if (state.value < primitive.values[s] * consumers) {
      all = false;
      continue;
    }
    walker.seen[s] = true;
    if (primitive.consume) state.value -= primitive.values[s] * consumers;
  }
  return all;
}

bool Fluid::wait(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  if (!is_now(number)) return false;
  const Primitive& primitive = walker.present;
  walker.wait_began = walker.at.time;
  ++walker.wait_number;
  walker.seen.assign(primitive.semaphores.size(), false);
  if (!look(walker, primitive)) {
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
      if (walker.seen[s]) continue;
      semaphores_[index(semaphore_class(primitive.semaphores[s]))].waiting.emplace_back(
          number, walker.wait_number);
    }
    walker.blocked = Blocked::flags;
    return false;
  }
  if (walker.agent.kernel < 0) return true;
  const int owner =
      primitive.semaphores.empty() ? walker.agent.rank : primitive.semaphores.front().rank;
  if (primitive.swap)
    for (const program::SemaphoreId id : primitive.semaphores)
      add_to(semaphore_class(id), 1, now_, walker.at.spent);
  walker.at.add(ways_.load(walker.agent.rank, owner, Depth::l2));
  return true;
}

// The flag that came last is the reason for the wait, unless the first poll found it. Polls see a
// flag half a period after it is there, on average.
void Fluid::seen(Walker& walker, std::int64_t now, const Attribution& cause) {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const std::int64_t interval = std::max<std::int64_t>(1, model.sync_poll_interval.fs);
  if (walker.agent.kernel < 0) {
    walker.at = {now, cause};
    walker.at.add(Reason::poll, interval);
    return;
  }
  const int owner = walker.present.semaphores.front().rank;
  const Latency poll = ways_.load(walker.agent.rank, owner, Depth::l2);
  const std::int64_t there = ways_.store(walker.agent.rank, owner).fs;
  if (now <= walker.wait_began + there) {
    charge(walker.at.spent, poll);
    walker.at.time = walker.wait_began + poll.fs;
    return;
  }
  walker.at = {now, cause};
  walker.at.add(Reason::poll, (poll.fs + interval) / 2);
  walker.at.add(ways_.acknowledgement(walker.agent.rank, owner));
}

}  // namespace hemiola::sim
