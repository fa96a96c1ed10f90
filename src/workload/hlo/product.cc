// Products: their shapes, by dimension numbers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "workload/hlo/attributes.h"
#include "workload/hlo/work.h"

namespace hemiola::workload::hlo {
namespace {

constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

std::string_view target_of(const Module& module, const Instruction& instruction) {
  if (instruction.opcode != "custom-call") return {};
  return unquoted(module.attribute(instruction, "custom_call_target"));
}

bool is_cublas(std::string_view target) {
  return target.starts_with("__cublas$gemm") || target.starts_with("__cublas$lt$") ||
         target.starts_with("__cublas$grouped");
}
bool is_cudnn_convolution(std::string_view target) {
  return target.starts_with("__cudnn$conv");
}

/// The result of a call that also returns its workspace.
const Shape& main_result(const Instruction& instruction) {
  const Shape* shape = &instruction.shape;
  while (shape->is_tuple() && !shape->elements.empty()) shape = &shape->elements.front();
  return *shape;
}

const Shape& operand_shape(const Module& module, const Computation& computation,
                           const Instruction& instruction, std::size_t index) {
  if (instruction.operands.size() <= index)
    module.fail(instruction, fmt::format("{} '{}' has {} operands, not {}", instruction.opcode,
                                         instruction.name, instruction.operands.size(), index + 1));
  return computation.instructions[instruction.operands[index]].shape;
}

/// The product of some dimensions, saturating.
std::int64_t extent_of(const Shape& shape, const std::vector<std::int64_t>& dimensions) {
  std::int64_t extent = 1;
  for (const std::int64_t d : dimensions) {
    const std::int64_t one = shape.dimensions[index(d)];
    extent = one == 0 || extent <= kMostExtent / one ? extent * one : kMostExtent;
  }
  return extent;
}

/// cuBLAS's configuration; an empty object if there is none.
nlohmann::json gemm_config(const Module& module, const Instruction& call) {
  const nlohmann::json config = backend_config(module, call);
  if (!config.is_object()) return nlohmann::json::object();
  const auto inner = config.find("gemm_backend_config");
  return inner != config.end() && inner->is_object() ? *inner : config;
}

void check_dimensions(const Module& module, const Instruction& instruction, const Shape& matrix,
                      const std::vector<std::int64_t>& summed,
                      const std::vector<std::int64_t>& batch) {
  std::vector<std::int64_t> all = summed;
  all.insert(all.end(), batch.begin(), batch.end());
  std::ranges::sort(all);
  const bool is_twice = std::ranges::adjacent_find(all) != all.end();
  if (is_twice ||
      (!all.empty() &&
       (all.front() < 0 || all.back() >= static_cast<std::int64_t>(matrix.dimensions.size()))))
    module.fail(instruction, fmt::format("'{}' sums over dimensions that {} does not have",
                                         instruction.name, text_of(matrix)));
}

/// "b01f_01io->b01f": where the letters and digits stand.
struct ConvolutionLabels {
  std::string_view input, kernel, output;
};

machine::GemmShape convolution_shape(const Module& module, const Computation& computation,
                                     const Instruction& instruction) {
  const std::string_view labels = module.attribute(instruction, "dim_labels");
  const std::size_t bar = labels.find('_'), arrow = labels.find("->");
  if (bar == std::string_view::npos || arrow == std::string_view::npos || arrow < bar)
    module.fail(instruction, fmt::format("convolution '{}' has no dim_labels as in b01f_01io->b01f",
                                         instruction.name));
  const ConvolutionLabels parts{labels.substr(0, bar), labels.substr(bar + 1, arrow - bar - 1),
                                labels.substr(arrow + 2)};
  // Calls of cuDNN name the result by the letters of the filter when that is what they compute, and
  // the image when it is that. In all of them three arrays have a part: images, filter, results.
  const bool is_input = target_of(module, instruction).ends_with("BackwardInput");
  const bool is_filter = target_of(module, instruction).ends_with("BackwardFilter");
  const Shape* images = &operand_shape(module, computation, instruction, 0);
  const Shape* filter = &operand_shape(module, computation, instruction, 1);
  const Shape* result = &main_result(instruction);
  if (is_input) std::swap(images, result);
  if (is_filter) std::swap(filter, result);  // operand 1 is the gradient of the results
  const auto extent = [&](const Shape& shape, std::string_view letters, char letter) {
    const std::size_t at = letters.find(letter);
    if (at == std::string_view::npos || at >= shape.dimensions.size())
      module.fail(instruction, fmt::format("dim_labels {} of '{}' have no '{}' of {}", labels,
                                           instruction.name, letter, text_of(shape)));
    return shape.dimensions[at];
  };
  machine::GemmShape shape;
  const std::int64_t groups = std::max<std::int64_t>(
      1, integer_of(module.attribute(instruction, "feature_group_count")).value_or(1));
  const std::int64_t features = extent(*filter, parts.kernel, 'o');
  shape.m = extent(*result, parts.output, 'b');
  shape.k = extent(*filter, parts.kernel, 'i');
  for (const char c : parts.kernel) {
    if (c < '0' || c > '9') continue;
    shape.k = std::min(kMostExtent, shape.k) *
              std::min(kMostExtent >> 20, extent(*filter, parts.kernel, c));
    shape.m = std::min(kMostExtent, shape.m) *
              std::min(kMostExtent >> 20, extent(*result, parts.output, c));
    shape.k = std::min(kMostExtent, shape.k);
    shape.m = std::min(kMostExtent, shape.m);
  }
  shape.batch = features % groups == 0 ? groups : 1;
  shape.n = features / shape.batch;
  shape.type = data_type_of(operand_shape(module, computation, instruction, 0).type);
  return shape;
}

}  // namespace

DataType data_type_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, DataType>, 13> kTypes{{
      {"f64", DataType::float64},
      {"f32", DataType::float32},
      {"f16", DataType::float16},
      {"bf16", DataType::bfloat16},
      {"s8", DataType::int8},
      {"u8", DataType::uint8},
      {"s32", DataType::int32},
      {"u32", DataType::uint32},
      {"s64", DataType::int64},
      {"u64", DataType::int64},
      {"f8e5m2", DataType::fp8_e5m2},
      {"f8e5m2fnuz", DataType::fp8_e5m2},
      {"c64", DataType::float64},
  }};
  for (const auto& [name, found] : kTypes)
    if (name == type) return found;
  if (type.starts_with('f')) return DataType::fp8_e4m3;
  switch (bits_of(type)) {
    case 16:
      return DataType::float16;
    case 128:
      return DataType::float64;
    default:
      return DataType::uint8;
  }
}

bool is_matrix_product(const Module& module, const Instruction& instruction) {
  return instruction.opcode == "dot" || is_cublas(target_of(module, instruction));
}

ProductDimensions product_dimensions(const Module& module, const Computation& computation,
                                     const Instruction& instruction) {
  ProductDimensions found;
  if (instruction.opcode == "dot") {
    found = {dimensions_of(module, instruction, "lhs_contracting_dims"),
             dimensions_of(module, instruction, "rhs_contracting_dims"),
             dimensions_of(module, instruction, "lhs_batch_dims"),
             dimensions_of(module, instruction, "rhs_batch_dims")};
  } else {
    const nlohmann::json config = gemm_config(module, instruction);
    const auto numbers = config.find("dot_dimension_numbers");
    if (numbers == config.end() || !numbers->is_object())
      module.fail(instruction,
                  fmt::format("'{}' calls cuBLAS and has no dot_dimension_numbers in its "
                              "backend_config",
                              instruction.name));
    const auto list = [&](const char* name) {
      std::vector<std::int64_t> dimensions;
      const auto at = numbers->find(name);
      if (at == numbers->end() || !at->is_array()) return dimensions;
      for (const auto& one : *at) dimensions.push_back(number_of(one).value_or(-1));
      return dimensions;
    };
    found = {list("lhs_contracting_dimensions"), list("rhs_contracting_dimensions"),
             list("lhs_batch_dimensions"), list("rhs_batch_dimensions")};
  }
  const Shape& left = operand_shape(module, computation, instruction, 0);
  const Shape& right = operand_shape(module, computation, instruction, 1);
  check_dimensions(module, instruction, left, found.left_summed, found.left_batch);
  check_dimensions(module, instruction, right, found.right_summed, found.right_batch);
  const auto is_same = [&](const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (left.dimensions[index(a[i])] != right.dimensions[index(b[i])]) return false;
    return true;
  };
  if (!is_same(found.left_summed, found.right_summed) ||
      !is_same(found.left_batch, found.right_batch))
    module.fail(instruction, fmt::format("'{}' multiplies {} by {}, whose dimensions do not match",
                                         instruction.name, text_of(left), text_of(right)));
  return found;
}

std::vector<std::int64_t> free_dimensions(const Shape& matrix,
                                          const std::vector<std::int64_t>& summed,
                                          const std::vector<std::int64_t>& batch) {
  std::vector<std::int64_t> free;
  const auto has = [](const std::vector<std::int64_t>& list, std::int64_t d) {
    return std::ranges::find(list, d) != list.end();
  };
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(matrix.dimensions.size()); ++d)
    if (!has(summed, d) && !has(batch, d)) free.push_back(d);
  return free;
}

std::optional<machine::GemmShape> product_of(const Module& module, const Computation& computation,
                                             const Instruction& instruction) {
  const std::string_view target = target_of(module, instruction);
  std::optional<machine::GemmShape> shape;
  if (instruction.opcode == "convolution" || is_cudnn_convolution(target)) {
    shape = convolution_shape(module, computation, instruction);
  } else if (is_matrix_product(module, instruction)) {
    const ProductDimensions numbers = product_dimensions(module, computation, instruction);
    const Shape& left = operand_shape(module, computation, instruction, 0);
    const Shape& right = operand_shape(module, computation, instruction, 1);
    shape = machine::GemmShape{
        .m = extent_of(left, free_dimensions(left, numbers.left_summed, numbers.left_batch)),
        .n = extent_of(right, free_dimensions(right, numbers.right_summed, numbers.right_batch)),
        .k = extent_of(left, numbers.left_summed),
        .batch = extent_of(left, numbers.left_batch),
        .type = data_type_of(left.type)};
    if (is_cublas(target)) {
      const nlohmann::json config = gemm_config(module, instruction);
      const auto beta = config.find("beta");
      shape->accumulate = beta != config.end() && beta->is_number() && beta->get<double>() != 0;
    }
  } else if (instruction.opcode == "ragged-dot") {
    // Rows of all groups together are multiplied once, each by the matrix of its group.
    const Shape& left = operand_shape(module, computation, instruction, 0);
    const Shape& right = operand_shape(module, computation, instruction, 1);
    if (left.dimensions.size() == 2 && right.dimensions.size() == 3)
      shape = machine::GemmShape{.m = left.dimensions[0],
                                 .n = right.dimensions[2],
                                 .k = left.dimensions[1],
                                 .type = data_type_of(left.type)};
  }
  if (!shape) return std::nullopt;
  const DataType output = data_type_of(main_result(instruction).type);
  if (output != shape->type) shape->output = output;
  // An empty product, or one beyond all memories, is no product.
  for (const std::int64_t extent : {shape->m, shape->n, shape->k, shape->batch})
    if (extent < 1 || extent >= kMostExtent) return std::nullopt;
  const double flop = 2.0 * static_cast<double>(shape->m) * static_cast<double>(shape->n) *
                      static_cast<double>(shape->k) * static_cast<double>(shape->batch);
  constexpr double kMostFlop = 1e18;
  if (flop > kMostFlop)
    module.fail(instruction, fmt::format("'{}' takes {:.1g} flop, more than a GPU does in an hour",
                                         instruction.name, flop));
  return shape;
}

}  // namespace hemiola::workload::hlo
