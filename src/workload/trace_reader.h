// Workloads from traces: Chakra execution traces (protobuf), PyTorch execution traces and Kineto
// traces (JSON): docs/traces.md is the manual. And from HLO modules, which are what all ranks do:
// docs/hlo.md. And from workload texts of ASTRA-sim 1 and SimAI and tables of AICB: docs/simai.md.
#pragma once

#include <string>

#include "hemiola/parts/trace_reader.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Adds the built-in readers.
void register_parts(parts::Registry& registry);

/// Failure with ExitCode::bad_input for what is no trace, or is damaged, or lacks what a simulation
/// needs: it names the file and, where there is one, the node. ExitCode::deadlock for nodes that
/// wait for each other.
Workload read_workload(const TraceRequest& request);

/// Whether a path is something that read_workload() is for. It may still be damaged.
bool is_trace(const std::string& path, const parts::Registry* parts = nullptr);

}  // namespace hemiola::workload
