// Templates that are derived from the machine: schedules of synthesis.h as plans, or the plan of
// another template where that takes less time. A rank has a stream for each of its links, with the
// transfers in the order of the schedule.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "core/index.h"
#include "hemiola/parts/build_plan.h"
#include "plan/synthesis/blocks.h"
#include "plan/synthesis/choice.h"
#include "plan/synthesis/synthesis.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

const std::int32_t kExtra = 2, kSlots = 3;

/// Streams by the link over which a transfer leaves, and one for what stays on a rank.
class SynthesisWriter {
 public:
  explicit SynthesisWriter(Fabric& fabric)
      : fabric_(fabric), known_(index(fabric.ranks())), code_(fabric.ranks()) {
    std::size_t most = 0;
    for (const auto& [from, to] : fabric.neighbours()) {
      stream_of(from, to);
      most = std::max(most, known_[index(from)].size());
    }
    for (std::size_t i = 0; i < most; ++i) code_.add_stream("link " + std::to_string(i));
    local_ = code_.add_stream("local");
  }

  /// A push, by the sender.
  Dependency add(const Move& move, Transfer transfer) {
    return code_.add(move.from, stream_of(move.from, move.to), std::move(transfer));
  }
  /// A pull, by the receiver.
  Dependency add_pull(const Move& move, Transfer transfer) {
    return code_.add(move.to, stream_of(move.to, move.from), std::move(transfer));
  }
  bool is_network(const Move& move) { return fabric_.way(move.from, move.to).is_network; }
  /// Copies and additions of what has come.
  Dependency add_local(int rank, Transfer transfer) {
    return code_.add(rank, local_, std::move(transfer));
  }
  void finish(Plan& plan) { code_.finish(plan); }

 private:
  std::int32_t stream_of(int from, int to) {
    auto& streams = known_[index(from)];
    const std::int32_t trunk = fabric_.way(from, to).uses.front().trunk;
    return streams.try_emplace(trunk, static_cast<std::int32_t>(streams.size())).first->second;
  }

  Fabric& fabric_;
  std::vector<std::map<std::int32_t, std::int32_t>> known_;  // by rank: trunk to stream
  RankByRank code_;
  std::int32_t local_ = 0;
};

/// By rank and chunk: what has to be waited for.
using Arrivals = std::vector<std::map<std::int64_t, Dependency>>;

/// Every chunk goes from its owner's output, or input, to the outputs of all others. `arrived`
/// holds what its owner waits for, and gets what the others have to.
void write_gather(SynthesisWriter& writer, const std::vector<Move>& moves, const DataBlocks& blocks,
                  std::int64_t parts, bool from_input, Arrivals& arrived) {
  for (const Move& move : moves) {
    const bool is_own = move.chunk / parts == move.from;
    const Region target = blocks.in(kOutput, move.chunk);
    const Region source =
        is_own && from_input ? blocks.in(kInput, move.chunk, move.from * parts) : target;
    Transfer transfer = push(constant(move.to), source, target);
    const auto needed = arrived[index(move.from)].find(move.chunk);
    if (needed != arrived[index(move.from)].end()) transfer.after.push_back(needed->second);
    arrived[index(move.to)][move.chunk] = writer.add(move, std::move(transfer));
  }
}

/// The schedule of a gather against the links, run backwards: a rank adds up what it would have
/// spread, then passes the sum on. Sums grow in `partial` and are complete in their owners'
/// outputs.
class Reduction {
 public:
  Reduction(SynthesisWriter& writer, const std::vector<Move>& moves, const DataBlocks& blocks,
            std::int64_t parts, int ranks, bool is_scatter)
      : writer_(writer),
        blocks_(blocks),
        parts_(parts),
        is_scatter_(is_scatter),
        sums_(index(ranks)) {
    const Time end = end_of(moves);
    for (const Move& move : moves) {
      todo_.push({end - move.end, true, std::ssize(moves_)});
      moves_.push_back({move.chunk, move.to, move.from, end - move.end, end - move.start});
      ++sums_[index(move.from)][move.chunk].missing;
    }
    slot_of_.resize(moves_.size());
    arrived_.resize(moves_.size());
    slots_.assign(index(ranks), 0);
  }

  /// The additions that complete the sums, at their owners.
  Arrivals run() {
    while (!todo_.empty()) {
      const Todo todo = todo_.top();
      todo_.pop();
      todo.is_push ? send(todo.move) : add(todo.move);
    }
    Arrivals complete(sums_.size());
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
      for (const auto& [chunk, sum] : sums_[rank])
        if (chunk / parts_ == static_cast<std::int64_t>(rank)) complete[rank][chunk] = *sum.last;
    }
    return complete;
  }
  /// Places for blocks that a rank needs at most.
  std::int64_t slots() const { return *std::ranges::max_element(slots_); }

 private:
  struct Sum {
    int missing = 0;                 // additions
    std::optional<Dependency> last;  // the one so far
    Time end{0};                     // of it
  };
  struct Todo {
    Time when{0};
    bool is_push = false;  // else: adds what was pushed before
    std::int64_t move = 0;
    bool operator<(const Todo& other) const {
      return std::tie(other.when, other.is_push, other.move) < std::tie(when, is_push, move);
    }
  };

  /// What a rank has of a chunk so far.
  Region held(int rank, std::int64_t chunk) {
    return blocks_.in(sums_[index(rank)][chunk].last ? kExtra : kInput, chunk);
  }
  /// Where the next addition goes.
  Region target(int rank, std::int64_t chunk) {
    const bool is_result = --sums_[index(rank)][chunk].missing == 0 && chunk / parts_ == rank;
    if (!is_result) return blocks_.in(kExtra, chunk);
    return blocks_.in(kOutput, chunk, is_scatter_ ? rank * parts_ : 0);
  }
  static void wait(Transfer& transfer, const std::optional<Dependency>& dependency) {
    if (dependency) transfer.after.push_back(*dependency);
  }

  /// The receiver adds to its sum as it pulls, unless another addition is still on its way. Nothing
  /// can be pulled through a NIC: what is pushed there is added afterwards, too.
  void send(std::int64_t number) {
    const Move& move = moves_[index(number)];
    Sum& sum = sums_[index(move.to)][move.chunk];
    const bool pushes = writer_.is_network(move);
    const Region source = held(move.from, move.chunk);
    const auto add_to_plan = [&](Transfer transfer) {
      wait(transfer, sums_[index(move.from)][move.chunk].last);
      return pushes ? writer_.add(move, std::move(transfer))
                    : writer_.add_pull(move, std::move(transfer));
    };
    if (pushes || (sum.last && sum.end > move.start)) {
      slot_of_[index(number)] = slots_[index(move.to)]++;
      const Region slot = blocks_.in_slot(kSlots, slot_of_[index(number)], move.chunk);
      arrived_[index(number)] = add_to_plan(pushes ? push(constant(move.to), source, slot)
                                                   : pull(constant(move.from), source, slot));
      sum.end = std::max(sum.end, move.end);
      todo_.push({sum.end, false, number});
      return;
    }
    const Region operand = held(move.to, move.chunk);
    Transfer transfer =
        reducing(pull(constant(move.from), source, target(move.to, move.chunk)), operand);
    wait(transfer, sum.last);
    sum.last = add_to_plan(std::move(transfer));
    sum.end = move.end;
  }

  void add(std::int64_t number) {
    const Move& move = moves_[index(number)];
    Sum& sum = sums_[index(move.to)][move.chunk];
    const Region operand = held(move.to, move.chunk);
    const Region slot = blocks_.in_slot(kSlots, slot_of_[index(number)], move.chunk);
    Transfer transfer = reducing(copy(slot, target(move.to, move.chunk)), operand);
    wait(transfer, arrived_[index(number)]);
    wait(transfer, sum.last);
    sum.last = writer_.add_local(move.to, std::move(transfer));
  }

  SynthesisWriter& writer_;
  const DataBlocks& blocks_;
  std::int64_t parts_;
  bool is_scatter_;
  std::vector<Move> moves_;
  std::vector<std::int64_t> slot_of_;               // by move
  std::vector<std::optional<Dependency>> arrived_;  // by move: in its slot
  std::vector<std::map<std::int64_t, Sum>> sums_;   // by rank and chunk
  std::vector<std::int64_t> slots_;                 // by rank
  std::priority_queue<Todo> todo_;
};

/// The part of a plan that leaves sums at their owners.
Arrivals start_reduction(Plan& plan, SynthesisWriter& writer, Fabric& fabric,
                         const SynthesisOptions& options, const DataBlocks& blocks,
                         bool is_scatter) {
  const std::int64_t all = blocks.units();
  plan.tensors = {{"input", Role::input, all},
                  {"output", Role::output, is_scatter ? all / plan.ranks : all},
                  {"partial", Role::scratch, all}};
  plan.in_place_safe = true;
  Reduction reduction(writer, schedule_gather(fabric, options, true), blocks, options.parts,
                      plan.ranks, is_scatter);
  Arrivals complete = reduction.run();
  if (reduction.slots() > 0)
    plan.tensors.push_back({"slots", Role::scratch, reduction.slots() * blocks.most_units()});
  return complete;
}

void fill_all_gather(Plan& plan, Fabric& fabric, const SynthesisOptions& options,
                     const DataBlocks& blocks) {
  const std::int64_t own = blocks.units() / plan.ranks;
  plan.tensors = {{"input", Role::input, own}, {"output", Role::output, blocks.units()}};
  plan.in_place_safe = true;
  SynthesisWriter writer(fabric);
  Arrivals arrived(index(plan.ranks));
  write_gather(writer, schedule_gather(fabric, options, false), blocks, options.parts, true,
               arrived);
  for (int rank = 0; rank < plan.ranks; ++rank)
    writer.add_local(
        rank, copy(chunks_of(kInput, {}, own), chunks_of(kOutput, constant(rank * own), own)));
  writer.finish(plan);
}

void fill_reduce_scatter(Plan& plan, Fabric& fabric, const SynthesisOptions& options,
                         const DataBlocks& blocks) {
  SynthesisWriter writer(fabric);
  start_reduction(plan, writer, fabric, options, blocks, true);
  writer.finish(plan);
}

void fill_all_reduce(Plan& plan, Fabric& fabric, const SynthesisOptions& options,
                     const DataBlocks& blocks) {
  SynthesisWriter writer(fabric);
  Arrivals arrived = start_reduction(plan, writer, fabric, options, blocks, false);
  write_gather(writer, schedule_gather(fabric, options, false), blocks, options.parts, false,
               arrived);
  writer.finish(plan);
}

void fill_all_to_all(Plan& plan, Fabric& fabric, const SynthesisOptions& options,
                     const DataBlocks& blocks) {
  const std::int64_t ranks = plan.ranks, parts = options.parts;
  plan.tensors = {{"input", Role::input, blocks.units()}, {"output", Role::output, blocks.units()}};
  SynthesisWriter writer(fabric);
  struct Held {
    Region region;
    std::optional<Dependency> arrived;
  };
  std::map<std::int64_t, Held> held;  // by chunk: where it is
  std::vector<std::int64_t> slots(index(ranks), 0);
  for (const Move& move : schedule_exchange(fabric, options)) {
    const std::int64_t part = move.chunk % parts, pair = move.chunk / parts;
    const std::int64_t from = pair / ranks, to = pair % ranks;
    if (move.from == from) held[move.chunk] = {blocks.in(kInput, to * parts + part), std::nullopt};
    Held& now = held.at(move.chunk);
    const Region target = move.to == to
                              ? blocks.in(kOutput, from * parts + part)
                              : blocks.in_slot(kExtra, slots[index(move.to)]++, to * parts + part);
    Transfer transfer = push(constant(move.to), now.region, target);
    if (now.arrived) transfer.after.push_back(*now.arrived);
    now = {target, writer.add(move, std::move(transfer))};
  }
  const std::int64_t most = *std::ranges::max_element(slots);
  if (most > 0) plan.tensors.push_back({"relayed", Role::scratch, most * blocks.most_units()});
  const std::int64_t share = blocks.units() / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    const Affine own = constant(rank * share);
    writer.add_local(rank, copy(chunks_of(kInput, own, share), chunks_of(kOutput, own, share)));
  }
  writer.finish(plan);
}

using Fill = void (*)(Plan& plan, Fabric& fabric, const SynthesisOptions& options,
                      const DataBlocks& blocks);

constexpr int kManyRanks = 128;  // they divide the data finely enough

/// The schedules of a template's own.
class Schedules {
 public:
  Schedules(const TemplateArguments& arguments, Fabric& fabric, Fill fill)
      : arguments_(arguments), fabric_(fabric), fill_(fill), size_(arguments.number("size")) {}

  /// Nothing where blocks of the size cannot be so small, or the size cannot be cut at all.
  std::optional<DataBlocks> blocks_of(std::int64_t parts) const {
    const std::int64_t count = arguments_.ranks * parts;
    // What every rank has is equally long, but a sum may be cut anywhere.
    const std::int64_t shares =
        arguments_.collective == Collective::all_reduce ? 1 : arguments_.ranks;
    return arguments_.word("blocks") == "equal" ? DataBlocks::equal(count)
                                                : DataBlocks::of_size(count, shares, size_);
  }

  /// With the steps of the schedule for `as_for` bytes.
  Plan plan_of(const DataBlocks& blocks, std::int64_t as_for) const {
    const std::int64_t bytes = std::max<std::int64_t>(1, as_for / blocks.count());
    const auto seed = static_cast<std::uint64_t>(arguments_.number("seed"));
    Plan plan = start_plan(arguments_, blocks.units());
    fill_(plan, fabric_, {blocks.count() / arguments_.ranks, bytes, seed}, blocks);
    return plan;
  }

  /// Sizes for which schedules are made. How well one comes out differs by a tenth between sizes
  /// that hardly differ. So a plan for one size alone takes the best of those for the powers of two
  /// around it, which all sizes between two powers have in common: the larger size is the slower.
  std::vector<std::int64_t> sizes() const {
    if (arguments_.word("blocks") == "equal" || arguments_.ranks >= kManyRanks || size_ < 2)
      return {size_};
    const auto above = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size_)));
    return {above, above / 2, 2 * above};
  }

 private:
  const TemplateArguments& arguments_;
  Fabric& fabric_;
  Fill fill_;
  std::int64_t size_;
};

/// In as many parts as are asked for; or whatever takes the least time.
Plan synthesise(const TemplateArguments& arguments, Fill fill) {
  constexpr std::int64_t kMostParts = 16;
  // Each is a transfer; 256 ranks have 0.26 million on a hypercube and 4 million on a ring.
  constexpr std::int64_t kMostMoves = 250'000;
  Fabric fabric(*arguments.machine, arguments.monitor);
  const Schedules schedules(arguments, fabric, fill);
  if (arguments.number("split") != 0) {
    const std::int64_t parts = split_of(arguments);
    const auto blocks = schedules.blocks_of(parts);
    return schedules.plan_of(blocks.value_or(DataBlocks::equal(arguments.ranks * parts)),
                             arguments.number("size"));
  }
  std::vector<std::int64_t> all_parts;
  const std::int64_t most_parts = arguments.ranks >= kManyRanks ? 1 : kMostParts;
  const std::int64_t moves =
      arguments.collective == Collective::all_to_all ? moves_of_exchange(fabric) : 0;
  for (std::int64_t parts = 1; parts <= most_parts && parts * moves <= kMostMoves; parts *= 2)
    all_parts.push_back(parts);
  std::vector<Plan> others = plans_of_templates(arguments, fabric);
  const std::vector<std::int64_t> sizes = schedules.sizes();
  Choice choice(arguments, fabric, others.size() + all_parts.size() * sizes.size());
  for (Plan& plan : others) choice.consider(std::move(plan));
  for (const std::int64_t size : sizes) {
    for (const std::int64_t parts : all_parts) {
      const auto blocks = schedules.blocks_of(parts);
      choice.consider(blocks ? std::optional(schedules.plan_of(*blocks, size)) : std::nullopt);
    }
  }
  return std::move(choice).best();
}

template <Fill fill>
Plan make_synth(const TemplateArguments& arguments) {
  return synthesise(arguments, fill);
}

}  // namespace

std::vector<TemplateInfo> synth_templates() {
  std::vector<TemplateInfo> rows = of_collectives(
      {{"all-gather/synth", "derived from the machine's links", {}, make_synth<fill_all_gather>},
       {"reduce-scatter/synth",
        "derived from the machine's links: a gather run backwards",
        {},
        make_synth<fill_reduce_scatter>},
       {"all-reduce/synth",
        "derived from the machine's links: reduce-scatter, then all-gather",
        {},
        make_synth<fill_all_reduce>},
       {"all-to-all/synth",
        "derived from the machine's links, over balanced paths",
        {},
        make_synth<fill_all_to_all>}});
  for (TemplateInfo& row : rows) {
    row.parameters = {
        {"split",
         "0",
         {},
         "chunks per rank; 0: as many as the schedule gains from, up to 16, or another "
         "template's plan"},
        {"size",
         "67108864",
         {},
         "bytes for which to schedule, as nccl-tests counts them; `run` takes its --size"},
        {"blocks",
         "equal",
         {"equal", "uneven"},
         "equal: the plan is for any size; uneven: cut as evenly as whole 16 B go, for multiples "
         "of this size only, as `run` has it"},
        {"seed", "0", {}, "choice among equally good chunks"},
        {"transfer",
         "any",
         {"any", "push"},
         "whether plans that pull are among those to choose from; packets cannot be pulled"},
        {"judge",
         "simulation",
         {"simulation", "estimate"},
         "what chooses among the plans with the shortest estimates, if split is 0"}};
    row.needs_machine = true;
  }
  return rows;
}

}  // namespace hemiola::plan
