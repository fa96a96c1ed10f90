// Which operators of a PyTorch execution trace launch kernels of their own.
//
// Rule: an operator whose output lies on the GPU is a kernel, an alias, or covered by what it
// calls. `aten::addmm` calls `aten::empty` for its output, and the kernel is its own;
// `aten::linear` calls `aten::addmm`, which makes all that it gives.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/traces/pytorch/nodes.h"
#include "workload/workload.h"

namespace hemiola::workload {

enum class OperatorRole : std::uint8_t {
  host,     ///< neither makes nor changes anything on the GPU
  call,     ///< a communication, or what lies around or inside one
  kernel,   ///< kernels of its own write at least one of its storages
  alias,    ///< looks at a tensor in another way, or allocates one
  covered,  ///< operators that it calls write all of its storages
};

struct OperatorRoles {
  std::vector<OperatorRole> roles;  ///< as the nodes
  std::vector<std::vector<std::int64_t>>
      writes;  ///< of kernels: the storages, without covered ones
  OperatorCounts counts;
};

/// `nodes` in their file's order, as parse_pytorch() gives them. Fills and copies below an operator
/// cover it only where it is known to be made of them (aten::contiguous, aten::zeros): others clear
/// their output before they add to it, or copy an argument.
OperatorRoles roles_of(const std::vector<TorchNode>& nodes);

}  // namespace hemiola::workload
