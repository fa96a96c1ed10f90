// Workloads from HLO modules: what XLA compiled for all GPUs of a job. docs/hlo.md is the manual.
#pragma once

#include <string>

#include "workload/trace_reader.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// The module as what every rank does: kernels in the order of the text on one stream, collectives
/// where they begin and end, loops as often as they run.
///
/// Failure as hlo::parse(); an opcode that is not known; a loop of which nothing tells how often it
/// runs (lenient: once); more than a million nodes; `request` asks for what a module says itself.
Workload read_hlo(const TraceRequest& request, const std::string& file, std::string text);

}  // namespace hemiola::workload
