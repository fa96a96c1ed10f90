#include "verify/tiles.h"

#include <algorithm>

namespace hemiola::verify {

std::int64_t count_tiles(const plan::Compute& compute) {
  std::int64_t count = 1;
  for (const plan::ComputeAxis& axis : compute.axes)
    count *= (axis.extent + axis.tile - 1) / axis.tile;
  return count;
}

plan::Rect tile_box(const plan::Compute& compute, std::int64_t tile) {
  plan::Rect box{std::vector<std::int64_t>(compute.axes.size()),
                 std::vector<std::int64_t>(compute.axes.size())};
  for (std::size_t i = compute.axes.size(); i-- > 0;) {
    const plan::ComputeAxis& axis = compute.axes[i];
    const std::int64_t tiles = (axis.extent + axis.tile - 1) / axis.tile;
    box.begin[i] = tile % tiles * axis.tile;
    box.end[i] = std::min(box.begin[i] + axis.tile, axis.extent);
    tile /= tiles;
  }
  return box;
}

plan::Area operand_area(const plan::Plan& plan, const plan::ComputeOperand& operand,
                        const plan::Rect& box, int rank) {
  plan::Area area = whole(plan, operand.tensor);
  plan::Rect& rect = area.rects.front();
  for (std::size_t i = 0; i < operand.axes.size(); ++i) {
    if (operand.axes[i] < 0) continue;
    const auto axis = static_cast<std::size_t>(operand.axes[i]);
    const std::int64_t moved = operand.begin.empty() ? 0 : operand.begin[i](Indices{.rank = rank});
    rect.begin[i] = box.begin[axis] + moved;
    rect.end[i] = box.end[axis] + moved;
  }
  return area;
}

}  // namespace hemiola::verify
