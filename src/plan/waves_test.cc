#include "plan/waves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hemiola/parts/build_plan.h"
#include "plan/plan_json.h"
#include "plan/template.h"

namespace hemiola::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Every rank holds four of the 16 rows and pulls those of rank + 1, + 2 and + 3.
constexpr const char* kPull = R"({
  "hemiola_plan": 1, "mesh": [{"axis": "tp", "size": 4}],
  "tensors": [{"name": "a", "role": "input", "shape": [16, 2], "dtype": "half"}],
  "codes": [{"ranks": "all",
    "resident": [{"tensor": "a", "begin": ["4*rank", 0], "extent": [4, 2]}],
    "streams": [{"name": "pull", "items": [{"loop": 3, "items": [
      {"op": "pull", "peer": "(rank + i + 1) % 4",
       "source": {"tensor": "a", "begin": ["(rank + i + 1) % 4 * 4", 0], "extent": [4, 2]},
       "destination": {"tensor": "a", "begin": ["(rank + i + 1) % 4 * 4", 0], "extent": [4, 2]}}]}]}],
    "expected": [{"region": {"tensor": "a", "begin": [0, 0], "extent": [16, 2]}, "value": "gathered"}]}]
})";

// The test of Syncopate's lowering (test of a 1-D swizzled all-gather by pulling).
TEST(Waves, a_pulled_all_gather_arrives_in_the_published_order) {
  const Plan plan = read_plan(kPull, "file");
  std::vector<Rect> rects;
  std::vector<std::int64_t> steps;
  for (const Wave& wave : waves(plan, Timeline(plan), 2, 0)) {
    steps.push_back(wave.step);
    for (const Touch& touch : wave.touches)
      rects.insert(rects.end(), touch.area.rects.begin(), touch.area.rects.end());
  }
  EXPECT_THAT(rects, ElementsAre(Rect{{8, 0}, {12, 2}}, Rect{{12, 0}, {16, 2}},
                                 Rect{{0, 0}, {4, 2}}, Rect{{4, 0}, {8, 2}}));
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3));
}

std::vector<std::string> told(const Plan& plan, int rank, std::int32_t tensor) {
  std::vector<std::string> lines;
  for (const Wave& wave : waves(plan, Timeline(plan), rank, tensor)) {
    std::string line;
    for (const Touch& touch : wave.touches)
      line += (line.empty() ? "" : " ") + to_string(plan, touch.area);
    lines.push_back(line);
  }
  return lines;
}

TEST(Waves, of_the_templates_come_from_where_they_should) {
  const auto make_small = [](const char* name, Parameters parameters) {
    for (const auto& [axis, extent] : {std::pair{"m", "16"}, {"n", "4"}, {"k", "2"}})
      parameters.emplace_back(axis, extent);
    return make(name, 4, parameters);
  };
  EXPECT_THAT(told(make_small("ag-gemm/swizzle", {{"transfer", "pull"}}), 2, 0),
              ElementsAre("a[8:12, 0:2]", "a[12:16, 0:2]", "a[0:4, 0:2]", "a[4:8, 0:2]"));
  EXPECT_THAT(told(make_small("ag-gemm/ring", {}), 2, 0),
              ElementsAre("a[8:12, 0:2]", "a[4:8, 0:2]", "a[0:4, 0:2]", "a[12:16, 0:2]"));
  EXPECT_THAT(told(make_small("ag-gemm/double-ring", {{"inner", "2"}}), 2, 0),
              ElementsAre("a[8:12, 0:2]", "a[0:4, 0:2] a[12:16, 0:2]", "a[4:8, 0:2]"));
}

TEST(Waves, a_ring_takes_as_many_steps_as_it_has_transfers) {
  const Plan plan = make("all-reduce/ring", 5);
  const Timeline timeline(plan);
  for (int rank = 0; rank < 5; ++rank)
    for (std::int64_t step = 0; step < 8; ++step) EXPECT_EQ(timeline.start(rank, 0, step), step);
}

TEST(Waves, a_tensor_that_is_only_read_is_produced_in_the_order_of_its_readers) {
  Plan plan;
  plan.ranks = 2;
  plan.tensors = {{"input", Role::input, 4}, {"output", Role::output, 4}};
  Stream stream{"s", {}};
  stream.items.push_back(push(neighbour(1, 2), chunks_of(0, constant(2), 2), chunks_of(1, {}, 2)));
  stream.items.push_back(push(neighbour(1, 2), chunks_of(0, {}, 4), chunks_of(1, {}, 4)));
  run_everywhere(plan, stream);
  const std::vector<Wave> order = waves(plan, Timeline(plan), 1, 0);
  ASSERT_EQ(order.size(), 2U);
  EXPECT_THAT(order[0].touches.front().area.rects, ElementsAre(Rect{{2}, {4}}));
  EXPECT_THAT(order[1].touches.front().area.rects, ElementsAre(Rect{{0}, {2}}));
}

TEST(Waves, a_circle_of_dependencies_is_named) {
  Plan plan;
  plan.name = "circle";
  plan.ranks = 3;
  plan.tensors = {{"input", Role::input, 2}, {"output", Role::output, 2}};
  Stream stream{"s", {}};
  stream.items.push_back(copy(chunk_of(0), chunk_of(1)));
  stream.items.push_back(after(copy(chunk_of(0, constant(1)), chunk_of(1, constant(1))),
                               neighbour(1, 3), constant(1)));
  run_everywhere(plan, stream);
  try {
    const Timeline timeline(plan);
    FAIL() << "no circle was seen";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    EXPECT_THAT(
        failure.what(),
        HasSubstr("transfer 1 of stream 0 of rank 0, which waits for transfer 1 of stream 0 "
                  "of rank 1, which waits for transfer 1 of stream 0 of rank 2"));
  }
}

}  // namespace
}  // namespace hemiola::plan
