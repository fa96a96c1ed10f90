#include "workload/hlo/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "workload/hlo/attributes.h"
#include "workload/hlo/opcodes.h"

namespace hemiola::workload::hlo {
namespace {

constexpr std::int64_t kMostFlop = std::int64_t{1} << 60;

std::int64_t sum_of_flop(std::int64_t a, std::int64_t b) {
  return std::min(kMostFlop, a + b);
}
std::int64_t times(std::int64_t count, std::int64_t flop) {
  if (count <= 0 || flop <= 0) return 0;
  return count > kMostFlop / flop ? kMostFlop : count * flop;
}

/// Of a computation that are kept: one is a product, and of more it only counts that there are.
constexpr std::size_t kMostProducts = 2;

/// Of a share in (0, 1].
std::int64_t part_of(std::int64_t bytes, double share) {
  return share >= 1 ? bytes : static_cast<std::int64_t>(static_cast<double>(bytes) * share);
}

/// Elements of `window={size=3x3 ...}`; 1 if there is none.
std::int64_t window_elements(const Module& module, const Instruction& instruction) {
  std::string_view size = field_of(module.attribute(instruction, "window"), "size");
  std::int64_t elements = 1;
  while (!size.empty()) {
    const std::size_t end = std::min(size.find('x'), size.size());
    elements = times(elements, integer_of(size.substr(0, end)).value_or(1));
    size.remove_prefix(std::min(size.size(), end + 1));
  }
  return elements;
}

bool is_view(std::string_view opcode) {
  return opcode == "bitcast" || opcode == "reshape" || opcode == "copy" || opcode == "transpose" ||
         opcode == "convert" || opcode == "broadcast";
}

bool is_slice(std::string_view opcode) {
  return opcode == "slice" || opcode == "dynamic-slice" || opcode == "gather";
}

/// Which share of operand `index` an instruction reads when `share` of its result is needed.
double share_of_operand(const Computation& computation, const Instruction& instruction,
                        std::size_t index, double share) {
  if (share <= 0) return 0;
  const Shape& operand = computation.instructions[instruction.operands[index]].shape;
  if (index == 0 && is_slice(instruction.opcode)) {
    const auto whole = static_cast<double>(elements_of(operand));
    return whole <= 0
               ? 0
               : std::min(1.0, share * static_cast<double>(elements_of(instruction.shape)) / whole);
  }
  // Updated in place: the rest stays where it is.
  if (index == 0 && instruction.opcode == "dynamic-update-slice") return 0;
  if (index == 0 && instruction.opcode == "scatter" && instruction.operands.size() >= 3) {
    const Shape& updates = computation.instructions[instruction.operands.back()].shape;
    const auto whole = static_cast<double>(elements_of(operand));
    return whole <= 0 ? 0 : std::min(1.0, static_cast<double>(elements_of(updates)) / whole);
  }
  const bool keeps =
      is_view(instruction.opcode) || class_of(instruction.opcode) == OpcodeClass::elementwise;
  return keeps ? share : 1;
}

}  // namespace

std::int64_t KernelWork::read(const Computation& computation,
                              const Instruction& instruction) const {
  // Of each operand, the share that is used.
  std::unordered_map<std::uint32_t, double> shares;
  if (instruction.opcode == "fusion") {
    const Computation& inside = module_.called(instruction, "calls");
    std::vector<double> needed(inside.instructions.size(), 0);
    needed[inside.root] = 1;
    for (std::size_t i = inside.instructions.size(); i-- > 0;) {
      const Instruction& one = inside.instructions[i];
      const double share = std::min(1.0, needed[i]);
      for (std::size_t k = 0; k < one.operands.size(); ++k)
        needed[one.operands[k]] += share_of_operand(inside, one, k, share);
      if (one.opcode != "parameter") continue;
      const auto index = integer_of(one.literal).value_or(-1);
      if (index < 0 || index >= static_cast<std::int64_t>(instruction.operands.size()))
        module_.fail(one, fmt::format("fusion '{}' has no operand {} for this parameter",
                                      instruction.name, one.literal));
      shares[instruction.operands[static_cast<std::size_t>(index)]] += share;
    }
  } else {
    for (std::size_t k = 0; k < instruction.operands.size(); ++k)
      shares[instruction.operands[k]] += share_of_operand(computation, instruction, k, 1);
  }
  std::int64_t sum = 0;
  for (const auto& [operand, share] : shares)
    sum = sum_of_flop(sum, part_of(bytes_of(computation.instructions[operand].shape), share));
  return sum;
}

std::int64_t KernelWork::written(const Computation& computation,
                                 const Instruction& instruction) const {
  if (instruction.opcode == "fusion") {
    const Computation& inside = module_.called(instruction, "calls");
    return written(inside, inside.root_instruction());
  }
  const auto operand = [&](std::size_t index) -> const Instruction& {
    return computation.instructions[instruction.operands[index]];
  };
  if (instruction.opcode == "dynamic-update-slice" && instruction.operands.size() >= 2)
    return bytes_of(operand(1).shape);
  if (instruction.opcode == "scatter" && instruction.operands.size() >= 3)
    return bytes_of(operand(instruction.operands.size() - 1).shape);
  if (instruction.opcode == "bitcast" && instruction.operands.size() == 1)
    return written(computation, operand(0));
  if (instruction.opcode == "tuple") {
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < instruction.operands.size(); ++k)
      sum = sum_of_flop(sum, operand(k).opcode == "tuple" || operand(k).opcode == "fusion"
                                 ? bytes_of(operand(k).shape)
                                 : written(computation, operand(k)));
    return sum;
  }
  return bytes_of(instruction.shape);
}

const KernelWork::OfComputation& KernelWork::inside(const Computation& computation) {
  const auto at = known_.find(&computation);
  if (at != known_.end()) return at->second;
  OfComputation found;
  for (const Instruction& one : computation.instructions) {
    found.flop = sum_of_flop(found.flop, flop(computation, one));
    if (one.opcode == "fusion") {
      const auto& fused = inside(module_.called(one, "calls")).products;
      found.products.insert(found.products.end(), fused.begin(), fused.end());
    } else if (product_of(module_, computation, one)) {
      found.products.push_back({&computation, &one});
    }
    if (found.products.size() > kMostProducts) found.products.resize(kMostProducts);
  }
  return known_.emplace(&computation, std::move(found)).first->second;
}

const std::vector<ProductPlace>& KernelWork::products_in(const Computation& computation) {
  return inside(computation).products;
}

std::int64_t KernelWork::flop(const Computation& computation, const Instruction& instruction) {
  const auto operand_elements = [&](std::size_t index) {
    return instruction.operands.size() <= index
               ? 0
               : elements_of(computation.instructions[instruction.operands[index]].shape);
  };
  const auto flop_of = [&](std::string_view attribute) {
    return std::max<std::int64_t>(1, inside(module_.called(instruction, attribute)).flop);
  };
  switch (class_of(instruction.opcode)) {
    case OpcodeClass::elementwise:
      return std::min(kMostFlop, elements_of(instruction.shape));
    case OpcodeClass::product:
    case OpcodeClass::custom: {
      const auto shape = product_of(module_, computation, instruction);
      return shape ? times(2 * shape->batch, times(shape->m, times(shape->n, shape->k))) : 0;
    }
    case OpcodeClass::fusion:
      return inside(module_.called(instruction, "calls")).flop;
    case OpcodeClass::reducing:
      break;
    default:
      return 0;
  }
  const std::string_view opcode = instruction.opcode;
  const std::int64_t result = elements_of(instruction.shape);
  if (opcode == "reduce") {
    const std::int64_t arrays = std::max<std::size_t>(1, instruction.operands.size() / 2);
    return times(operand_elements(0) - result / arrays, flop_of("to_apply"));
  }
  if (opcode == "reduce-window")
    return times(times(result, window_elements(module_, instruction) - 1), flop_of("to_apply"));
  if (opcode == "map") return times(result, flop_of("to_apply"));
  if (opcode == "scatter")
    return times(operand_elements(instruction.operands.size() - 1), flop_of("to_apply"));
  if (opcode == "select-and-scatter")
    return times(operand_elements(1), window_elements(module_, instruction));
  if (opcode == "sort") {
    const std::int64_t count = operand_elements(0);
    return times(count,
                 std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(1, count) - 1)));
  }
  return operand_elements(0);
}

Compute KernelWork::of(const Computation& computation, const Instruction& instruction) {
  Compute compute{.flop = flop(computation, instruction),
                  .read = read(computation, instruction),
                  .written = written(computation, instruction)};
  const Shape* shape = &instruction.shape;
  while (shape->is_tuple() && !shape->elements.empty()) shape = &shape->elements.front();
  compute.type = data_type_of(shape->type);
  std::optional<machine::GemmShape> product;
  if (instruction.opcode == "fusion") {
    const std::vector<ProductPlace>& products = products_in(module_.called(instruction, "calls"));
    if (products.size() == 1)
      product = product_of(module_, *products.front().computation, *products.front().instruction);
  } else {
    product = product_of(module_, computation, instruction);
  }
  if (product) {
    compute.kind = Compute::Kind::product;
    compute.product = *product;
    compute.type = product->type;
  }
  return compute;
}

}  // namespace hemiola::workload::hlo
