// Kineto traces: what the PyTorch profiler writes. docs/traces.md says what is taken from where.
#pragma once

#include <string>

#include "workload/traces/assembly.h"
#include "workload/traces/groups.h"
#include "workload/traces/kineto/communicators.h"
#include "workload/traces/kineto/events.h"
#include "workload/traces/sizes.h"

namespace hemiola::workload {

/// The trace of the rank at which `groups` stands: a node for each thing that the GPU did, on its
/// stream, and before it one of the host that launches it. `inferred`: the groups that its calls do
/// not name.
///
/// Failure: calls without a size, which are not in `sizes` either; calls of which nothing says
/// among which ranks they are; more than one GPU; a group without ranks.
Trace read_kineto(const std::string& file, const KinetoEvents& events,
                  const InferredGroups& inferred, TraceAssembly& assembly, ProcessGroups& groups,
                  const CallSizes& sizes, Tally& tally);

}  // namespace hemiola::workload
