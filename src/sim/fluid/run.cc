// Agents of a run, its events and flows.

#include "sim/fluid/run.h"

#include <algorithm>

#include "program/semantics/occupancy.h"

namespace hemiola::sim::fluid {

void Events::push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b,
                  const Attribution* spent) {
  std::int32_t kept = -1;
  if (spent != nullptr) {
    kept = kept_.take();
    kept_[index(kept)] = *spent;
  }
  events_.push({time, sequence_++, kind, a, b, kept});
}

Event Events::pop(Attribution& spent) {
  const Event event = events_.top();
  events_.pop();
  if (event.kept >= 0) {
    spent = kept_[index(event.kept)];
    kept_.give_back(event.kept);
  }
  return event;
}

Run::Run(const machine::Machine& machine_of, const program::Bound& program_of,
         const Options& options_of, AlikeBy by)
    : machine(machine_of),
      program(program_of),
      options(options_of),
      fold(machine, program, options, by),
      ways(machine, program, fold, shares, options.touched),
      barrier_base(static_cast<std::int32_t>(program.semaphores().size())) {
  make_walkers();
}

void Run::make_walkers() {
  const std::vector<UnitShare> units = share_units(program, fold, shares);
  for (std::size_t a = 0; a < fold.agents().size(); ++a) {
    const AgentClass& agents = fold.agents()[a];
    Walker& walker = walkers.emplace_back();
    walker.unit = units[a];
    walker.number = static_cast<std::int32_t>(a);
    walker.agent = agents.first;
    walker.rank_class = fold.rank_class(agents.first.rank);
    walker.members = agents.members;
    walker.per_rank = agents.members / fold.ranks_in(walker.rank_class);
    if (program.linked() == nullptr)
      walker.place.cursor =
          std::make_unique<program::Cursor>(program, agents.first.rank, agents.first.body);
    if (agents.first.kernel < 0) continue;
    const program::Kernel& kernel = program.kernels()[index(agents.first.kernel)];
    const machine::GpuModel& model = machine.model(agents.first.rank);
    const std::int64_t threads = kernel.threads_in(index(agents.first.workgroup));
    walker.waves = (threads + model.cu_wavefront_size - 1) / model.cu_wavefront_size;
    walker.posts_apart = kernel.posts_apart && walker.waves > 1;
    walker.movers = walker.waves - (walker.posts_apart ? 1 : 0);
    walker.grain = kernel.grain;
    walker.unroll = std::max<std::int64_t>(1, kernel.unroll > 0 ? kernel.unroll : model.cu_unroll);
    walker.bare = kernel.bare;
    walker.cu = static_cast<std::int32_t>(agents.first.workgroup % model.cu_count);
    const std::size_t block = kernel.block_of(index(agents.first.workgroup));
    const std::int64_t each =
        program::blocks_per_unit(program::occupancy_of_block(kernel, block, model), model);
    walker.room = kRoomOfUnit / (each * walker.unit.parts) * walker.per_rank;
    walker.most_sharing = each;
    walker.sharing = std::clamp<std::int64_t>(
        (kernel.block_count() + model.cu_count - 1) / model.cu_count, 1, each);
    walker.has_products = kernel.largest_tile > 0;
  }
}

int Run::number_in_rank(const Agent& agent) const {
  const auto& streams = program.code(agent.rank).streams;
  int before = 0;
  for (std::size_t s = 0; s <= index(agent.stream); ++s) {
    const std::size_t items = s < index(agent.stream) ? streams[s].size() : index(agent.item);
    for (std::size_t i = 0; i < items; ++i)
      if (streams[s][i].kind == program::StreamItem::Kind::kernel)
        before += static_cast<int>(program.kernels()[index(streams[s][i].index)].bodies.size());
  }
  return before + agent.workgroup;
}

// --- Agents may be ahead of the time of the run as long as nobody can notice.

bool Run::is_now(std::int32_t number) {
  const Walker& walker = walkers[index(number)];
  if (walker.at.time <= now) return true;
  wake(number);
  return false;
}

void Run::wake(std::int32_t number) {
  Walker& walker = walkers[index(number)];
  walker.blocked = Blocked::time;
  events.push(walker.at.time, EventKind::wake, number);
}

void Run::pass(Walker& walker) const {
  Place& place = walker.place;
  if (options.trace != nullptr && walker.agent.kernel >= 0 && walker.at.time > place.op_began)
    options.trace->operation(walker.agent.rank, number_in_rank(walker.agent),
                             program::name_of(op_of(walker, place.present).kind), {place.op_began},
                             {walker.at.time}, {});
  if (place.present.kind == program::PrimitiveKind::wait)
    walker.move.recent_bytes = 0;  // an acquire empties the L1
  place.loaded = false;
  place.stage = 0;
  place.op_began = -1;
}

// --- Flows.

std::int32_t Run::start_flow(FlowKind kind, std::int32_t a, std::int32_t b, std::int64_t bytes,
                             std::int64_t limit, Reason reason, const Attribution& spent,
                             const LoadWindow& window, std::int64_t part) {
  const std::int32_t flow = shares.start(demands, bytes, limit, reason, now, window, part);
  if (index(flow) >= flows.size()) flows.resize(index(flow) + 1);
  flows[index(flow)] = {kind, a, b, spent};
  return flow;
}

FlowUse Run::finish_flow() {
  Attribution charged{};
  FlowUse use = flows[index(shares.finish(charged))];
  for (std::size_t r = 0; r < kReasons; ++r) use.spent[r] += charged[r];
  return use;
}

}  // namespace hemiola::sim::fluid
