// Groups of ranks, by Megatron-LM's numbering.
#pragma once

#include "workload/models/generate_steps.h"

namespace hemiola::workload {

Streams add_streams(WorkloadBuilder& builder, const MakeRequest& request);
/// Only families that the request needs, each with groups of two ranks at least.
Families add_families(WorkloadBuilder& builder, const MakeRequest& request);
/// Ranks of a stage, ascending.
std::vector<int> ranks_of_stage(const Parallelism& by, int stage);

}  // namespace hemiola::workload
