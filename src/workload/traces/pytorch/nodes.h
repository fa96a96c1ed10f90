// The nodes of a PyTorch execution trace, as its ExecutionTraceObserver writes them (pytorch,
// torch/csrc/profiler/standalone/execution_trace_observer.cpp): schemas 1.0.1
// to 1.1.1-chakra.0.0.4, also with what Chakra's trace linker adds (times, kernels).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/traces/pytorch_calls.h"

namespace hemiola::workload {

/// Texts refer to the file's content; those of inputs and outputs are JSON.
struct TorchNode {
  std::uint64_t id = 0;
  std::string_view name;
  std::uint64_t parent = 0;
  std::string_view values, shapes, types;           ///< of the inputs
  std::string_view output_values, output_shapes{};  ///< of the outputs
  std::string_view kernel_backend;                  ///< "triton"
  CallArguments said;                               ///< by record_param_comms, from 1.1.0 on
  // Of a linked trace. Times are nanoseconds; -1: not said.
  bool is_on_gpu = false;
  std::int64_t begin = -1, duration = -1;
  std::int64_t stream = 0;
  std::vector<std::uint64_t> waits_for;
};

struct TorchNodes {
  std::vector<TorchNode> nodes;       ///< in the order of their ids, which is that of their begins
  std::string schema;                 ///< "1.1.1-chakra.0.0.4"; empty: the file does not say
  std::shared_ptr<const void> texts;  ///< what nodes refer to
  /// Whether it is one of those above.
  bool has_known_schema() const;
};
/// `content`: of the file. Failure with line and column for what is no such JSON, and for a node
/// without id, name or parent.
TorchNodes parse_pytorch(const std::string& file, std::string content);

/// A tensor as traces write it: [tensor, storage, offset, elements, bytes of an element, device].
struct TorchTensor {
  std::int64_t tensor = 0, storage = 0, elements = 0, element_bytes = 0;
  bool is_on_gpu = false;
  std::int64_t device = 0;  ///< number of the GPU
  std::int64_t bytes() const;
};
/// All tensors in the values of inputs or outputs, in lists too.
std::vector<TorchTensor> tensors_of(std::string_view values);

}  // namespace hemiola::workload
