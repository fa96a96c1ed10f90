#include "plan/segments.h"

namespace hemiola::plan {
namespace {

/// Row by row: add(first element, count).
template <typename Add>
void rows(const Rect& rect, const std::vector<std::int64_t>& strides, std::size_t axis,
          std::int64_t offset, Add& add) {
  if (axis + 1 == strides.size() && strides[axis] == 1) {
    add(offset + rect.begin[axis], rect.end[axis] - rect.begin[axis]);
    return;
  }
  for (std::int64_t i = rect.begin[axis]; i < rect.end[axis]; ++i) {
    const std::int64_t at = offset + i * strides[axis];
    if (axis + 1 == strides.size())
      add(at, 1);
    else
      rows(rect, strides, axis + 1, at, add);
  }
}

}  // namespace

std::vector<Segment> segments(const Tensor& tensor, const Area& area) {
  const std::int64_t unit = tensor.type ? size_of(*tensor.type) : 1;
  const std::vector<std::int64_t> strides = tensor.layout();
  std::vector<Segment> list;
  const auto add = [&](std::int64_t offset, std::int64_t count) {
    offset *= unit;
    count *= unit;
    if (!list.empty() && list.back().offset + list.back().count == offset)
      list.back().count += count;
    else
      list.push_back({offset, count});
  };
  for (const Rect& rect : area.rects)
    if (!rect.empty()) rows(rect, strides, 0, 0, add);
  return list;
}

}  // namespace hemiola::plan
