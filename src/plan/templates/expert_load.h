// How tokens spread over experts that are not equally popular.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::plan {

/// "even": every rank's experts get as many tokens as any other's.
inline constexpr const char* kEvenLoad = "even";

/// Of `rows` tokens that each rank has, how many go to the experts of each of `ranks` ranks.
/// `load` is "even"; a weight for each rank, "4/2/1/1"; or "zipf/S": rank r weighs (r + 1)^-S.
/// Tokens go in units of 16, or of the largest power of two that divides `rows` and leaves a unit
/// for each rank, at least one to each; what weights leave over goes to the largest remainders, so
/// that the sum is `rows`. Failure at `where`: a load that is none of these, weights for another
/// number of ranks, fewer rows than ranks, rows that do not divide where the load is even.
std::vector<std::int64_t> expert_rows(const std::string& load, int ranks, std::int64_t rows,
                                      const SourceLocation& where);

}  // namespace hemiola::plan
