// Plans of files that unroll to more than anybody can walk are refused before they are walked.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "plan/plan_json.h"

namespace hemiola::plan {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_plan(const std::string& items, int ranks, const std::string& computes = "") {
  const std::string text = fmt::format(
      R"({{"hemiola_plan": 1, "collective": "custom", "mesh": [{{"axis": "rank", "size": {}}}],
 "tensors": [{{"name": "a", "role": "input", "shape": [1], "dtype": "float"}},
  {{"name": "b", "role": "output", "shape": [1], "dtype": "float"}}],
 "codes": [{{"ranks": "all", {} "streams": [{{"items": [{}]}}]}}]}})",
      ranks, computes, items);
  try {
    read_plan(text, "plan.json");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.diagnostics().render();
  }
  return "read";
}

const std::string kCopy =
    R"({"op": "copy", "source": {"tensor": "a", "begin": [0]}, "destination": {"tensor": "b", "begin": [0]}})";

std::string loop_of(const std::string& count, const std::string& items) {
  return R"({"loop": )" + count + R"(, "items": [)" + items + "]}";
}

TEST(PlanBudget, loops_are_counted_before_they_are_unrolled) {
  EXPECT_THAT(refusal_of_plan(loop_of("3", loop_of("1000000000", kCopy)), 4),
              HasSubstr("3000000000 transfers and rounds of loops on 4 ranks, 12000000000 in all, "
                        "are more than the 16777216"));
  EXPECT_THAT(refusal_of_plan(loop_of("3", loop_of("1000000000", kCopy)), 4),
              HasSubstr("plan.json:4:"));
  // Beyond 64 bits.
  const std::string most = std::to_string(std::int64_t{1} << 50);
  EXPECT_THAT(refusal_of_plan(loop_of(most, loop_of(most, kCopy)), 4), HasSubstr("more than"));
  // Rounds without a transfer take time as well.
  EXPECT_THAT(refusal_of_plan(loop_of(most, ""), 1), HasSubstr("more than"));
  EXPECT_THAT(refusal_of_plan(loop_of("1", loop_of(most, "")), 1), HasSubstr("more than"));
  // Many ranks of few transfers each.
  EXPECT_THAT(refusal_of_plan(loop_of("17", kCopy), 1 << 20), HasSubstr("17825792 in all"));
  EXPECT_EQ(refusal_of_plan(loop_of("3", kCopy), 4), "read");
}

TEST(PlanBudget, tiles_are_counted_too) {
  const auto compute = [](const std::string& extent) {
    return R"("computes": [{"kernel": "k", "axes": [{"name": "x", "extent": )" + extent +
           R"(, "tile": 1}], "operands": [{"tensor": "a", "use": "read", "axes": ["x"]}]}],)";
  };
  EXPECT_THAT(refusal_of_plan(kCopy, 2, compute("1125899906842624")),
              HasSubstr("/codes/0/computes/0"));
  EXPECT_EQ(refusal_of_plan(kCopy, 2, compute("1")), "read");
}

}  // namespace
}  // namespace hemiola::plan
