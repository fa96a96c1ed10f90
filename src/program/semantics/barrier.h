// A barrier among workgroups of a rank, as engines do it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program/semantics/primitive.h"

namespace hemiola::program {

/// What a workgroup does at a barrier: its wavefronts join, count on a semaphore in the L2, poll it
/// until all have come in this round, and join. `first`: semaphore of barrier 0, behind those of
/// the program; `rounds`: of the workgroup so far, by barrier: one more.
std::array<Primitive, 4> parts_of_barrier(const Primitive& barrier, int rank, std::int32_t first,
                                          std::vector<std::int64_t>& rounds);

}  // namespace hemiola::program
