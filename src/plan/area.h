// Areas: regions with numbers in them, and their algebra. A region (plan.h) is affine in rank and
// loop counters; evaluated at one transfer it is an area.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/inline_vector.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// A number for each axis of a tensor.
using Coordinates = InlineVector<std::int64_t, 4>;

/// Elements [begin[i], end[i]) along every axis i; as many axes as its tensor has.
struct Rect {
  Coordinates begin, end;

  std::int64_t elements() const;  ///< 0 when it is empty along some axis
  bool empty() const { return elements() == 0; }
  bool operator==(const Rect&) const = default;
  auto operator<=>(const Rect&) const = default;
};

Rect intersection(const Rect& a, const Rect& b);
bool overlap(const Rect& a, const Rect& b);
/// What of `a` is not in `b`: at most two rectangles per axis, disjoint.
std::vector<Rect> difference(const Rect& a, const Rect& b);

/// A union of disjoint rectangles of a tensor, in the order of the region it came from.
struct Area {
  std::int32_t tensor = 0;
  std::vector<Rect> rects;

  std::int64_t elements() const;
  bool operator==(const Area&) const = default;
};

Area evaluate(const Region& region, const Indices& at);
Area whole(const Plan& plan, std::int32_t tensor);
/// What a rank holds at the start.
std::vector<Area> residents(const Plan& plan, int rank);
Area difference(const Area& a, const Area& b);
bool overlap(const Area& a, const Area& b);

/// Consecutive memory of a tensor.
struct Segment {
  std::int64_t offset = 0;  ///< units from the tensor's start
  std::int64_t count = 0;   ///< units
  bool operator==(const Segment&) const = default;
};

/// "a[0:4, 2:8]", several boxes with " + " between them.
std::string to_string(const Plan& plan, const Area& area);

}  // namespace hemiola::plan
