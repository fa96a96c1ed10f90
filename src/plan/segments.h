// Areas as runs of memory, row by row. The lowering has its own (program/lower/rows.cc), which is
// held against this.
#pragma once

#include <vector>

#include "plan/area.h"

namespace hemiola::plan {

/// The area in memory, in its order of elements, neighbours merged. Units: bytes for typed tensors,
/// else chunks.
std::vector<Segment> segments(const Tensor& tensor, const Area& area);

}  // namespace hemiola::plan
