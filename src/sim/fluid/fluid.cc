// The fluid engine: agents and events.

#include "sim/fluid/fluid.h"
#include "program/semantics/occupancy.h"
#include "sim/alike/class_signature.h"

#include <algorithm>
#include <limits>
#include <utility>

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
      ways_(machine, program, fold_, shares_, options.touched),
      reuse_(machine, program, fold_, ways_.footprint()),
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
    matrix_units_.push_back(shares_.add_resource({model.cu_count * kSecond}, Reason::compute));
    state.room = model.cu_count * kRoomOfUnit;
    for (const program::Stream& items : program_.code(rank).streams) {
      Stream& stream = state.streams.emplace_back();
      stream.kernels.resize(items.size());
      stream.copy_agent.assign(items.size(), -1);
    }
  }
  const std::vector<UnitShare> units = share_units(program_, fold_, shares_);
  for (std::size_t a = 0; a < fold_.agents().size(); ++a) {
    const AgentClass& agents = fold_.agents()[a];
    Walker& walker = walkers_.emplace_back();
    walker.unit = units[a];
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
    const std::int64_t each =
        program::blocks_per_unit(program::occupancy_of_block(kernel, block, model), model);
    walker.room = kRoomOfUnit / (each * walker.unit.parts) * walker.per_rank;
    walker.most_sharing = each;
    walker.sharing = std::clamp<std::int64_t>(
        (kernel.block_count() + model.cu_count - 1) / model.cu_count, 1, each);
    walker.has_products = kernel.largest_tile > 0;
    Kernel& run = stream.kernels[index(agents.first.item)];
    run.agents.push_back(walker.number);
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
      return come_to(HostStep::repetition, event.a, 0, event.time, spent);
    case Kind::item:
      return come_to(HostStep::item, event.a, event.b, event.time, spent);
    case Kind::finished:
      return come_to(HostStep::finished, event.a, event.b, event.time, spent);
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

// Members of a class may have slices that differ by a unit (Signatures): they begin inside lines
// where the first one begins with a line.
Slices Fluid::slices_of(const Walker& walker, const program::Primitive& primitive) const {
  if (!fold_.folded() || program_.linked() != nullptr || primitive.op < 0) return {};
  const program::Op& op = program_.bodies()[index(walker.agent.body)].ops[index(primitive.op)];
  if (op.slices <= 1 || op.unit.count > 0 || op.bytes.count > 0) return {};
  const auto& operands = op.src.empty() ? op.dst : op.src;
  if (operands.empty()) return {};
  const std::int64_t unit = program_.program().alignment.count;
  const std::int64_t units = operands.front().chunks * program_.chunk_bytes() / unit;
  const Slices slices{op.slices, units, unit, op.slice};
  const bool whole = slices.begin(op.slice + 1) - slices.begin(op.slice) == primitive.bytes;
  return whole && alike_slices(program_, units, op.slices) && units % op.slices != 0 ? slices
                                                                                     : Slices{};
}

std::int32_t Fluid::start_flow(FlowKind kind, std::int32_t a, std::int32_t b, std::int64_t bytes,
                               std::int64_t limit, Reason reason, const Attribution& spent,
                               const LoadWindow& window, std::int64_t part) {
  const std::int32_t flow = shares_.start(demands_, bytes, limit, reason, now_, window, part);
  if (index(flow) >= flows_.size()) flows_.resize(index(flow) + 1);
  flows_[index(flow)] = {kind, a, b, spent};
  return flow;
}

void Fluid::flow_over(std::int32_t flow, const Attribution& charged, std::int64_t now) {
  const FlowUse use = flows_[index(flow)];
  Attribution spent = use.spent;
  for (std::size_t r = 0; r < kReasons; ++r) spent[r] += charged[r];
  switch (use.kind) {
    case FlowKind::move:
    case FlowKind::tile: {
      Walker& walker = walkers_[index(use.a)];
      if (std::exchange(walker.draws_power, false)) {
        RankState& rank = ranks_[index(walker.rank_class)];
        --rank.tiles_of_products;
        rank.power.goes_on_until(now + rest_of_run(walker));
      }
      walker.at = {now, spent};
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
    case FlowKind::write_back:
      ranks_[index(use.a)].written_back -= use.b;
      return;
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

}  // namespace hemiola::sim
