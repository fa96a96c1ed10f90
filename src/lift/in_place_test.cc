// A collective in place comes back from its plan as what it was: lowered, and exported.
#include <gtest/gtest.h>

#include <string>

#include "lift/lift.h"
#include "plan/in_place.h"
#include "plan/plan_json.h"
#include "program/built_in.h"
#include "verify/verify.h"

namespace hemiola::lift {
namespace {

using program::ExecutorFormat;

program::Bound bound_at_next(const program::Program& program, Bytes size) {
  return program::bind(program, nullptr,
                       {.size = program.next_legal_size(size, DataType::float32)});
}

/// In place on four ranks, in as few parts as can be.
program::Bound in_place(const std::string& name) {
  const char* parts = name.ends_with("ring") ? "channels" : "workgroups";
  return bound_at_next(
      program::load(name, {.ranks = 4, .parameters = {{"in_place", "1"}, {parts, "1"}}}), {4096});
}

class InPlace : public ::testing::TestWithParam<const char*> {};

TEST_P(InPlace, programs_come_back_from_a_plan_as_their_collective) {
  const program::Bound program = in_place(GetParam());
  ASSERT_TRUE(program.program().in_place);
  // Through the file form, as `plan convert` goes.
  const plan::Plan plan = plan::read_plan(plan::write_plan(lift(program)), "plan.json");
  EXPECT_EQ(plan.collective, program.collective());
  EXPECT_TRUE(plan::is_in_place(plan));
  EXPECT_EQ(verify::check(plan).verdict, verify::Verdict::proven);
  const auto expect_the_same = [&](const program::Program& again, const std::string& how) {
    EXPECT_EQ(again.collective, program.collective()) << how;
    EXPECT_TRUE(again.in_place) << how;
    const verify::Proof proof = verify::check(bound_at_next(again, {4096}));
    EXPECT_EQ(proof.verdict, verify::Verdict::proven) << how << ": " << proof.summary;
  };
  expect_the_same(program::lower_plan(plan, {}), "lowered");
  EXPECT_THROW(program::lower_plan(plan, {{"in_place", "0"}}), Failure);
  expect_the_same(program::read_mscclpp(export_plan(plan, ExecutorFormat::mscclpp, {}), "out.json"),
                  "MSCCL++");
  expect_the_same(program::read_msccl(export_plan(plan, ExecutorFormat::msccl, {}), "out.xml"),
                  "MSCCL XML");
}

INSTANTIATE_TEST_SUITE_P(Templates, InPlace,
                         ::testing::Values("all-reduce/ring", "all-reduce/two-shot",
                                           "all-gather/direct", "all-gather/ring",
                                           "reduce-scatter/direct"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '/' || c == '-' ? '_' : c;
                           return name;
                         });

// The promise is checked, not copied: a transfer less, and neither plan nor program is proven.
TEST(InPlaceOfLess, is_wrong_as_plan_and_as_program) {
  const program::Bound program = in_place("all-gather/ring");
  plan::Plan plan = lift(program);
  std::vector<plan::Item>& items = plan.codes[2].streams[0].items;
  items.pop_back();
  EXPECT_NE(verify::check(plan).verdict, verify::Verdict::proven);
}

}  // namespace
}  // namespace hemiola::lift
