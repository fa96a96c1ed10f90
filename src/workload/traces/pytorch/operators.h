// What an operator of PyTorch does on the GPU, as far as its tensors tell.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/traces/pytorch/nodes.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// What an operator does to storages on the GPU, by its own arguments. Empty writes: it launches no
/// kernel, whatever it calls.
struct OperatorEffect {
  std::vector<std::int64_t> reads, writes;  ///< each once; storages without elements are left out
  /// An output lies on the GPU, or it changes a tensor there: then it is a kernel, an alias, or
  /// covered by what it calls (roles.h).
  bool is_on_gpu = false;
};
/// An operator that only looks at a tensor in another way (aten::view), or allocates (aten::empty),
/// writes nothing.
OperatorEffect effect_of(const TorchNode& node);

/// Writes its first argument without reading it: aten::fill_, aten::zero_, aten::copy_.
bool fills_or_copies(std::string_view name);
/// Whether it copies between the memories of the host and the GPU.
bool is_host_copy(const TorchNode& node);

/// Bytes and flop of its own kernels, which write `writes`: its outputs in other storages were made
/// by operators that it calls.
Compute work_of_operator(const TorchNode& node, const std::vector<std::int64_t>& writes);

}  // namespace hemiola::workload
