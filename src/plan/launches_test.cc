// What launches may say of their order, and what is refused.
#include "plan/launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "hemiola/parts/build_plan.h"
#include "plan/plan_json.h"
#include "plan/template.h"

namespace hemiola::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Dependency on_compute(std::int64_t number) {
  return {.rank = own_rank(), .compute = constant(number)};
}

/// c = a b in three launches: halves of what is summed over, and the rest of the columns.
Plan three_launches() {
  Plan plan;
  plan.name = "three";
  plan.ranks = 2;
  plan.tensors = {{"a", Role::input, {4, 6}, DataType::float32},
                  {"b", Role::input, {6, 8}, DataType::float32},
                  {"c", Role::output, {4, 8}, DataType::float32}};
  Compute left{.name = "left", .kernel = "gemm", .axes = {}, .operands = {}};
  left.axes = {{"m", 4, 2, false}, {"n", 4, 2, false}, {"k", 3, 3, true}};
  left.operands = {{0, Use::read, {0, 2}}, {1, Use::read, {2, 1}}, {2, Use::accumulate, {0, 1}}};
  left.stream = "one";
  Compute sum = left, right = left;
  sum.name = "sum";
  sum.operands = {{0, Use::read, {0, 2}, {{}, constant(3)}},
                  {1, Use::read, {2, 1}, {constant(3), {}}},
                  {2, Use::add, {0, 1}}};
  right.name = "right";
  right.axes[2].extent = 6;
  right.operands[1].begin = {{}, constant(4)};
  right.operands[2].begin = {{}, constant(4)};
  right.stream = "two";
  plan.codes = {Code{}};
  plan.codes[0].computes = {left, sum, right};
  plan.codes[0].expected = {{{2, {{{{}, 4}, {{}, 8}}}}, false}};
  plan.code_of = {0, 0};
  return plan;
}

std::string failure_of(const Plan& plan) {
  return test::message_of([&] { validate(plan); });
}

TEST(Launches, follow_their_streams_and_what_they_name) {
  Plan plan = three_launches();
  validate(plan);
  plan.codes[0].computes[2].after = {on_compute(0)};
  const LaunchOrder order(plan.codes[0]);
  EXPECT_THAT(order.streams(), ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
  EXPECT_THAT(order.directly_before(1), ElementsAre(0));
  EXPECT_THAT(order.directly_before(2), ElementsAre(0));
  EXPECT_TRUE(order.is_before(0, 1));
  EXPECT_FALSE(order.is_before(1, 2));
  EXPECT_TRUE(order.circle().empty());
}

TEST(Launches, without_a_stream_are_on_one_of_their_own) {
  Plan plan = three_launches();
  for (Compute& compute : plan.codes[0].computes) compute.stream.clear();
  plan.codes[0].computes[1].after = {on_compute(0)};
  plan.codes[0].computes[0].waits = Waits::launch;
  const LaunchOrder order(plan.codes[0]);
  EXPECT_THAT(order.streams(), ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_FALSE(plan.codes[0].computes[2].is_launch()) << "part of the persistent kernel";
}

TEST(Launches, that_wait_for_each_other_are_named) {
  Plan plan = three_launches();
  plan.codes[0].computes[0].after = {on_compute(2)};
  plan.codes[0].computes[2].after = {on_compute(1)};
  EXPECT_THAT(failure_of(plan),
              HasSubstr("computes wait for each other: compute 'left', which comes after compute "
                        "'right', which comes after compute 'sum'"));
}

TEST(Launches, that_add_without_an_order_are_named) {
  Plan plan = three_launches();
  plan.codes[0].computes[1].stream = "two";
  EXPECT_THAT(failure_of(plan), HasSubstr("compute 'sum' adds to tensor 'c' where compute 'left' "
                                          "writes, and nothing orders the two"));
  plan.codes[0].computes[1].after = {on_compute(0)};
  EXPECT_NO_THROW(validate(plan));
}

TEST(Launches, name_what_exists) {
  Plan plan = three_launches();
  std::vector<Dependency>& after = plan.codes[0].computes[2].after;
  after = {on_compute(3)};
  EXPECT_THAT(failure_of(plan), HasSubstr("comes after compute 3, which does not exist"));
  after = {on_compute(0)};
  after[0].rank = neighbour(1, 2);
  EXPECT_THAT(failure_of(plan), HasSubstr("compute 'right' of rank 0 comes after one of rank 1"));
  after = {done(0, 0, 0)};
  EXPECT_THAT(failure_of(plan), HasSubstr("depends on transfer 0 of stream 0 of rank 0, which"));
  after = {on_compute(0)};
  after[0].compute.reset();
  after[0].computed = Region{2, {{{{}, 1}, {{}, 1}}}};
  EXPECT_THAT(failure_of(plan), HasSubstr("compute 'right' waits for a region"));
  after = {on_compute(0)};
  plan.codes[0].computes[0].stream.clear();
  EXPECT_THAT(failure_of(plan), HasSubstr("'left', which is no launch of its own"));
}

TEST(Launches, are_named_by_transfers) {
  Plan plan = three_launches();
  plan.tensors.push_back({"d", Role::output, {4, 8}, DataType::float32});
  Transfer keep = copy({2, {{{{}, 4}, {{}, 4}}}}, {3, {{{{}, 4}, {{}, 4}}}});
  keep.after = {on_compute(1)};
  plan.codes[0].streams = {{"keep", {keep}}};
  EXPECT_NO_THROW(validate(plan));
  auto& after = std::get<Transfer>(plan.codes[0].streams[0].items[0]).after;
  after[0].compute = constant(5);
  EXPECT_THAT(failure_of(plan), HasSubstr("it depends on compute 5 of rank 0, which does not"));
}

TEST(Launches, survive_a_round_trip_through_a_file) {
  Plan plan = three_launches();
  plan.codes[0].computes[2].after = {on_compute(1)};
  plan.codes[0].computes[2].waits = Waits::launch;
  const std::string text = write_plan(plan);
  EXPECT_THAT(text, HasSubstr("\"after\": [{\"compute\": \"sum\"}]"));
  const Plan again = read_plan(text, "three.json");
  EXPECT_EQ(again.codes[0].computes, plan.codes[0].computes);
  std::string wrong = text;
  wrong.replace(wrong.find("\"compute\": \"sum\""), 16, "\"compute\": \"sun\"");
  const std::string message = test::message_of([&] { read_plan(wrong, "three.json"); });
  EXPECT_THAT(message, HasSubstr("there is no compute 'sun'"));
}

TEST(Launches, wrap_by_whole_tiles_only) {
  Plan plan = three_launches();
  Compute& right = plan.codes[0].computes[2];
  right.operands[1].begin = {{}, constant(6)};
  const auto refused = [&] { return test::message_of([&] { validate(plan); }); };
  EXPECT_THAT(refused(), HasSubstr("touches [6, 10) of axis 1 of tensor 'b', which has 8"));
  right.operands[1].wraps = true;
  EXPECT_NO_THROW(validate(plan));
  EXPECT_EQ(write_plan(read_plan(write_plan(plan), "wraps.json")), write_plan(plan));
  EXPECT_TRUE(read_plan(write_plan(plan), "wraps.json").codes[0].computes[2].operands[1].wraps);
  right.axes[1].tile = 3;
  EXPECT_THAT(refused(), HasSubstr("reaches over the end of axis 1 of tensor 'b'"));
}

TEST(Launches, of_one_name_are_named_by_number) {
  Plan plan = three_launches();
  for (Compute& compute : plan.codes[0].computes) compute.name = "gemm";
  plan.codes[0].computes[2].after = {on_compute(1)};
  std::string text = write_plan(plan);
  EXPECT_THAT(text, HasSubstr("\"after\": [{\"compute\": 1}]"));
  EXPECT_EQ(read_plan(text, "three.json").codes[0].computes, plan.codes[0].computes);
  text.replace(text.find("{\"compute\": 1}"), 14, "{\"compute\": \"gemm\"}");
  EXPECT_THAT(test::message_of([&] { read_plan(text, "three.json"); }),
              HasSubstr("3 computes are called 'gemm'"));
}

TEST(Launches, of_a_sequence_wait_for_their_step_alone) {
  const Plan plan = make("ag-gemm/sequence", 4, {{"degree", "2"}, {"axis", "k"}});
  ASSERT_EQ(plan.codes[0].computes.size(), 2u);
  EXPECT_EQ(plan.codes[0].computes[0].operands[2].use, Use::accumulate);
  EXPECT_EQ(plan.codes[0].computes[1].operands[2].use, Use::add);
  for (std::size_t step = 0; step < 2; ++step) {
    const Compute& compute = plan.codes[0].computes[step];
    ASSERT_EQ(compute.after.size(), 3u) << "one from every peer";
    for (const Dependency& dependency : compute.after)
      EXPECT_EQ(dependency.transfer({}), static_cast<std::int64_t>(step));
  }
}

/// The computes that transfers of a stream wait for, in order.
std::vector<std::int64_t> launches_before(const Plan& plan, const std::string& name) {
  std::vector<std::int64_t> launches;
  for (const Stream& stream : plan.codes[0].streams) {
    if (stream.name != name) continue;
    for_each_transfer(stream, 0, [&](const Transfer& transfer, const Indices& at) {
      for (const Dependency& d : transfer.after)
        if (d.compute) launches.push_back((*d.compute)(at));
    });
  }
  return launches;
}

// A product of the own block is the last one where only its own rank waits for it, and the first
// one where the sum that it is a part of goes to everybody.
TEST(Launches, before_communication_ring_for_their_step_alone) {
  const auto made = [](const char* name, const char* steps) {
    return make(name, 4, {{"m", "64"}, {"n", "32"}, {"degree", "2"}, {"steps", steps}});
  };
  const Plan uniform = made("gemm-rs/sequence", "uniform");
  EXPECT_THAT(launches_before(uniform, "to rank + 1"), ElementsAre(0, 1));
  EXPECT_THAT(launches_before(uniform, "sums"), ElementsAre(0, 1));
  const Plan hetero = made("gemm-rs/sequence", "hetero");
  EXPECT_THAT(launches_before(hetero, "to rank + 3"), ElementsAre(0, 1));
  EXPECT_THAT(launches_before(hetero, "sums"), ElementsAre(2, 2));
  EXPECT_EQ(hetero.codes[0].computes.back().name, "own");
  const Plan all = made("gemm-ar/sequence", "hetero");
  EXPECT_THAT(launches_before(all, "to rank + 3"), ElementsAre(1, 2));
  EXPECT_THAT(launches_before(all, "sums"), ElementsAre(0, 0));
  EXPECT_EQ(all.codes[0].computes.front().name, "own");
}

}  // namespace
}  // namespace hemiola::plan
