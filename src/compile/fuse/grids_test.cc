// Which computes of a plan are waves of one grid, and which need a launch of their own.
#include "compile/fuse/grids.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "plan/template.h"

namespace hemiola::compile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

plan::Plan product(const char* name, int ranks, plan::Parameters more = {}) {
  plan::Parameters all{{"m", "144"}, {"n", "48"}, {"k", "96"}};
  all.insert(all.end(), more.begin(), more.end());
  return plan::make(name, ranks, all);
}

plan::Rect rows(std::int64_t begin, std::int64_t end, std::int64_t columns, std::int64_t depth) {
  return {{begin, 0, 0}, {end, columns, depth}};
}

TEST(Grids, leave_a_kernel_that_waits_tile_by_tile_as_it_is) {
  const plan::Plan plan = product("ag-gemm/ring", 3);
  const Grids grids = grids_of(plan, "plan.json");
  EXPECT_FALSE(grids.are_of_launches);
  EXPECT_EQ(grids.count(), 1);
  EXPECT_EQ(grids.plan.codes.size(), plan.codes.size());
}

TEST(Grids, have_a_launch_for_each_step_with_blocks_as_rows) {
  const plan::Plan plan = product("ag-gemm/sequence", 3, {{"degree", "2"}, {"steps", "hetero"}});
  const Grids grids = grids_of(plan, "plan.json");
  ASSERT_EQ(grids.count(), 1);
  EXPECT_THAT(grids.plan.tensors[0].shape, ElementsAre(144, 96));
  EXPECT_NO_THROW(plan::validate(grids.plan));
  const std::vector<GridLaunch>& launches = grids.launches[0][1];
  ASSERT_EQ(launches.size(), 3U);
  EXPECT_EQ(launches[0].name, "own");
  EXPECT_THAT(launches[0].boxes, ElementsAre(rows(48, 96, 16, 96)));
  EXPECT_TRUE(launches[0].needs.empty());
  // The blocks of ranks 2 and 0, as they come around the end of the tensor.
  EXPECT_THAT(launches[1].boxes, ElementsAre(rows(96, 120, 16, 96), rows(0, 24, 16, 96)));
  EXPECT_THAT(launches[1].needs, ElementsAre(Point{1, 0, 0}, Point{1, 1, 0}));
  EXPECT_THAT(launches[2].needs, ElementsAre(Point{1, 0, 1}, Point{1, 1, 1}));
}

TEST(Grids, have_a_launch_for_each_part_of_a_sum) {
  const plan::Plan plan = product("ag-gemm/sequence", 3, {{"degree", "2"}, {"axis", "k"}});
  const Grids grids = grids_of(plan, "plan.json");
  ASSERT_EQ(grids.count(), 1);
  EXPECT_EQ(grids.plan.codes[0].computes[0].axes.back().extent, 96);
  for (const plan::ComputeOperand& operand : grids.plan.codes[0].computes[0].operands)
    EXPECT_NE(operand.use, plan::Use::add);
  const std::vector<GridLaunch>& launches = grids.launches[0][1];
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_THAT(launches[0].boxes, ElementsAre(plan::Rect{{0, 0, 0}, {144, 16, 48}}));
  EXPECT_THAT(launches[1].boxes, ElementsAre(plan::Rect{{0, 0, 48}, {144, 16, 96}}));
  EXPECT_LT(launches[0].needs, launches[1].needs);
}

TEST(Grids, tell_transfers_of_the_launches_that_they_come_after) {
  const Grids grids = grids_of(product("gemm-rs/sequence", 3, {{"degree", "2"}}), "plan.json");
  // The second step comes after the first one, which its stream has waited for already.
  EXPECT_THAT(grids.taken.at(Point{0, 0, 0}), ElementsAre(TakenLaunch{0, 0, 0}));
  EXPECT_THAT(grids.taken.at(Point{0, 0, 1}), ElementsAre(TakenLaunch{0, 0, 1}));
}

TEST(Grids, are_several_where_computes_work_on_other_tensors) {
  const plan::Plan plan = plan::make("mlp/domino", 2, {{"m", "64"}, {"h", "32"}, {"f", "64"}});
  const Grids grids = grids_of(plan, "plan.json");
  EXPECT_EQ(grids.count(), 4);
  EXPECT_THAT(grids.reasons.front(), HasSubstr("'up 0' reads 'x', 'down 0' 'middle'"));
  EXPECT_EQ(grids.plan.codes[1].computes.size(), 4U);
  EXPECT_EQ(grids.plan.codes[1].computes[2].operands[0].begin[0].constant, 32);
}

TEST(Grids, refuse_by_name_what_is_none) {
  const auto said = [](const char* name, const plan::Parameters& parameters) {
    return test::message_of([&] { grids_of(product(name, 3, parameters), "plan.json"); });
  };
  // To what the caller left, and without what would have come first.
  plan::Plan adds = product("ag-gemm/sequence", 3, {{"degree", "2"}, {"axis", "k"}});
  for (plan::ComputeOperand& operand : adds.codes[0].computes[0].operands)
    if (operand.use == plan::Use::accumulate) operand.use = plan::Use::add;
  EXPECT_THAT(test::message_of([&] { grids_of(adds, "plan.json"); }),
              HasSubstr("compute 'step 0' adds to what is in tensor 'c' already"));
  adds = product("ag-gemm/sequence", 3, {{"degree", "2"}, {"axis", "k"}});
  for (plan::ComputeOperand& operand : adds.codes[0].computes[1].operands)
    if (operand.use == plan::Use::add) operand.use = plan::Use::accumulate;
  // Which begins again instead, and is a launch of its own.
  EXPECT_THAT(grids_of(adds, "plan.json").reasons.front(),
              HasSubstr("'step 1' begins again with elements that 'step 0' has made"));
  EXPECT_THAT(said("dispatch-gemm/shards", {}),
              HasSubstr("leave out part of the box of tiles that a grid would take, because 'own' "
                        "reads 'x', 'step 0 block +1' 'a'"));
}

}  // namespace
}  // namespace hemiola::compile
