#include "plan/area.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

#include "hemiola/parts/build_plan.h"
#include "plan/segments.h"
#include "plan/testing/split.h"

namespace hemiola::plan {
namespace {

using ::testing::ElementsAre;
using Element = std::vector<std::int64_t>;

std::vector<Element> list(const Area& area) {
  std::vector<Element> all;
  for (const Rect& rect : area.rects) {
    if (rect.empty()) continue;
    Element at(rect.begin.begin(), rect.begin.end());
    for (;;) {
      all.push_back(at);
      std::size_t axis = at.size();
      while (axis > 0 && ++at[axis - 1] == rect.end[axis - 1]) {
        at[axis - 1] = rect.begin[axis - 1];
        --axis;
      }
      if (axis == 0) break;
    }
  }
  return all;
}
std::set<Element> set_of(const Area& area) {
  const std::vector<Element> all = list(area);
  std::set<Element> set(all.begin(), all.end());
  RC_ASSERT(set.size() == all.size());  // disjoint
  return set;
}
Area any_area(std::size_t axes) {
  Area area;
  Area used;
  for (int n = *rc::gen::inRange(1, 4); n > 0; --n) {
    Rect rect;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      rect.begin.push_back(*rc::gen::inRange(0, 5));
      rect.end.push_back(rect.begin.back() + *rc::gen::inRange(1, 5));
    }
    for (Rect& part : difference(Area{0, {rect}}, area).rects)
      area.rects.push_back(std::move(part));
  }
  return area;
}

TEST(Area, algebra_is_that_of_sets_of_elements) {
  EXPECT_TRUE(rc::check("sets", [] {
    const auto axes = static_cast<std::size_t>(*rc::gen::inRange(1, 4));
    const Area a = any_area(axes), b = any_area(axes);
    const std::set<Element> x = set_of(a), y = set_of(b);
    std::set<Element> both, rest;
    for (const Element& element : x) (y.contains(element) ? both : rest).insert(element);
    RC_ASSERT(set_of(difference(a, b)) == rest);
    RC_ASSERT(overlap(a, b) == !both.empty());
    RC_ASSERT(a.elements() == std::ssize(x));
  }));
}

TEST(Area, segments_are_the_memory_of_its_elements_in_order) {
  EXPECT_TRUE(rc::check("segments", [] {
    const auto axes = static_cast<std::size_t>(*rc::gen::inRange(1, 4));
    Tensor tensor("t", Role::input, std::vector<std::int64_t>(axes, 9), DataType::float16);
    if (*rc::gen::arbitrary<bool>()) {  // padded rows
      std::int64_t stride = *rc::gen::inRange(1, 3);
      tensor.strides.assign(axes, 0);
      for (std::size_t axis = axes; axis-- > 0;) {
        tensor.strides[axis] = stride;
        stride = stride * 9 + *rc::gen::inRange(0, 3);
      }
    }
    const Area area = any_area(axes);
    const std::vector<std::int64_t> strides = tensor.layout();
    std::vector<std::int64_t> bytes, seen;
    for (const Element& element : list(area)) {
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < axes; ++axis) offset += element[axis] * strides[axis];
      bytes.push_back(2 * offset);
      bytes.push_back(2 * offset + 1);
    }
    std::int64_t end = -1;
    for (const Segment& segment : segments(tensor, area)) {
      RC_ASSERT(segment.offset != end);  // merged
      end = segment.offset + segment.count;
      for (std::int64_t i = segment.offset; i < end; ++i) seen.push_back(i);
    }
    RC_ASSERT(seen == bytes);
  }));
}

TEST(Split, keeps_rectangles_and_loses_nothing) {
  const Region region{0, {{{own_rank(), 5}, {{}, 4}}, {{constant(8), 3}, {{}, 4}}}};
  const std::vector<Region> parts = split(region, 0, 3);
  ASSERT_EQ(parts.size(), 3U);
  Area rest = evaluate(region, {.rank = 1});
  EXPECT_EQ(evaluate(parts[0], {.rank = 1}).rects.front(), (Rect{{1, 0}, {3, 4}}));
  EXPECT_EQ(evaluate(parts[2], {.rank = 1}).rects.back(), (Rect{{10, 0}, {11, 4}}));
  for (const Region& part : parts) {
    EXPECT_EQ(difference(evaluate(part, {.rank = 1}), rest).elements(), 0);
    rest = difference(rest, evaluate(part, {.rank = 1}));
  }
  EXPECT_EQ(rest.elements(), 0);
  EXPECT_THROW(split(region, 0, 4), Failure);
  EXPECT_THROW(split(region, 2, 1), Failure);
}

}  // namespace
}  // namespace hemiola::plan
