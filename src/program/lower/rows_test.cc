// Memory as rows at equal distances, against lists of all rows.
#include "program/lower/rows.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/segments.h"

namespace hemiola::program::general {
namespace {

using plan::Segment;

/// Pieces of equally many units, pairwise: what a transfer copies from where to where.
std::vector<Strip> paired(const std::vector<Segment>& source, const std::vector<Segment>& target) {
  std::vector<Strip> pairs;
  std::size_t s = 0, t = 0;
  std::int64_t from = 0, to = 0;  // already used of the present segments
  while (s < source.size() && t < target.size()) {
    const std::int64_t count = std::min(source[s].count - from, target[t].count - to);
    append(pairs, {{source[s].offset + from, target[t].offset + to}, {count, count}, count});
    from += count;
    to += count;
    if (from == source[s].count) from = 0, ++s;
    if (to == target[t].count) to = 0, ++t;
  }
  return pairs;
}

class Draw {
 public:
  std::int64_t below(std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(numbers_);
  }
  plan::Tensor tensor() {
    plan::Tensor tensor;
    tensor.type = DataType::float16;
    tensor.shape = {2 + below(3), 2 + below(6), 2 + below(6)};
    if (below(3) == 0) tensor.shape.erase(tensor.shape.begin());
    if (below(4) == 0) {  // the first axis fastest
      std::int64_t stride = 1;
      for (const std::int64_t extent : tensor.shape) {
        tensor.strides.push_back(stride);
        stride *= extent;
      }
    }
    return tensor;
  }
  /// Rectangles of any order, also empty ones and such that are not disjoint.
  plan::Area area(const plan::Tensor& of) {
    plan::Area area;
    for (std::int64_t i = 1 + below(3); i > 0; --i) {
      plan::Rect rect;
      for (const std::int64_t extent : of.shape) {
        const bool whole = below(3) == 0;
        rect.begin.push_back(whole ? 0 : below(extent));
        rect.end.push_back(whole ? extent
                                 : rect.begin.back() + below(extent - rect.begin.back() + 1));
      }
      area.rects.push_back(rect);
    }
    return area;
  }
  Place place(const plan::Tensor& of) {
    Place place;
    place.area = area(of);
    place.rows = rows_of(of, place.area);
    return place;
  }

 private:
  std::mt19937_64 numbers_{7};
};

TEST(Rows, of_an_area_are_its_segments) {
  Draw draw;
  for (int i = 0; i < 2000; ++i) {
    const plan::Tensor tensor = draw.tensor();
    const Place place = draw.place(tensor);
    const std::vector<Segment> all = plan::segments(tensor, place.area);
    EXPECT_EQ(segments_of(place), all);
    Place again;  // one by one
    for (const Segment& one : all) append(again.rows, {{one.offset}, {one.count}, one.count});
    EXPECT_TRUE(same(place, again));
  }
}

/// Every unit, in order.
std::vector<std::int64_t> units_of(const std::vector<Strip>& strips, std::size_t which) {
  std::vector<std::int64_t> units;
  for (const Strip& strip : strips) {
    for (std::int64_t row = 0; row < strip.rows; ++row)
      for (std::int64_t u = 0; u < strip.run; ++u)
        units.push_back(strip.offset[which] + row * strip.pitch[which] + u);
  }
  return units;
}

TEST(Rows, have_parts_that_are_cut_anywhere) {
  Draw draw;
  for (int i = 0; i < 2000; ++i) {
    const Place place = draw.place(draw.tensor());
    const std::vector<std::int64_t> all = units_of(place.rows, 0);
    ASSERT_EQ(std::ssize(all), place.units());
    const std::int64_t begin = draw.below(place.units() + 1);
    const std::int64_t count = draw.below(place.units() - begin + 1);
    EXPECT_EQ(units_of(part_of(place.rows, begin, count), 0),
              std::vector<std::int64_t>(all.begin() + begin, all.begin() + begin + count));
  }
}

TEST(Strips, pair_the_units_of_places_and_are_as_long_as_row_by_row) {
  Draw draw;
  for (int i = 0; i < 2000; ++i) {
    std::vector<Place> places{draw.place(draw.tensor()), draw.place(draw.tensor())};
    const std::int64_t units = std::min(places[0].units(), places[1].units());
    for (Place& place : places) place.rows = part_of(place.rows, 0, units);
    const std::vector<Strip> strips = strips_of({&places[0], &places[1]});
    for (std::size_t p = 0; p < places.size(); ++p)
      EXPECT_EQ(units_of(strips, p), units_of(places[p].rows, 0));
    EXPECT_EQ(strips, paired(segments_of(places[0]), segments_of(places[1])));
  }
}

TEST(DistinctRows, overlap_where_all_rows_do) {
  Draw draw;
  for (int i = 0; i < 1000; ++i) {
    plan::Plan plan;
    plan.tensors.push_back(draw.tensor());
    const plan::Tensor& tensor = plan.tensors.front();
    Movements movements(1);
    movements[0].emplace_back();
    for (int m = 0; m < 4; ++m) {
      Movement& movement = movements[0][0].emplace_back();
      movement.sources.push_back(draw.place(tensor));
      movement.destinations.push_back(draw.place(tensor));
    }
    const DistinctRows distinct(plan, movements);
    const auto ranges_of = [&](const Place& place) {
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      distinct.each(place, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LT(begin, end);
        ranges.emplace_back(begin, end);
      });
      return ranges;
    };
    for (const Movement& a : movements[0][0]) {
      for (const Movement& b : movements[0][0]) {
        const Place &from = a.sources.front(), &to = b.destinations.front();
        bool overlaps = false;
        for (const auto& [begin, end] : ranges_of(from))
          for (const auto& [other_begin, other_end] : ranges_of(to))
            overlaps = overlaps || (begin < other_end && other_begin < end);
        EXPECT_EQ(overlaps, plan::overlap(from.area, to.area));
      }
    }
  }
}

}  // namespace
}  // namespace hemiola::program::general
