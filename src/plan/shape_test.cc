#include "plan/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/area.h"
#include "plan/template.h"

namespace hemiola::plan {
namespace {

using ::testing::HasSubstr;

TEST(Shaped, every_chunk_becomes_the_same_part_of_the_axis) {
  const Plan chunks = make("all-reduce/ring", 4);
  const Plan rows = shaped(chunks, {8, 3}, DataType::float16, 0);
  validate(rows);
  EXPECT_EQ(rows.tensors[0].shape, (std::vector<std::int64_t>{8, 3}));
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<Area> expected, areas;
    for_each_transfer(
        chunks.stream(rank, 0), rank, [&](const Transfer& transfer, const Indices& at) {
          const std::int64_t chunk = transfer.destination.first()(at);
          expected.push_back({transfer.destination.tensor, {{{2 * chunk, 0}, {2 * chunk + 2, 3}}}});
        });
    for_each_transfer(rows.stream(rank, 0), rank, [&](const Transfer& transfer, const Indices& at) {
      areas.push_back(evaluate(transfer.destination, at));
    });
    EXPECT_EQ(areas, expected);
  }
}

TEST(Shaped, what_does_not_divide_is_refused) {
  const Plan chunks = make("all-reduce/ring", 4);
  const auto failure_of = [&](std::vector<std::int64_t> shape, std::size_t axis) -> std::string {
    try {
      shaped(chunks, shape, DataType::float16, axis);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "no failure";
  };
  EXPECT_THAT(failure_of({8, 3}, 1), HasSubstr("multiple of 4"));
  EXPECT_THAT(failure_of({8, 3}, 2), HasSubstr("no axis 2"));
}

}  // namespace
}  // namespace hemiola::plan
