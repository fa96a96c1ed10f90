// PyTorch execution traces. docs/traces.md says what is taken from where.
#pragma once

#include <string>

#include "workload/traces/assembly.h"
#include "workload/traces/groups.h"
#include "workload/traces/pytorch/nodes.h"
#include "workload/traces/sizes.h"

namespace hemiola::workload {

/// The trace of the rank at which `groups` stands.
///
/// Such a trace has operators, not kernels: an operator that calls no other, and makes or changes a
/// tensor on the GPU, becomes a kernel with the bytes of its tensors. Kernels run in their order on
/// one stream. A communication waits for the kernel before it; a kernel waits for communications
/// that wrote what it reads. A linked trace has kernels and times, which are taken.
///
/// Failure as read_kineto().
Trace read_pytorch(const std::string& file, const std::vector<TorchNode>& nodes,
                   TraceAssembly& assembly, ProcessGroups& groups, const CallSizes& sizes,
                   Tally& tally);

}  // namespace hemiola::workload
