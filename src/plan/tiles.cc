#include "plan/tiles.h"

#include <algorithm>

namespace hemiola::plan {

std::int64_t count_tiles(const Compute& compute) {
  std::int64_t count = 1;
  for (const ComputeAxis& axis : compute.axes) count *= (axis.extent + axis.tile - 1) / axis.tile;
  return count;
}

Rect tile_box(const Compute& compute, const std::vector<std::int64_t>& place) {
  Rect box;
  for (std::size_t i = 0; i < compute.axes.size(); ++i) {
    const ComputeAxis& axis = compute.axes[i];
    box.begin.push_back(place[i] * axis.tile);
    box.end.push_back(std::min(box.begin[i] + axis.tile, axis.extent));
  }
  return box;
}

Rect tile_box(const Compute& compute, std::int64_t tile) {
  std::vector<std::int64_t> place(compute.axes.size());
  for (std::size_t i = compute.axes.size(); i-- > 0;) {
    const ComputeAxis& axis = compute.axes[i];
    const std::int64_t tiles = (axis.extent + axis.tile - 1) / axis.tile;
    place[i] = tile % tiles;
    tile /= tiles;
  }
  return tile_box(compute, place);
}

Rect whole_box(const Compute& compute) {
  Rect box;
  for (const ComputeAxis& axis : compute.axes) {
    box.begin.push_back(0);
    box.end.push_back(axis.extent);
  }
  return box;
}

Area operand_area(const Plan& plan, const ComputeOperand& operand, const Rect& box, int rank) {
  Area area = whole(plan, operand.tensor);
  for (std::size_t i = 0; i < operand.axes.size(); ++i) {
    if (operand.axes[i] < 0) continue;
    const auto axis = static_cast<std::size_t>(operand.axes[i]);
    const std::int64_t extent = plan.tensors[static_cast<std::size_t>(operand.tensor)].shape[i];
    const std::int64_t begin = operand.wrapped(operand.first(i, rank) + box.begin[axis], extent);
    const std::int64_t end = begin + box.end[axis] - box.begin[axis];
    const bool is_cut = operand.wraps && end > extent;
    const std::size_t count = area.rects.size();
    for (std::size_t r = 0; r < count; ++r) {
      area.rects[r].begin[i] = begin;
      area.rects[r].end[i] = is_cut ? extent : end;
      if (!is_cut) continue;
      Rect rest = area.rects[r];
      rest.begin[i] = 0;
      rest.end[i] = end - extent;
      area.rects.push_back(std::move(rest));
    }
  }
  return area;
}

}  // namespace hemiola::plan
