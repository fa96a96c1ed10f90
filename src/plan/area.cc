#include "plan/area.h"

#include <algorithm>

namespace hemiola::plan {

std::int64_t Rect::elements() const {
  std::int64_t product = 1;
  for (std::size_t axis = 0; axis < begin.size(); ++axis)
    product *= std::max<std::int64_t>(0, end[axis] - begin[axis]);
  return product;
}

Rect intersection(const Rect& a, const Rect& b) {
  Rect both = a;
  for (std::size_t axis = 0; axis < a.begin.size(); ++axis) {
    both.begin[axis] = std::max(a.begin[axis], b.begin[axis]);
    both.end[axis] = std::min(a.end[axis], b.end[axis]);
  }
  return both;
}

bool overlap(const Rect& a, const Rect& b) {
  for (std::size_t axis = 0; axis < a.begin.size(); ++axis)
    if (std::max(a.begin[axis], b.begin[axis]) >= std::min(a.end[axis], b.end[axis])) return false;
  return true;
}

// Axis by axis, what lies before and behind `b` is cut off; the rest is inside `b` along that axis.
std::vector<Rect> difference(const Rect& a, const Rect& b) {
  if (!overlap(a, b)) return a.empty() ? std::vector<Rect>{} : std::vector<Rect>{a};
  std::vector<Rect> outside;
  Rect rest = a;
  for (std::size_t axis = 0; axis < a.begin.size(); ++axis) {
    if (rest.begin[axis] < b.begin[axis]) {
      outside.push_back(rest);
      outside.back().end[axis] = rest.begin[axis] = b.begin[axis];
    }
    if (rest.end[axis] > b.end[axis]) {
      outside.push_back(rest);
      outside.back().begin[axis] = rest.end[axis] = b.end[axis];
    }
  }
  return outside;
}

std::int64_t Area::elements() const {
  std::int64_t total = 0;
  for (const Rect& rect : rects) total += rect.elements();
  return total;
}

Area evaluate(const Region& region, const Indices& at) {
  Area area{region.tensor, {}};
  area.rects.reserve(region.boxes.size());
  for (const Box& box : region.boxes) {
    Rect rect;
    rect.begin.reserve(box.size());
    rect.end.reserve(box.size());
    for (const Range& range : box) {
      rect.begin.push_back(range.begin(at));
      rect.end.push_back(rect.begin.back() + range.extent);
    }
    area.rects.push_back(std::move(rect));
  }
  return area;
}

Area whole(const Plan& plan, std::int32_t tensor) {
  const std::vector<std::int64_t>& shape = plan.tensors[static_cast<std::size_t>(tensor)].shape;
  return {tensor, {{Coordinates(shape.size()), Coordinates(shape)}}};
}

std::vector<Area> residents(const Plan& plan, int rank) {
  std::vector<Area> areas;
  if (const auto& stated = plan.code(rank).resident) {
    for (const Region& region : *stated) areas.push_back(evaluate(region, {.rank = rank}));
    return areas;
  }
  for (std::size_t t = 0; t < plan.tensors.size(); ++t)
    if (plan.tensors[t].role == Role::input)
      areas.push_back(whole(plan, static_cast<std::int32_t>(t)));
  return areas;
}

Area difference(const Area& a, const Area& b) {
  if (a.tensor != b.tensor) return a;
  Area rest = a;
  for (const Rect& cut : b.rects) {
    std::vector<Rect> left;
    for (const Rect& rect : rest.rects)
      for (Rect& piece : difference(rect, cut)) left.push_back(std::move(piece));
    rest.rects = std::move(left);
  }
  return rest;
}

bool overlap(const Area& a, const Area& b) {
  if (a.tensor != b.tensor) return false;
  return std::ranges::any_of(a.rects, [&](const Rect& x) {
    return std::ranges::any_of(b.rects, [&](const Rect& y) { return overlap(x, y); });
  });
}

std::string to_string(const Plan& plan, const Area& area) {
  std::string text;
  for (const Rect& rect : area.rects) {
    text += (text.empty() ? "" : " + ") + plan.tensors[static_cast<std::size_t>(area.tensor)].name +
            "[";
    for (std::size_t axis = 0; axis < rect.begin.size(); ++axis) {
      text += (axis == 0 ? "" : ", ") + std::to_string(rect.begin[axis]);
      if (rect.end[axis] != rect.begin[axis] + 1) text += ":" + std::to_string(rect.end[axis]);
    }
    text += "]";
  }
  return text;
}

}  // namespace hemiola::plan
