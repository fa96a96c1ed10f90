// Templates that are derived from the machine: schedules of synthesis.h as plans. A rank has a
// stream for each of its outgoing links, with the transfers in the order of the schedule.
#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "plan/build.h"
#include "plan/families.h"
#include "plan/gather.h"
#include "plan/synthesis.h"

namespace hemiola::plan {
namespace {

const std::int32_t kInput = 0, kOutput = 1, kExtra = 2, kSlots = 3;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Streams by the link over which a transfer leaves, and one for what stays on a rank.
class Writer {
 public:
  explicit Writer(Fabric& fabric) : fabric_(fabric), known_(at(fabric.ranks())) {
    std::size_t most = 1;
    for (const auto& [from, to] : fabric.neighbours()) {
      stream_of(from, to);
      most = std::max(most, known_[at(from)].size());
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < most; ++i) names.push_back("link " + std::to_string(i));
    local_ = static_cast<std::int32_t>(names.size());
    names.push_back("local");
    code_.emplace(fabric.ranks(), names);
  }

  Dependency add(const Move& move, Transfer transfer) {
    return code_->add(move.from, stream_of(move.from, move.to), std::move(transfer));
  }
  /// Copies and additions of what has come.
  Dependency add_local(int rank, Transfer transfer) {
    return code_->add(rank, local_, std::move(transfer));
  }
  void finish(Plan& plan) { code_->finish(plan); }

 private:
  std::int32_t stream_of(int from, int to) {
    auto& streams = known_[at(from)];
    const std::int32_t trunk = fabric_.way(from, to).uses.front().trunk;
    return streams.try_emplace(trunk, static_cast<std::int32_t>(streams.size())).first->second;
  }

  Fabric& fabric_;
  std::vector<std::map<std::int32_t, std::int32_t>> known_;  // by rank: trunk to stream
  std::int32_t local_ = 0;
  std::optional<RankByRank> code_;
};

/// By rank and chunk: what has to be waited for.
using Arrivals = std::vector<std::map<std::int64_t, Dependency>>;

/// Chunks of `own` (by rank; the input's for all-gathers) go to the outputs of all others.
void write_gather(Writer& writer, const std::vector<Move>& moves, std::int64_t parts,
                  bool from_input, Arrivals& arrived) {
  for (const Move& move : moves) {
    const bool is_own = move.chunk / parts == move.from;
    const Region target = chunk_of(kOutput, constant(move.chunk));
    const Region source =
        is_own && from_input ? chunk_of(kInput, constant(move.chunk % parts)) : target;
    Transfer transfer = push(constant(move.to), source, target);
    const auto needed = arrived[at(move.from)].find(move.chunk);
    if (needed != arrived[at(move.from)].end()) transfer.after.push_back(needed->second);
    arrived[at(move.to)][move.chunk] = writer.add(move, std::move(transfer));
  }
}

/// The schedule of a gather against the links, run backwards: a rank adds up what it would have
/// spread, then passes the sum on. Sums are complete at the owners' outputs, and `partial` before.
class Reduction {
 public:
  Reduction(Writer& writer, std::vector<Move> moves, std::int64_t parts, int ranks, bool is_scatter)
      : writer_(writer), parts_(parts), is_scatter_(is_scatter), sums_(at(ranks)) {
    const Time end = end_of(moves);
    for (const Move& move : moves) {
      todo_.push({end - move.end, true, std::ssize(moves_)});
      moves_.push_back({move.chunk, move.to, move.from, end - move.end, end - move.start});
      ++sums_[at(move.from)][move.chunk].missing;
    }
    slot_of_.resize(moves_.size());
    arrived_.resize(moves_.size());
    slots_.assign(at(ranks), 0);
  }

  /// The additions that complete the sums of every rank, and the slots of scratch memory used.
  Arrivals run() {
    for (; !todo_.empty();) {
      const Todo todo = todo_.top();
      todo_.pop();
      todo.is_push ? send(todo.move) : add(todo.move);
    }
    Arrivals complete(sums_.size());
    for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
      for (const auto& [chunk, sum] : sums_[rank]) {
        if (chunk / parts_ == static_cast<std::int64_t>(rank)) complete[rank][chunk] = *sum.last;
      }
    }
    return complete;
  }
  std::int64_t slots() const { return *std::max_element(slots_.begin(), slots_.end()); }

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
    return chunk_of(sums_[at(rank)][chunk].last ? kExtra : kInput, constant(chunk));
  }
  /// Where the next addition goes.
  Region target(int rank, std::int64_t chunk) {
    const bool is_result = --sums_[at(rank)][chunk].missing == 0 && chunk / parts_ == rank;
    if (!is_result) return chunk_of(kExtra, constant(chunk));
    return chunk_of(kOutput, constant(is_scatter_ ? chunk % parts_ : chunk));
  }
  static void wait(Transfer& transfer, const std::optional<Dependency>& dependency) {
    if (dependency) transfer.after.push_back(*dependency);
  }

  /// Adds to the receiver's sum on arrival, unless another addition is still on its way.
  void send(std::int64_t number) {
    const Move& move = moves_[at(number)];
    Sum& sum = sums_[at(move.to)][move.chunk];
    Transfer transfer =
        push(constant(move.to), held(move.from, move.chunk), chunk_of(kSlots, constant(0)));
    wait(transfer, sums_[at(move.from)][move.chunk].last);
    if (sum.last && sum.end > move.start) {
      slot_of_[at(number)] = slots_[at(move.to)]++;
      transfer.destination = chunk_of(kSlots, constant(slot_of_[at(number)]));
      arrived_[at(number)] = writer_.add(move, std::move(transfer));
      sum.end = std::max(sum.end, move.end);
      todo_.push({sum.end, false, number});
      return;
    }
    const Region operand = held(move.to, move.chunk);
    transfer.destination = target(move.to, move.chunk);
    transfer = reducing(std::move(transfer), operand);
    wait(transfer, sum.last);
    sum.last = writer_.add(move, std::move(transfer));
    sum.end = move.end;
  }

  void add(std::int64_t number) {
    const Move& move = moves_[at(number)];
    Sum& sum = sums_[at(move.to)][move.chunk];
    const Region operand = held(move.to, move.chunk);
    Transfer transfer = reducing(
        copy(chunk_of(kSlots, constant(slot_of_[at(number)])), target(move.to, move.chunk)),
        operand);
    wait(transfer, arrived_[at(number)]);
    wait(transfer, sum.last);
    sum.last = writer_.add_local(move.to, std::move(transfer));
  }

  Writer& writer_;
  std::int64_t parts_;
  bool is_scatter_;
  std::vector<Move> moves_;
  std::vector<std::int64_t> slot_of_;               // by move
  std::vector<std::optional<Dependency>> arrived_;  // by move: in its slot
  std::vector<std::map<std::int64_t, Sum>> sums_;   // by rank and chunk
  std::vector<std::int64_t> slots_;                 // by rank
  std::priority_queue<Todo> todo_;
};

/// The number of parts that is asked for, or that has the best schedule.
std::int64_t best_split(const TemplateArguments& arguments,
                        const std::function<Time(std::int64_t parts)>& end) {
  if (arguments.number("split") != 0) return split_of(arguments);
  constexpr std::int64_t kMost = 16;
  constexpr int kManyRanks = 64;  // a schedule of these takes seconds
  std::int64_t best = 1;
  Time least = end(1);
  for (std::int64_t parts = 2; parts <= kMost; parts *= 2) {
    const Time time = end(parts);
    const bool is_better = time.fs < least.fs - least.fs / 100;
    if (!is_better && arguments.ranks > kManyRanks) break;
    if (is_better) {
      best = parts;
      least = time;
    }
  }
  return best;
}

class Synthesis {
 public:
  explicit Synthesis(const TemplateArguments& arguments)
      : arguments_(arguments), fabric_(*arguments.machine) {}

  Fabric& fabric() { return fabric_; }
  SynthesisOptions options(std::int64_t parts) const {
    const std::int64_t chunks = parts * arguments_.ranks;
    return {parts, std::max<std::int64_t>(1, arguments_.number("size") / chunks),
            static_cast<std::uint64_t>(arguments_.number("seed"))};
  }
  std::vector<Move> gather(std::int64_t parts, bool against) {
    return schedule_gather(fabric_, options(parts), against);
  }
  std::int64_t split(bool against) {
    return best_split(arguments_,
                      [&](std::int64_t parts) { return end_of(gather(parts, against)); });
  }

 private:
  const TemplateArguments& arguments_;
  Fabric fabric_;
};

void add_slots(Plan& plan, std::int64_t slots) {
  if (slots > 0) plan.tensors.push_back({"slots", Role::scratch, slots});
}

Plan make_all_gather_synth(const TemplateArguments& arguments) {
  Synthesis synthesis(arguments);
  const std::int64_t parts = synthesis.split(false), ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks * parts);
  plan.tensors = {{"input", Role::input, parts}, {"output", Role::output, ranks * parts}};
  plan.in_place_safe = true;
  Writer writer(synthesis.fabric());
  Arrivals arrived(at(ranks));
  write_gather(writer, synthesis.gather(parts, false), parts, true, arrived);
  for (int rank = 0; rank < ranks; ++rank)
    writer.add_local(rank, copy(chunks_of(kInput, {}, parts),
                                chunks_of(kOutput, constant(rank * parts), parts)));
  writer.finish(plan);
  return plan;
}

Plan make_reduce_scatter_synth(const TemplateArguments& arguments) {
  Synthesis synthesis(arguments);
  const std::int64_t parts = synthesis.split(true), ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks * parts);
  plan.tensors = {{"input", Role::input, ranks * parts},
                  {"output", Role::output, parts},
                  {"partial", Role::scratch, ranks * parts}};
  plan.in_place_safe = true;
  Writer writer(synthesis.fabric());
  Reduction reduction(writer, synthesis.gather(parts, true), parts, arguments.ranks, true);
  reduction.run();
  add_slots(plan, reduction.slots());
  writer.finish(plan);
  return plan;
}

Plan make_all_reduce_synth(const TemplateArguments& arguments) {
  Synthesis synthesis(arguments);
  const std::int64_t parts = synthesis.split(true), ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks * parts);
  plan.tensors = {{"input", Role::input, ranks * parts},
                  {"output", Role::output, ranks * parts},
                  {"partial", Role::scratch, ranks * parts}};
  plan.in_place_safe = true;
  Writer writer(synthesis.fabric());
  Reduction reduction(writer, synthesis.gather(parts, true), parts, arguments.ranks, false);
  Arrivals arrived = reduction.run();
  add_slots(plan, reduction.slots());
  write_gather(writer, synthesis.gather(parts, false), parts, false, arrived);
  writer.finish(plan);
  return plan;
}

Plan make_all_to_all_synth(const TemplateArguments& arguments) {
  Synthesis synthesis(arguments);
  const std::int64_t ranks = arguments.ranks;
  const std::int64_t parts = best_split(arguments, [&](std::int64_t count) {
    return end_of(schedule_exchange(synthesis.fabric(), synthesis.options(count)));
  });
  Plan plan = start_plan(arguments, ranks * parts);
  plan.tensors = {{"input", Role::input, ranks * parts}, {"output", Role::output, ranks * parts}};
  Writer writer(synthesis.fabric());
  struct Held {
    Region region;
    std::optional<Dependency> arrived;
  };
  std::map<std::int64_t, Held> held;  // by chunk: where it is
  std::vector<std::int64_t> slots(at(ranks), 0);
  for (const Move& move : schedule_exchange(synthesis.fabric(), synthesis.options(parts))) {
    const std::int64_t part = move.chunk % parts, pair = move.chunk / parts;
    const std::int64_t from = pair / ranks, to = pair % ranks;
    if (move.from == from)
      held[move.chunk] = {chunk_of(kInput, constant(to * parts + part)), std::nullopt};
    Held& now = held.at(move.chunk);
    const Region target = move.to == to ? chunk_of(kOutput, constant(from * parts + part))
                                        : chunk_of(kExtra, constant(slots[at(move.to)]++));
    Transfer transfer = push(constant(move.to), now.region, target);
    if (now.arrived) transfer.after.push_back(*now.arrived);
    now = {target, writer.add(move, std::move(transfer))};
  }
  const std::int64_t most = *std::max_element(slots.begin(), slots.end());
  if (most > 0) plan.tensors.push_back({"relayed", Role::scratch, most});
  for (int rank = 0; rank < ranks; ++rank) {
    const Affine own = constant(rank * parts);
    writer.add_local(rank, copy(chunks_of(kInput, own, parts), chunks_of(kOutput, own, parts)));
  }
  writer.finish(plan);
  return plan;
}

TemplateInfo synth_template(const char* name, Collective collective, const char* description,
                            Plan (*make)(const TemplateArguments&)) {
  return {name,
          collective,
          description,
          {{"split", "0", {}, "chunks per rank; 0: as many as the schedule gains from, up to 16"},
           {"size", "67108864", {}, "bytes for which to schedule, as nccl-tests counts them"},
           {"seed", "0", {}, "choice among equally good chunks"}},
          make,
          true,
          false,
          true};
}

}  // namespace

TemplateInfo all_gather_synth() {
  return synth_template("all-gather/synth", Collective::all_gather,
                        "derived from the machine's links", make_all_gather_synth);
}

TemplateInfo reduce_scatter_synth() {
  return synth_template("reduce-scatter/synth", Collective::reduce_scatter,
                        "derived from the machine's links: a gather run backwards",
                        make_reduce_scatter_synth);
}

TemplateInfo all_reduce_synth() {
  return synth_template("all-reduce/synth", Collective::all_reduce,
                        "derived from the machine's links: reduce-scatter, then all-gather",
                        make_all_reduce_synth);
}

TemplateInfo all_to_all_synth() {
  return synth_template("all-to-all/synth", Collective::all_to_all,
                        "derived from the machine's links, over balanced paths",
                        make_all_to_all_synth);
}

}  // namespace hemiola::plan
