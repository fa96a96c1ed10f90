// Tiles of a compute kernel: its axes cut at their tile extents.
#pragma once

#include <cstdint>

#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::verify {

/// Tiles are numbered with the last axis fastest.
std::int64_t count_tiles(const plan::Compute& compute);
/// The ranges of a tile, by axis of the compute.
plan::Rect tile_box(const plan::Compute& compute, std::int64_t tile);
/// What a tile with these ranges touches of an operand on a rank.
plan::Area operand_area(const plan::Plan& plan, const plan::ComputeOperand& operand,
                        const plan::Rect& box, int rank);

}  // namespace hemiola::verify
