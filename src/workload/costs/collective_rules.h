// Which programs collectives run, as a file (docs/workloads.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/costs/simulated_costs.h"

namespace hemiola::workload {

/// YAML: a list `collectives` of {kind, run} with optional `ranks`, `from` (a size) and `param`.
/// The last one that fits a call is taken. Instead of `kind` a rule has `fuse` (ag-gemm, gemm-rs,
/// gemm-ar) and optional `gemm`: [M, N, K], which a plan's file needs. Failure with file and line.
std::vector<CollectiveRule> read_collective_rules(const std::string& file);
std::vector<CollectiveRule> parse_collective_rules(std::string_view text, const std::string& file);

}  // namespace hemiola::workload
