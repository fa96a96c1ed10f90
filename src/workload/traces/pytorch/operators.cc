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

void add_storage(std::vector<std::int64_t>& storages, std::int64_t storage) {
  if (std::find(storages.begin(), storages.end(), storage) == storages.end())
    storages.push_back(storage);
}

/// Bytes of tensors on the GPU, each once.
std::int64_t bytes_on_gpu(std::vector<TorchTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TorchTensor& a, const TorchTensor& b) { return a.tensor < b.tensor; });
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
  if (is_backward) {
    output = elements_of((*inputs)[0]);
  } else if (const auto outputs = parse_shapes(node.output_shapes); outputs && !outputs->empty()) {
    output = elements_of((*outputs)[0]);
  }
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

std::optional<OperatorWork> work_of_operator(const TorchNode& node) {
  const std::vector<TorchTensor> inputs = tensors_of(node.values);
  const std::vector<TorchTensor> outputs = tensors_of(node.output_values);
  const auto is_on_gpu = [](const TorchTensor& tensor) { return tensor.is_on_gpu; };
  const bool has_input = std::any_of(inputs.begin(), inputs.end(), is_on_gpu);
  const bool is_kernel = !node.kernel_backend.empty() && has_input;
  if (is_allocation(node.name)) return std::nullopt;
  OperatorWork work;
  for (const TorchTensor& tensor : inputs) {
    if (tensor.is_on_gpu) add_storage(work.reads, tensor.storage);
  }
  const bool changes = is_kernel || (is_in_place(node.name) && has_input);
  bool makes = false;
  for (const TorchTensor& tensor : outputs) {
    if (!tensor.is_on_gpu) continue;
    const bool is_view =
        std::find(work.reads.begin(), work.reads.end(), tensor.storage) != work.reads.end();
    makes = makes || !is_view;
    if (!is_view || changes) add_storage(work.writes, tensor.storage);
  }
  if (!makes && !changes) return std::nullopt;
  if (work.writes.empty()) work.writes = work.reads;
  if (const auto product =
          product_of(node.name, parse_shapes(node.shapes).value_or(ArgumentShapes{}),
                     parse_types(node.types))) {
    work.compute = *product;
    return work;
  }
  work.compute.read = bytes_on_gpu(inputs);
  work.compute.written =
      outputs.empty() ? (is_kernel ? 0 : work.compute.read) : bytes_on_gpu(outputs);
  work.compute.flop = flop_of_convolution(node);
  const std::vector<std::string> types = parse_types(node.types);
  for (const std::string& type : types) {
    const std::optional<DataType> known = torch_type(type);
    if (!known) continue;
    work.compute.type = *known;
    break;
  }
  return work;
}

}  // namespace hemiola::workload
