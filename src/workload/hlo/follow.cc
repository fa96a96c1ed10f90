#include "workload/hlo/follow.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "workload/hlo/attributes.h"

namespace hemiola::workload::hlo {
namespace {

/// Dimensions from the slowest in memory to the fastest. Empty: the layout does not fit the shape.
std::vector<std::int64_t> slowest_first(const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.dimensions.size());
  std::vector<std::int64_t> order(shape.dimensions.size());
  std::iota(order.begin(), order.end(), 0);
  if (shape.layout.empty()) return order;
  std::vector<std::int64_t> fastest_first =
      integers_in(shape.layout.substr(0, shape.layout.find(':')));
  std::ranges::reverse(fastest_first);
  std::vector<std::int64_t> sorted = fastest_first;
  std::ranges::sort(sorted);
  return sorted == order && static_cast<std::int64_t>(sorted.size()) == rank
             ? fastest_first
             : std::vector<std::int64_t>{};
}

/// The dimension of `to` that is divided where that of `from` is, elements numbered in the orders
/// given.
std::optional<std::int64_t> same_pieces(const Shape& from,
                                        const std::vector<std::int64_t>& from_order,
                                        const Shape& to, const std::vector<std::int64_t>& to_order,
                                        std::int64_t dimension, std::int64_t parts) {
  const auto piece_of = [&](const Shape& shape, const std::vector<std::int64_t>& order,
                            std::int64_t wanted) {
    std::int64_t inner = 1;
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::int64_t extent = shape.dimensions[static_cast<std::size_t>(order[i])];
      if (order[i] == wanted) return extent % parts == 0 ? extent / parts * inner : -1;
      inner *= extent;
    }
    return std::int64_t{-1};
  };
  const std::int64_t piece = piece_of(from, from_order, dimension);
  if (piece <= 0) return std::nullopt;
  for (const std::int64_t candidate : to_order)
    if (to.dimensions[static_cast<std::size_t>(candidate)] >= parts &&
        piece_of(to, to_order, candidate) == piece)
      return candidate;
  return std::nullopt;
}

}  // namespace

Spot Spots::inside(const Spot& fusion) {
  const Computation& called = module_.called(*fusion.instruction, "calls");
  return {&called, &called.root_instruction(), keep(fusion)};
}

std::optional<Spot> Spots::argument(const Spot& parameter) const {
  if (parameter.caller == nullptr) return std::nullopt;
  const auto index = integer_of(parameter.instruction->literal).value_or(-1);
  const Instruction& call = *parameter.caller->instruction;
  if (index < 0 || index >= static_cast<std::int64_t>(call.operands.size())) return std::nullopt;
  return operand(*parameter.caller, static_cast<std::size_t>(index));
}

Spot Spots::look_through(Spot at) {
  constexpr int kMostSteps = 100;
  for (int i = 0; i < kMostSteps; ++i) {
    const Instruction& one = *at.instruction;
    if ((one.opcode == "copy" || one.opcode == "convert" || one.opcode == "bitcast") &&
        one.operands.size() == 1) {
      at = operand(at, 0);
    } else if (one.opcode == "fusion") {
      at = inside(at);
    } else if (one.opcode == "parameter") {
      const std::optional<Spot> passed = argument(at);
      if (!passed) return at;
      at = *passed;
    } else {
      return at;
    }
  }
  return at;
}

bool carries_values(const Instruction& instruction) {
  return instruction.operands.size() == 1 &&
         (instruction.opcode == "copy" || instruction.opcode == "convert" ||
          instruction.opcode == "transpose" || instruction.opcode == "reshape" ||
          instruction.opcode == "bitcast");
}

std::optional<std::int64_t> carried_dimension(const Module& module, const Shape& operand,
                                              const Instruction& instruction,
                                              std::int64_t dimension, std::int64_t parts) {
  const Shape& result = instruction.shape;
  if (!carries_values(instruction) || operand.is_tuple() || result.is_tuple() ||
      elements_of(operand) != elements_of(result) || elements_of(operand) == 0)
    return std::nullopt;
  if (instruction.opcode == "copy" || instruction.opcode == "convert")
    return operand.dimensions == result.dimensions ? std::optional(dimension) : std::nullopt;
  if (instruction.opcode == "transpose") {
    const std::vector<std::int64_t> order = dimensions_of(module, instruction, "dimensions");
    const auto at = std::ranges::find(order, dimension);
    if (at == order.end() || order.size() != result.dimensions.size()) return std::nullopt;
    return at - order.begin();
  }
  // A reshape keeps the order of elements, a bitcast their places in memory.
  const bool is_bitcast = instruction.opcode == "bitcast";
  Shape from = operand, to = result;
  if (!is_bitcast) from.layout = to.layout = {};
  const std::vector<std::int64_t> from_order = slowest_first(from), to_order = slowest_first(to);
  if (from_order.empty() || to_order.empty()) return std::nullopt;
  return same_pieces(from, from_order, to, to_order, dimension, parts);
}

}  // namespace hemiola::workload::hlo
