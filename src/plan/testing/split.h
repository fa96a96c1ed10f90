// Regions cut into parts, for plans that tests write.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/index.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// Cuts the region into `parts` along an axis of its tensor, as even as it goes, the larger ones
/// first. Rectangles stay rectangles. Failure unless every box is at least `parts` long there.
inline std::vector<Region> split(const Region& region, std::size_t axis, std::int64_t parts) {
  std::vector<Region> pieces(index(parts), Region{region.tensor, {}});
  for (const Box& box : region.boxes) {
    const std::int64_t extent = axis < box.size() ? box[axis].extent : 0;
    if (extent < parts)
      throw Failure("a region cannot be split into " + std::to_string(parts) + " parts");
    std::int64_t begin = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      Box piece = box;
      piece[axis].begin.offset += begin;
      piece[axis].extent = extent / parts + (part < extent % parts ? 1 : 0);
      begin += piece[axis].extent;
      pieces[index(part)].boxes.push_back(std::move(piece));
    }
  }
  return pieces;
}

}  // namespace hemiola::plan
