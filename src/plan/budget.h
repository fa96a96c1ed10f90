// How long the plan of a file may be once its loops are unrolled.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"

namespace hemiola::plan {

/// Transfers of all ranks, and rounds of loops that have none: a direct exchange of 4,096 ranks.
constexpr std::int64_t kMostTransfers = std::int64_t{1} << 24;
/// Tiles of what computes write, and steps along what they reduce, of all ranks.
constexpr std::int64_t kMostTiles = std::int64_t{1} << 26;

/// Counts without walking anything. Failure, with the JSON pointer of the stream or the compute,
/// where a plan is longer than the above.
void check_budget(const Plan& plan, const std::string& source);

}  // namespace hemiola::plan
