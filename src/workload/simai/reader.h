// Workloads from texts of ASTRA-sim 1, SimAI and AICB. docs/simai.md is the manual.
#pragma once

#include <string>
#include <string_view>

#include "workload/trace_reader.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Layers of a network, which all ranks run: one iteration. `request.replicate` is the number of
/// ranks, instead of the text's. Failure with file and line.
Workload read_astra_text(const TraceRequest& request, const std::string& file,
                         std::string_view text);

/// AICB's table of calls, of all ranks or of each stage of a pipeline. Failure with file and line.
Workload read_aicb(const TraceRequest& request, const std::string& file, std::string_view text);

}  // namespace hemiola::workload
