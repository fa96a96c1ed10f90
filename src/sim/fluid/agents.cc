// Agents may be ahead of the time of the run as long as nobody can notice.

#include "sim/fluid/agents.h"

#include <algorithm>
#include <utility>

#include "program/semantics/costs.h"
#include "sim/model/large_code.h"

namespace hemiola::sim::fluid {
namespace {

using program::Primitive;
using program::PrimitiveKind;

}  // namespace

Agents::Agents(const machine::Machine& machine, const program::Bound& program,
               const Options& options, AlikeBy by)
    : run_(machine, program, options, by),
      streams_(run_),
      flags_(run_, streams_),
      traffic_(run_, streams_),
      units_(run_),
      moves_(run_, streams_, traffic_),
      computes_(run_, traffic_, units_),
      tiles_(run_, streams_, traffic_, units_),
      engines_(run_, streams_, flags_),
      code_free_(index(run_.fold.rank_classes())) {}

void Agents::advance(std::int32_t number) {
  if (number < 0) return;
  Walker& walker = run_.walkers[index(number)];
  walker.blocked = Blocked::no;
  while (true) {
    if (!walker.place.fetch(walker.agent, run_.barrier_base)) {
      if (computes_.busy(number)) {  // they end with the workgroup
        walker.blocked = Blocked::steps;
        return;
      }
      if (!run_.is_now(number)) return;
      if (walker.legs.empty()) return streams_.agent_over(number);
      walker.blocked = Blocked::flush;
      return engines_.queue_copy(number);
    }
    if (walker.place.op_began < 0) walker.place.op_began = walker.at.time;
    const bool copies = walker.agent.kernel < 0;
    if (!(copies ? interpret_copy(number) : interpret(number))) return;
    run_.pass(walker);
  }
}

// Instructions around an operation, and its code where that is fetched.
void Agents::overhead(Walker& walker, const Primitive& primitive) {
  if (!program::begins_operation(walker.place.last_op, primitive)) return;
  walker.place.last_op = primitive.op;
  const machine::GpuModel& model = run_.model(walker);
  const program::Kernel& kernel = run_.program.kernels()[index(walker.agent.kernel)];
  const program::Op& op = run_.op_of(walker, primitive);
  if (!walker.fetched &&
      needs_large_code(*run_.program.frame(walker.agent.frame).program, kernel, op)) {
    walker.fetched = true;
    std::int64_t& free = code_free_[index(walker.rank_class)];
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
void Agents::by_poster(Walker& walker, Work work) {
  if (!walker.posts_apart) return work();
  walker.poster.join(walker.at);
  std::swap(walker.at, walker.poster);
  work();
  std::swap(walker.at, walker.poster);
}

bool Agents::interpret(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const Primitive& primitive = walker.place.present;
  if (walker.place.stage == 0) overhead(walker, primitive);
  const machine::GpuModel& model = run_.model(walker);
  switch (primitive.kind) {
    case PrimitiveKind::sync:
      if (computes_.busy(number)) {
        walker.blocked = Blocked::steps;
        return false;
      }
      if (walker.posts_apart && !primitive.movers) walker.at.join(walker.poster);
      walker.at.add(Reason::barrier, model.sync_barrier_latency.fs);
      if (!primitive.movers) walker.poster = walker.at;
      return true;
    case PrimitiveKind::move:
      if (!primitive.posted) return moves_.move(number);
      if (!run_.is_now(number)) return false;
      computes_.post_operand(number);
      return true;
    case PrimitiveKind::signal:
      signal(walker, primitive);
      return true;
    case PrimitiveKind::wait:
      return flags_.wait(number);
    case PrimitiveKind::fence:
    case PrimitiveKind::post:
      by_poster(walker, [&] {
        release(walker, true);
        if (primitive.kind == PrimitiveKind::post) engines_.post(walker);
      });
      return true;
    case PrimitiveKind::flush:
      return engines_.flush(walker);
    case PrimitiveKind::compute:
      return walker.place.tiled ? tiles_.tile(number) : computes_.compute(number);
    case PrimitiveKind::barrier:
      return true;  // expanded
  }
  return true;
}

// A queue does one submission of copies after the other; its flags go out behind them.
bool Agents::interpret_copy(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const Primitive& primitive = walker.place.present;
  if (!run_.is_now(number)) return false;
  const bool copies = primitive.kind == PrimitiveKind::move && !primitive.remote;
  if (copies && walker.place.stage == 0) {
    add_legs(walker.legs, primitive);
    if (primitive.batched) return true;
  }
  if (!walker.legs.empty()) {
    walker.place.stage = copies ? 1 : 0;
    walker.blocked = Blocked::flush;
    engines_.queue_copy(number);
    return false;
  }
  switch (primitive.kind) {
    case PrimitiveKind::move:
    case PrimitiveKind::post:
      if (walker.place.stage == 1) return true;  // copied
      walker.place.stage = 1;
      walker.blocked = Blocked::flush;
      engines_.queue_copy(number);
      return false;
    case PrimitiveKind::signal:
      for (const program::SemaphoreId id : primitive.semaphores)
        flags_.send(-1, walker.agent.rank, id, 1, walker.members, walker.at);
      return true;
    case PrimitiveKind::wait:
      return flags_.wait(number);
    default:
      return true;
  }
}

// Until the stores are acknowledged, then the fence.
void Agents::release(Walker& walker, bool system_scope) {
  walker.at.join(walker.acknowledged);
  walker.at.add(Reason::fence, program::release_time(run_.model(walker), system_scope).fs);
}

void Agents::signal(Walker& walker, const Primitive& primitive) {
  if (primitive.swap) return;  // done by the wait before it
  by_poster(walker, [&] {
    if (primitive.release) release(walker, primitive.system_scope);
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
      flags_.send(walker.number, walker.agent.rank, primitive.semaphores[s], primitive.values[s],
                  walker.members, walker.at);
  });
}

// --- Events, and the ends of flows.

void Agents::handle(const Event& event, const Attribution& spent) {
  switch (event.kind) {
    case EventKind::repeat:
      return streams_.come_to(HostStep::repetition, event.a, 0, event.time, spent);
    case EventKind::item:
      return streams_.come_to(HostStep::item, event.a, event.b, event.time, spent);
    case EventKind::finished:
      return streams_.come_to(HostStep::finished, event.a, event.b, event.time, spent);
    case EventKind::wake: {
      const Blocked wanted = event.b == 1 ? Blocked::packets : Blocked::time;
      if (run_.walkers[index(event.a)].blocked == wanted) advance(event.a);
      return;
    }
    case EventKind::depart:
      return flags_.depart(event.a, event.time);
    case EventKind::arrive:
      return flags_.arrive(event.a, event.time);
    case EventKind::proxy:
      return engines_.to_engine(event.a, event.time);
    case EventKind::transfer:
      return engines_.begin_transfer(event.a, event.time);
    case EventKind::done:
      return advance(engines_.descriptor_done(event.a, event.time));
    case EventKind::computed:
      if (computes_.computed(event.a, event.time)) advance(event.a);
      return;
  }
}

void Agents::flow_over(const FlowUse& use) {
  const std::int64_t now = run_.now;
  switch (use.kind) {
    case FlowKind::move:
    case FlowKind::tile: {
      Walker& walker = run_.walkers[index(use.a)];
      tiles_.loaded(walker, now);
      walker.at = {now, use.spent};
      walker.place.stage = 2;
      walker.blocked = Blocked::no;
      advance(use.a);
      return;
    }
    case FlowKind::behind:
      return advance(moves_.moved_behind(use.a, use.spent, now));
    case FlowKind::flag:
      return flags_.crossed(use.a, use.spent, now);
    case FlowKind::transfer:
      return engines_.transferred(use.a, use.b, use.spent, now);
    case FlowKind::operand:
      return computes_.operand_loaded(use.a, use.b, use.spent, now);
    case FlowKind::write_back:
      return moves_.written_back(use.a, use.b);
  }
}

std::optional<Result> Agents::run() {
  constexpr std::int64_t kNever = INT64_MAX;
  streams_.start();
  while (!streams_.over()) {
    const std::int64_t event = run_.events.next();
    const std::int64_t flow = run_.shares.next();
    if (!run_.shares.settled() && event > run_.now && flow > run_.now) {
      run_.shares.settle(run_.now);
      continue;
    }
    if (event == kNever && flow == kNever) {
      if (run_.fold.folded()) return std::nullopt;
      report_deadlock();
    }
    run_.now = std::min(event, flow);
    if (flow < event) {
      flow_over(run_.finish_flow());
    } else {
      Attribution spent{};
      const Event next = run_.events.pop(spent);
      handle(next, spent);
    }
  }
  return streams_.result();
}

void Agents::report_deadlock() const {
  Diagnostics waits;
  std::int64_t blocked = 0;
  for (const Walker& walker : run_.walkers) {
    if (walker.blocked == Blocked::over || !walker.place.loaded) continue;
    ++blocked;
    if (blocked > 8) continue;
    const program::Primitive& primitive = walker.place.present;
    const program::Op& op = run_.op_of(walker, primitive);
    std::string text = "rank " + std::to_string(walker.agent.rank) + " workgroup " +
                       std::to_string(walker.agent.workgroup) + " op " +
                       std::to_string(primitive.op) + " (" +
                       std::string(program::name_of(op.kind)) + ") waits for ";
    if (walker.blocked == Blocked::packets) text += "packets that nobody sends";
    text += flags_.missing(walker);
    waits.error(text, {.file = run_.program.source(), .pointer = op.where});
  }
  streams_.report_waits(waits);
  Diagnostics all;
  all.error("a wait cannot end: at " + to_string(Time{run_.now}) +
                " nothing can happen any more (" + std::to_string(blocked) + " workgroups wait)",
            {.file = run_.program.source()},
            "`hemiola check` shows the cycle or the missing signal");
  all.append(waits);
  throw Failure(all, ExitCode::deadlock);
}

}  // namespace hemiola::sim::fluid
