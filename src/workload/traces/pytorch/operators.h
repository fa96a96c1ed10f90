// What an operator of PyTorch does on the GPU, as far as its tensors tell.
#pragma once

#include <optional>
#include <vector>

#include "workload/traces/pytorch/nodes.h"
#include "workload/workload.h"

namespace hemiola::workload {

struct OperatorWork {
  Compute compute;
  std::vector<std::int64_t> reads, writes;  ///< storages, each once
};

/// Of an operator that calls no other. Nothing if it launches no kernel: it has no tensor on a GPU,
/// only looks at one in another way (aten::view), or allocates (aten::empty).
std::optional<OperatorWork> work_of_operator(const TorchNode& node);

}  // namespace hemiola::workload
