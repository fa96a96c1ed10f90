// In which order a plan delivers a tensor: what tiles that compute on it follow.
#pragma once

#include <vector>

#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// What `rank` gets of a tensor: first what is there at the start (if anything), then, period by
/// period, what is written by transfers that start in it, if each takes one period once the one
/// before it in its stream and those it waits for are complete, and what is computed is always in
/// time. Inside a wave in the order of ranks and streams. Failure: a plan that waits for ever.
std::vector<std::vector<Area>> waves(const Plan& plan, int rank, std::int32_t tensor);

}  // namespace hemiola::plan
