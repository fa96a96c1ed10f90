#include "workload/hlo/loops.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "workload/hlo/attributes.h"
#include "workload/hlo/follow.h"
#include "workload/hlo/opcodes.h"

namespace hemiola::workload::hlo {
namespace {

constexpr std::int64_t kMostCounted = std::int64_t{1} << 40;
constexpr std::int64_t kMostTrips = std::int64_t{1} << 40;

class Counter {
 public:
  Counter(const Module& module, const Computation& computation, const Instruction& loop)
      : module_(module), computation_(computation), loop_(loop), spots_(module) {}

  /// `while (counter < end) counter += step`, with a constant begin, end and step.
  std::optional<std::int64_t> trips() {
    if (loop_.operands.size() != 1) return std::nullopt;
    const Computation& condition = module_.called(loop_, "condition");
    const Spot test = look({&condition, &condition.root_instruction()});
    if (test.instruction->opcode != "compare" || test.instruction->operands.size() != 2)
      return std::nullopt;
    const auto end = constant(operand(test, 1));
    const auto index = counter_index(operand(test, 0));
    const std::string_view direction = module_.attribute(*test.instruction, "direction");
    if (!end || !index || (direction != "LT" && direction != "LE")) return std::nullopt;
    const auto begin = first_value(*index);
    const auto step = step_of(*index);
    if (!begin || !step || *step < 1) return std::nullopt;
    const std::int64_t last = direction == "LE" ? *end : *end - 1;
    if (last < *begin) return 0;
    if (std::max(std::abs(*begin), std::abs(last)) > kMostTrips) return std::nullopt;
    return (last - *begin) / *step + 1;
  }

 private:
  Spot look(const Spot& at) { return spots_.look_through(at); }
  Spot operand(const Spot& at, std::size_t index) { return look(spots_.operand(at, index)); }
  std::optional<std::int64_t> constant(const Spot& at) const {
    if (at.instruction->opcode != "constant") return std::nullopt;
    return integer_of(at.instruction->literal);
  }
  /// Which element of the loop's tuple it is.
  std::optional<std::int64_t> counter_index(const Spot& at) {
    if (at.instruction->opcode != "get-tuple-element" || at.instruction->operands.size() != 1)
      return std::nullopt;
    const Spot tuple = operand(at, 0);
    if (tuple.instruction->opcode != "parameter" || tuple.caller != nullptr) return std::nullopt;
    return integer_of(module_.attribute(*at.instruction, "index"));
  }
  std::optional<Spot> element(const Computation& in, const Instruction& tuple, std::int64_t index) {
    const Spot whole = look({&in, &tuple});
    if (whole.instruction->opcode != "tuple" || index < 0 ||
        index >= static_cast<std::int64_t>(whole.instruction->operands.size()))
      return std::nullopt;
    return operand(whole, static_cast<std::size_t>(index));
  }
  std::optional<std::int64_t> first_value(std::int64_t index) {
    const auto first = element(computation_, computation_.instructions[loop_.operands[0]], index);
    return first ? constant(*first) : std::nullopt;
  }
  std::optional<std::int64_t> step_of(std::int64_t index) {
    const Computation& body = module_.called(loop_, "body");
    const auto next = element(body, body.root_instruction(), index);
    if (!next || next->instruction->opcode != "add" || next->instruction->operands.size() != 2)
      return std::nullopt;
    const Spot a = operand(*next, 0), b = operand(*next, 1);
    if (counter_index(a) == index) return constant(b);
    if (counter_index(b) == index) return constant(a);
    return std::nullopt;
  }

  const Module& module_;
  const Computation& computation_;
  const Instruction& loop_;
  Spots spots_;
};

}  // namespace

std::optional<std::int64_t> trip_count(const Module& module, const Computation& computation,
                                       const Instruction& loop) {
  const nlohmann::json config = backend_config(module, loop);
  if (config.is_object()) {
    const auto known = config.find("known_trip_count");
    if (known != config.end() && known->is_object() && known->contains("n")) {
      const auto trips = number_of((*known)["n"]);
      if (trips && *trips >= 0 && *trips <= kMostTrips) return trips;
    }
  }
  return Counter(module, computation, loop).trips();
}

std::vector<const Computation*> branches_of(const Module& module, const Instruction& conditional) {
  if (!module.attribute(conditional, "branch_computations").empty())
    return module.called_list(conditional, "branch_computations");
  return {&module.called(conditional, "true_computation"),
          &module.called(conditional, "false_computation")};
}

const Computation& Extents::costliest(const Instruction& conditional) {
  const std::vector<const Computation*> branches = branches_of(module_, conditional);
  if (branches.empty()) module_.fail(conditional, "a conditional without branches");
  return **std::ranges::max_element(branches, [&](const Computation* a, const Computation* b) {
    return of(*a).cost < of(*b).cost;
  });
}

const Extent& Extents::of(const Computation& computation) {
  const auto at = known_.find(&computation);
  if (at != known_.end()) return at->second;
  Extent sum;
  for (const Instruction& one : computation.instructions) {
    const Extent extent = of_instruction(computation, one);
    sum.nodes = std::min(kMostCounted, sum.nodes + extent.nodes);
    sum.steps = std::min(kMostCounted, sum.steps + extent.steps + 1);
    sum.cost += extent.cost;
  }
  return known_.emplace(&computation, sum).first->second;
}

Extent Extents::of_instruction(const Computation& computation, const Instruction& instruction) {
  const auto [opcode, phase] = phase_of(instruction.opcode);
  if (phase == Phase::done || phase == Phase::update) return {};
  if (opcode == "while") {
    const std::int64_t trips = trip_count(module_, computation, instruction).value_or(1);
    const Extent& body = of(module_.called(instruction, "body"));
    const auto repeated = [&](std::int64_t count) {
      return count > 0 && trips > kMostCounted / count ? kMostCounted : trips * count;
    };
    return {repeated(body.nodes), body.nodes > 0 ? repeated(body.steps) : body.steps,
            static_cast<double>(trips) * body.cost};
  }
  if (opcode == "conditional") return of(costliest(instruction));
  if (opcode == "call") return of(module_.called(instruction, "to_apply"));
  if (opcode == "async") return of(module_.called(instruction, "calls"));
  double operands = 0;
  for (const std::uint32_t operand : instruction.operands)
    operands += static_cast<double>(bytes_of(computation.instructions[operand].shape));
  switch (class_of(opcode)) {
    case OpcodeClass::nothing:
      return {};
    case OpcodeClass::communicating: {
      constexpr double kLinksSlower = 8;
      return {2, 0, kLinksSlower * operands};  // of a permute, send and receive
    }
    default: {
      constexpr double kFlopPerByte = 300;
      return {1, 0,
              operands + static_cast<double>(bytes_of(instruction.shape)) +
                  static_cast<double>(work_.flop(computation, instruction)) / kFlopPerByte};
    }
  }
}

}  // namespace hemiola::workload::hlo
