#include "workload/traces/pytorch/operators.h"

#include <algorithm>
#include <limits>

#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

bool is_in_place(std::string_view name) {
  return operator_of(name).ends_with("_");
}

bool is_allocation(std::string_view name) {
  const std::string_view plain = operator_of(name);
  return plain.find("empty") != std::string_view::npos || plain == "aten::resize_" ||
         plain == "aten::set_" || plain == "aten::record_stream";
}

/// Rows of a table: the rest of it is not read.
bool is_lookup(std::string_view name) {
  const std::string_view plain = operator_of(name);
  return plain == "aten::embedding" || plain == "aten::index_select" || plain == "aten::gather" ||
         plain == "aten::_embedding_bag" || plain == "aten::index";
}

bool contains(const std::vector<std::int64_t>& storages, std::int64_t storage) {
  return std::ranges::find(storages, storage) != storages.end();
}

void add_storage(std::vector<std::int64_t>& storages, std::int64_t storage) {
  if (!contains(storages, storage)) storages.push_back(storage);
}

/// Bytes of tensors on the GPU, each once.
std::int64_t bytes_on_gpu(std::vector<TorchTensor> tensors) {
  std::ranges::sort(tensors, {}, &TorchTensor::tensor);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_on_gpu || (i > 0 && tensors[i].tensor == tensors[i - 1].tensor)) continue;
    if (sum > std::numeric_limits<std::int64_t>::max() - tensors[i].bytes()) return sum;
    sum += tensors[i].bytes();
  }
  return sum;
}

/// Flop of a convolution: 2 for each element of the output, channel and place of the filter, which
/// is [out, in / groups, height, width].
std::int64_t flop_of_convolution(const TorchNode& node) {
  const std::string_view name = operator_of(node.name);
  if (name.find("conv") == std::string_view::npos) return 0;
  const auto inputs = parse_shapes(node.shapes);
  if (!inputs) return 0;
  const bool is_backward = name.find("backward") != std::string_view::npos;
  // convolution_backward(grad_output, input, weight, ...); forward: (input, weight, ...).
  const std::size_t weight = is_backward ? 2 : 1;
  if (inputs->size() <= weight || (*inputs)[weight].size() != 1) return 0;
  std::int64_t output = 0;
  if (is_backward)
    output = elements_of((*inputs)[0]);
  else if (const auto outputs = parse_shapes(node.output_shapes); outputs && !outputs->empty())
    output = elements_of((*outputs)[0]);
  const TensorShape& filter = (*inputs)[weight].front();
  if (filter.size() < 3) return 0;
  const std::int64_t places = elements_of({TensorShape(filter.begin() + 1, filter.end())});
  const std::int64_t passes = is_backward ? 4 : 2;  // of the input and of the filter
  if (output <= 0 || places <= 0 ||
      places > std::numeric_limits<std::int64_t>::max() / passes / output)
    return 0;
  return passes * output * places;
}

}  // namespace

OperatorEffect effect_of(const TorchNode& node) {
  const std::vector<TorchTensor> inputs = tensors_of(node.values);
  const std::vector<TorchTensor> outputs = tensors_of(node.output_values);
  OperatorEffect effect;
  for (const TorchTensor& tensor : inputs)
    if (tensor.is_on_gpu) add_storage(effect.reads, tensor.storage);
  const bool is_kernel = !node.kernel_backend.empty() && !effect.reads.empty();
  const bool changes = is_kernel || (is_in_place(node.name) && !effect.reads.empty());
  effect.is_on_gpu = changes;
  const bool allocates = is_allocation(node.name);
  bool makes = false;
  for (const TorchTensor& tensor : outputs) {
    if (!tensor.is_on_gpu) continue;
    effect.is_on_gpu = true;
    if (allocates || tensor.elements <= 0) continue;
    const bool is_view = contains(effect.reads, tensor.storage);
    makes = makes || !is_view;
    if (!is_view || changes) add_storage(effect.writes, tensor.storage);
  }
  if (allocates || (!makes && !changes))
    effect.writes.clear();
  else if (effect.writes.empty())
    effect.writes = effect.reads;  // it says no output: a list that it changes, for example
  return effect;
}

bool fills_or_copies(std::string_view name) {
  const std::string_view plain = operator_of(name);
  return plain == "aten::fill_" || plain == "aten::zero_" || plain == "aten::copy_";
}

bool is_host_copy(const TorchNode& node) {
  if (operator_of(node.name) != "aten::copy_") return false;
  const std::vector<TorchTensor> tensors = tensors_of(node.values);
  return tensors.size() == 2 && tensors[0].is_on_gpu != tensors[1].is_on_gpu;
}

Compute work_of_operator(const TorchNode& node, const std::vector<std::int64_t>& writes) {
  const std::vector<std::string> types = parse_types(node.types);
  if (const auto product =
          product_of(node.name, parse_shapes(node.shapes).value_or(ArgumentShapes{}), types))
    return *product;
  const bool is_kernel = !node.kernel_backend.empty();
  const std::vector<TorchTensor> outputs = tensors_of(node.output_values);
  std::vector<TorchTensor> written;
  for (const TorchTensor& tensor : outputs)
    if (contains(writes, tensor.storage)) written.push_back(tensor);
  Compute compute;
  std::vector<TorchTensor> read = tensors_of(node.values);
  compute.written = is_kernel ? 0 : bytes_on_gpu(read);  // where it says no output
  if (fills_or_copies(node.name) && !read.empty()) {
    compute.written = bytes_on_gpu({read.front()});
    read.erase(read.begin());
  }
  compute.read = bytes_on_gpu(std::move(read));
  if (!outputs.empty()) compute.written = bytes_on_gpu(written);
  // Of a table, only the rows that it takes.
  if (is_lookup(node.name)) compute.read = std::min(compute.read, compute.written);
  compute.flop = flop_of_convolution(node);
  for (const std::string& type : types) {
    const std::optional<DataType> known = torch_type(type);
    if (!known) continue;
    compute.type = *known;
    break;
  }
  return compute;
}

}  // namespace hemiola::workload
