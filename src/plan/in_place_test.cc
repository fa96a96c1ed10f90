#include "plan/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/diagnostics.h"
#include "hemiola/parts/build_plan.h"
#include "plan/plan_json.h"

namespace hemiola::plan {
namespace {

using ::testing::HasSubstr;

constexpr std::int32_t kInput = 0, kOutput = 1;

/// A plan of two ranks without transfers, as far as its promise is concerned.
Plan plan_of(Collective collective, std::int64_t in, std::int64_t out) {
  Plan plan{.name = "test", .collective = collective, .ranks = 2};
  plan.chunks_per_size = std::max(in, out);
  plan.tensors.emplace_back("input", Role::input, in);
  plan.tensors.emplace_back("output", Role::output, out);
  plan.codes.resize(2);
  plan.code_of = {0, 1};
  return plan;
}

TEST(InPlace, an_all_gather_starts_with_the_own_part_of_the_output) {
  Plan plan = plan_of(Collective::all_gather, 3, 6);
  EXPECT_FALSE(is_in_place(plan));
  EXPECT_FALSE(states_result(plan));
  ASSERT_TRUE(set_in_place(plan, kOutput));
  EXPECT_TRUE(is_in_place(plan));
  EXPECT_TRUE(states_result(plan));
  EXPECT_TRUE(plan.in_place_safe);
  EXPECT_EQ(plan.code(1).resident->front(), chunks_of(kOutput, constant(3), 3));
  ASSERT_EQ(plan.code(1).expected.size(), 1u);
  EXPECT_EQ(plan.code(1).expected[0].region, chunks_of(kOutput, {}, 6));
  EXPECT_FALSE(plan.code(1).expected[0].reduced);
  EXPECT_NO_THROW(validate(plan));
}

TEST(InPlace, a_reduce_scatter_ends_with_the_own_part_of_the_input) {
  Plan plan = plan_of(Collective::reduce_scatter, 6, 3);
  ASSERT_TRUE(set_in_place(plan, kInput));
  EXPECT_EQ(plan.code(1).expected[0].region, chunks_of(kInput, constant(3), 3));
  EXPECT_TRUE(plan.code(1).expected[0].reduced);
}

TEST(InPlace, only_the_root_of_a_broadcast_holds_something_and_of_a_reduce_expects_something) {
  Plan broadcast = plan_of(Collective::broadcast, 4, 4);
  broadcast.root = 1;
  ASSERT_TRUE(set_in_place(broadcast, kOutput));
  EXPECT_TRUE(broadcast.code(0).resident->empty());
  EXPECT_FALSE(broadcast.code(1).resident->empty());
  Plan reduce = plan_of(Collective::reduce, 4, 4);
  reduce.root = 1;
  ASSERT_TRUE(set_in_place(reduce, kOutput));
  EXPECT_TRUE(reduce.code(0).expected.empty());
  EXPECT_TRUE(reduce.code(1).expected[0].reduced);
}

TEST(InPlace, tensors_of_other_sizes_have_no_terms) {
  Plan plan = plan_of(Collective::all_reduce, 4, 2);
  EXPECT_FALSE(set_in_place(plan, kInput));
  EXPECT_FALSE(is_in_place(plan));
  Plan gather = plan_of(Collective::all_gather, 4, 6);
  EXPECT_FALSE(set_in_place(gather, kOutput));
}

TEST(InPlace, plans_survive_their_file) {
  for (const Collective collective : {Collective::all_reduce, Collective::all_to_all,
                                      Collective::broadcast, Collective::reduce}) {
    Plan plan = plan_of(collective, 4, 4);
    ASSERT_TRUE(set_in_place(plan, kInput));
    const Plan again = read_plan(write_plan(plan), "plan.json");
    EXPECT_EQ(again.collective, collective);
    EXPECT_TRUE(is_in_place(again));
  }
}

TEST(InPlace, a_collective_that_expects_something_else_is_refused) {
  Plan plan = plan_of(Collective::all_reduce, 4, 4);
  ASSERT_TRUE(set_in_place(plan, kInput));
  plan.codes[1].expected[0].region = chunks_of(kInput, {}, 2);
  try {
    validate(plan, "plan.json");
    FAIL() << "nothing was refused";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(),
                HasSubstr("plan.json: error: plan 'test' is called all-reduce, but rank 1 holds or "
                          "expects something else than that in place (at /codes)"));
  }
  plan.collective = Collective::custom;
  EXPECT_NO_THROW(validate(plan));
}

}  // namespace
}  // namespace hemiola::plan
