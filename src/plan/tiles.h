// Tiles of a compute kernel: its axes cut at their tile extents.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// Tiles are numbered with the last axis fastest.
std::int64_t count_tiles(const Compute& compute);
/// The ranges of a tile, by axis of the compute: of the tile with this number, or at this place
/// along each axis.
Rect tile_box(const Compute& compute, std::int64_t tile);
Rect tile_box(const Compute& compute, const std::vector<std::int64_t>& place);
/// The ranges of all tiles together.
Rect whole_box(const Compute& compute);
/// What a tile with these ranges touches of an operand on a rank: one rectangle, unless the ranges
/// are those of several tiles and the operand wraps.
Area operand_area(const Plan& plan, const ComputeOperand& operand, const Rect& box, int rank);

}  // namespace hemiola::plan
