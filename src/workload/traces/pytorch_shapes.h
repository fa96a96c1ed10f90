// Shapes and types of tensors as PyTorch's traces write them, and what operators do with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// "float", "Float", "c10::BFloat16", "BFloat16", "Tensor(float)", "long int", "Long", ... Types
/// that Hemiola does not have are taken as those of the same size.
std::optional<DataType> torch_type(std::string_view name);

using TensorShape = std::vector<std::int64_t>;
/// Of the arguments of an operator: of each the shape, or the shapes if it is a list of tensors;
/// none for what is no tensor, or has no dimension.
using ArgumentShapes = std::vector<std::vector<TensorShape>>;

/// Of a text as "[[512, 1024], [], [[3], [4]]]"; lists that lie deeper are taken apart. Nothing if
/// it is no such list.
std::optional<ArgumentShapes> parse_shapes(std::string_view text);
/// Of a text as "['Tensor(float)', 'Int']" or "["float", "Scalar"]".
std::vector<std::string> parse_types(std::string_view text);

/// Elements of all tensors of an argument; 0 if it has none, or more than fit.
std::int64_t elements_of(const std::vector<TensorShape>& shapes);

/// Without what converters add: "aten::mm(1)" is "aten::mm".
std::string_view operator_of(std::string_view name);
bool is_product_operator(std::string_view name);

/// The matrix product that an operator computes: aten::mm, addmm, bmm, baddbmm, linear, matmul,
/// _scaled_mm. Nothing for other operators, and for shapes that do not fit together.
std::optional<Compute> product_of(std::string_view name, const ArgumentShapes& shapes,
                                  const std::vector<std::string>& types);

/// Bytes that an operator reads and writes, concluded from its arguments where a trace does not say
/// what it gives: each argument is read once, and what is written is as large as the largest of
/// them, or as the first where the operator works in place; a reduction writes next to nothing.
/// Nothing for products, convolutions, lookups in tables and compiled functions, and without a
/// shape.
std::optional<Compute> bytes_of_operator(std::string_view name, const ArgumentShapes& shapes,
                                         const std::vector<std::string>& types);

/// Whether a kernel's name is one of those that libraries give to matrix products.
bool is_product_kernel(std::string_view name);

}  // namespace hemiola::workload
