// Files that are not what their collective asks for: operators, shapes, chunks, the caller's input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/plan_json.h"
#include "verify/execute.h"
#include "verify/testing/programs.h"

namespace hemiola::verify {
namespace {

using namespace test;
using ::testing::HasSubstr;

std::string region(const char* tensor) {
  return "{\"tensor\": \"" + std::string(tensor) + "\", \"begin\": [0]}";
}

/// Two ranks: each copies its input and reduces the other's into the copy, with its own operator.
std::string all_reduce_of_operators(const char* first, const char* second, const char* more = "",
                                    const char* output = "[1]") {
  std::string codes;
  for (int rank = 0; rank < 2; ++rank) {
    codes += std::string(rank > 0 ? ", " : "") + "{\"ranks\": \"" + std::to_string(rank) +
             "\", \"streams\": [{\"items\": [{\"op\": \"copy\", \"source\": " + region("in") +
             ", \"destination\": " + region("out") +
             "}, {\"op\": \"pull\", \"peer\": " + std::to_string(1 - rank) +
             ", \"source\": " + region("in") + ", \"destination\": " + region("out") +
             ", \"reduce\": \"" + (rank == 0 ? first : second) + "\"}]}]}";
  }
  return std::string("{\"hemiola_plan\": 1, \"collective\": \"all-reduce\", ") + more +
         "\"mesh\": [{\"axis\": \"r\", \"size\": 2}], \"tensors\": [{\"name\": \"in\", \"role\": "
         "\"input\", \"shape\": [1]}, {\"name\": \"out\", \"role\": \"output\", \"shape\": " +
         output + "}], \"codes\": [" + codes + "]}";
}

std::string refusal(const std::string& json) {
  try {
    plan::read_plan(json, "plan.json");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.diagnostics().render();
  }
  return "";
}

TEST(CollectivePlan, has_one_operator) {
  EXPECT_EQ(check(plan::read_plan(all_reduce_of_operators("sum", "sum"), "plan.json")).verdict,
            Verdict::proven);
  const Proof largest = check(plan::read_plan(all_reduce_of_operators("max", "max"), "plan.json"));
  EXPECT_EQ(largest.verdict, Verdict::proven);
  EXPECT_THAT(largest.proven.at(0), HasSubstr("reduced with max"));
  const Proof mixed = check(plan::read_plan(all_reduce_of_operators("sum", "max"), "plan.json"));
  EXPECT_EQ(mixed.verdict, Verdict::wrong);
  EXPECT_THAT(mixed.summary, HasSubstr("reductions with sum and with max in one all-reduce"));
  ASSERT_EQ(mixed.counterexample.size(), 2u);
  EXPECT_EQ(mixed.counterexample[1].where, "/codes/1/streams/0/items/1");
}

TEST(CollectivePlan, whose_output_is_too_short_or_too_long_is_bad_input) {
  const std::string text = refusal(all_reduce_of_operators("sum", "sum", "", "[3]"));
  EXPECT_THAT(text, HasSubstr("tensor 'out' of shape [3] has 3 chunks"));
  EXPECT_THAT(text, HasSubstr("of tensor 'in' of shape [1] among 2 ranks needs 1"));
  EXPECT_THAT(text, HasSubstr("/tensors/1/shape"));
}

TEST(CollectivePlan, has_as_many_chunks_per_size_as_its_tensors_say) {
  EXPECT_EQ(plan::read_plan(all_reduce_of_operators("sum", "sum"), "plan.json").chunks_per_size, 1);
  EXPECT_EQ(refusal(all_reduce_of_operators("sum", "sum", "\"chunks_per_size\": 1, ")), "");
  EXPECT_THAT(refusal(all_reduce_of_operators("sum", "sum", "\"chunks_per_size\": 4, ")),
              HasSubstr("4 chunks per size are stated"));
}

TEST(CollectivePlan, that_overwrites_the_input_beside_an_output_gets_a_warning) {
  std::string json = all_reduce_of_operators("sum", "sum");
  const Proof clean = check(plan::read_plan(json, "plan.json"));
  EXPECT_TRUE(clean.warnings.empty()) << clean.warnings.render();
  // Rank 1 puts its result into its input as well, once rank 0 has read that.
  const std::string last = "\"reduce\": \"sum\"}]}]}]";
  json.replace(json.rfind(last), last.size(),
               "\"reduce\": \"sum\"}, {\"op\": \"copy\", \"source\": " + region("out") +
                   ", \"destination\": " + region("in") +
                   ", \"after\": [{\"rank\": 0, \"transfer\": 1}]}]}]}]");
  const Proof proof = check(plan::read_plan(json, "plan.json"));
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  ASSERT_EQ(proof.warnings.items().size(), 1u);
  EXPECT_THAT(proof.warnings.items()[0].message, HasSubstr("overwrites the caller's input"));
}

/// Two ranks add up; `stated` is what rank 0's plan says of its reduction.
program::Bound stating(ReduceOp stated) {
  auto bodies = exchange_and_add();
  bodies[0][0][5].reduce = stated;
  return program::changed(make(Collective::all_reduce, 2, bodies),
                          [](program::Program& p) { p.format = "mscclpp"; });
}

TEST(CollectiveProgram, with_another_operator_in_one_operation_is_wrong) {
  EXPECT_EQ(check(stating(ReduceOp::sum), {.calls = 1}).verdict, Verdict::proven);
  const Proof proof = check(stating(ReduceOp::min), {.calls = 1});
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("reduces with min, but the all-reduce is one with sum"));
  EXPECT_EQ(proof.counterexample.at(0).operation, "op 5 (reduce)");
  EXPECT_EQ(execute(stating(ReduceOp::sum), {.rounds = 1}).outcome, Outcome::right);
  EXPECT_EQ(execute(stating(ReduceOp::min), {.rounds = 1}).outcome, Outcome::wrong);
}

TEST(CollectiveProgram, whose_output_ends_before_the_result_is_bad_input) {
  const program::Bound program =
      program::changed(make(Collective::all_reduce, 2, exchange_and_add()),
                       [](program::Program& p) { p.buffers[kOutput].chunks = {1}; });
  try {
    check(program);
    FAIL() << "it was checked";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    EXPECT_THAT(failure.diagnostics().render(),
                HasSubstr("buffer 'output' of rank 0 has 1 chunk; all-reduce among 2 ranks needs "
                          "2 chunks"));
  }
}

TEST(CollectiveProgram, that_overwrites_the_input_beside_an_output_gets_a_warning) {
  auto bodies = exchange_and_add();
  bodies[0][0].push_back(sync());
  bodies[0][0].push_back(transfer(OpKind::copy, {at(0, kOutput, 0)}, {at(0, kInput, 0)}));
  const Proof proof = check(make(Collective::all_reduce, 2, bodies), {.calls = 1});
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  ASSERT_EQ(proof.warnings.items().size(), 1u);
  EXPECT_THAT(proof.warnings.items()[0].message, HasSubstr("op 7 (copy)"));
}

}  // namespace
}  // namespace hemiola::verify
