#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hemiola/parts/build_plan.h"
#include "plan/template.h"

namespace hemiola::plan {
namespace {

using ::testing::HasSubstr;

/// Two ranks that send each other their input.
Plan swap() {
  Plan plan;
  plan.name = "swap";
  plan.ranks = 2;
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, 1}};
  Stream stream{"exchange", {push(neighbour(1, 2), chunk_of(0), chunk_of(1))}};
  run_everywhere(plan, stream);
  return plan;
}

Transfer& first(Plan& plan) {
  return std::get<Transfer>(plan.codes[0].streams[0].items[0]);
}

std::string failure_of(const Plan& plan) {
  try {
    validate(plan);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

TEST(Validate, a_good_plan_passes) {
  EXPECT_EQ(failure_of(swap()), "no failure");
}

TEST(Validate, a_region_outside_its_tensor_is_named) {
  Plan plan = swap();
  first(plan).destination.first() = own_rank();
  EXPECT_THAT(failure_of(plan),
              HasSubstr("plan 'swap': rank 1, stream 0, transfer 0: its destination is outside "
                        "tensor 'output': chunks 1 to 1 of 1"));
  first(plan).destination = {.tensor = 7};
  EXPECT_THAT(failure_of(plan), HasSubstr("its destination names tensor 7, which does not exist"));
}

TEST(Validate, peers_must_exist_and_fit_the_kind) {
  Plan plan = swap();
  first(plan).peer = {.constant = 1, .rank = 1};
  EXPECT_THAT(failure_of(plan), HasSubstr("rank 1, stream 0, transfer 0: its peer is rank 2"));
  first(plan).peer = own_rank();
  EXPECT_THAT(failure_of(plan), HasSubstr("a push names its own rank"));
  first(plan).kind = TransferKind::copy;
  EXPECT_EQ(failure_of(plan), "no failure");
  first(plan).peer = neighbour(1, 2);
  EXPECT_THAT(failure_of(plan), HasSubstr("a copy names another rank"));
}

TEST(Validate, sizes_must_agree) {
  Plan plan = swap();
  plan.tensors[0].shape = {2};
  first(plan).source = chunks_of(0, {}, 2);
  EXPECT_THAT(failure_of(plan), HasSubstr("source and destination differ in size"));
}

TEST(Validate, dependencies_must_exist_and_not_come_later) {
  Plan plan = swap();
  first(plan) = after(first(plan), neighbour(1, 2), constant(1));
  EXPECT_THAT(failure_of(plan),
              HasSubstr("it depends on transfer 1 of stream 0 of rank 1, which does not exist"));
  first(plan).after = {{own_rank(), 0, constant(0)}};
  EXPECT_THAT(failure_of(plan), HasSubstr("of its own stream, which comes later"));
  first(plan).after = {{constant(5), 0, constant(0)}};
  EXPECT_THAT(failure_of(plan), HasSubstr("it depends on rank 5"));
}

TEST(Validate, tables_must_be_complete) {
  Plan plan = swap();
  plan.code_of = {0};
  EXPECT_THAT(failure_of(plan), HasSubstr("not every rank has a code"));
  plan.code_of = {0, 3};
  EXPECT_THAT(failure_of(plan), HasSubstr("code 3, which does not exist"));
  plan = swap();
  plan.tensors[1].shape = {0};
  EXPECT_THAT(failure_of(plan), HasSubstr("tensor 'output' has no chunks"));
}

TEST(Plan, transfers_are_counted_with_loops_unrolled) {
  Plan plan = swap();
  Stream& stream = plan.codes[0].streams[0];
  stream.items.push_back(Loop{3, {first(plan), Loop{2, {first(plan)}}}});
  stream.items.push_back(Loop{0, {first(plan)}});
  EXPECT_EQ(count_transfers(stream), 1 + 3 * (1 + 2));
  std::vector<std::array<std::int64_t, 2>> seen;
  for_each_transfer(stream, 0,
                    [&](const Transfer&, const Indices& at) { seen.push_back(at.loop); });
  EXPECT_THAT(seen, ::testing::ElementsAre(
                        std::array<std::int64_t, 2>{0, 0}, std::array<std::int64_t, 2>{0, 0},
                        std::array<std::int64_t, 2>{0, 0}, std::array<std::int64_t, 2>{0, 1},
                        std::array<std::int64_t, 2>{1, 0}, std::array<std::int64_t, 2>{1, 0},
                        std::array<std::int64_t, 2>{1, 1}, std::array<std::int64_t, 2>{2, 0},
                        std::array<std::int64_t, 2>{2, 0}, std::array<std::int64_t, 2>{2, 1}));
}

}  // namespace
}  // namespace hemiola::plan
