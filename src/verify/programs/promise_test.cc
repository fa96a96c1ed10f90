// Custom programs, and what their users say that they leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "plan/template.h"
#include "program/export.h"
#include "program/promise.h"
#include "verify/execute.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using ::testing::HasSubstr;

/// A collective of four ranks as a plan of MSCCL++ that does not say what it is; with `more` keys.
std::string custom_text(const char* name, const std::string& more = "") {
  const plan::Plan plan = plan::make(name, 4);
  std::string text = program::export_plan(plan, program::ExecutorFormat::mscclpp, {});
  const std::size_t at = text.find("\"collective\""), end = text.find(',', at);
  return text.replace(at, end - at, "\"collective\": \"custom\"" + more);
}

std::string promise_text(const std::string& output, const std::string& ranks = "all") {
  return R"({"hemiola_promise": 1, "codes": [{"ranks": ")" + ranks + R"(", "output": [)" + output +
         "]}]}";
}

program::Bound promised(const char* name, const std::string& promise) {
  program::Program program = program::read_mscclpp(custom_text(name), "custom.json");
  if (!promise.empty())
    program.promise = std::make_shared<const program::Promise>(
        program::read_promise(promise, "promise.json", program.ranks));
  return program::bind(program, nullptr, {.size = KiB(64)});
}

const std::string kGathered = R"({"loop": 4, "begin": "i", "copy": {"rank": "i", "begin": 0}})";
const std::string kScattered = R"({"begin": 0, "reduce": {"ranks": "all", "begin": "rank"}})";

TEST(PromisedPrograms, are_proven_to_keep_it_and_run_right) {
  for (const auto& [name, promise] : {std::pair{"all-gather/direct", kGathered},
                                      std::pair{"reduce-scatter/direct", kScattered}}) {
    EXPECT_EQ(check(promised(name, "")).verdict, Verdict::partial);
    const program::Bound bound = promised(name, promise_text(promise));
    const Proof proof = check(bound);
    EXPECT_EQ(proof.verdict, Verdict::proven) << name << ": " << proof.summary;
    EXPECT_THAT(proof.proven.front(), HasSubstr("that is promised"));
    const Execution run = execute(bound, {});
    EXPECT_EQ(run.outcome, Outcome::right) << run.summary;
    EXPECT_GT(run.compared, 0);
  }
}

TEST(PromisedPrograms, that_break_it_are_wrong_with_a_counterexample) {
  const auto summary = [](const char* name, const std::string& promise) {
    const program::Bound bound = promised(name, promise);
    const Proof proof = check(bound);
    EXPECT_EQ(proof.verdict, Verdict::wrong) << promise;
    EXPECT_FALSE(proof.counterexample.empty());
    EXPECT_EQ(execute(bound, {}).outcome, Outcome::wrong) << promise;
    return proof.summary;
  };
  EXPECT_THAT(summary("all-gather/direct",
                      promise_text(R"({"begin": 1, "copy": {"rank": 2, "begin": 0}})")),
              HasSubstr("misses the contribution of rank 2"));
  // One rank only is promised something else than all do, so nobody stands for others.
  EXPECT_THAT(summary("all-gather/direct",
                      promise_text(R"({"begin": 1, "copy": {"rank": 2, "begin": 0}})", "3")),
              HasSubstr("of rank 3"));
  EXPECT_THAT(
      summary("reduce-scatter/direct",
              promise_text(R"({"begin": 0, "reduce": {"ranks": "0,2-3", "begin": "rank"}})")),
      HasSubstr("more than is promised"));
  EXPECT_THAT(summary("reduce-scatter/direct",
                      promise_text(R"({"begin": 0, "reduce": {"ranks": "all", "begin": 0}})")),
              HasSubstr("misses the contribution of rank 0"));
}

TEST(PromisedPrograms, have_what_the_promise_names) {
  const auto refusal = [](const std::string& promise) -> std::string {
    try {
      check(promised("all-gather/direct", promise));
    } catch (const Failure& failure) {
      return failure.diagnostics().render();
    }
    return "checked";
  };
  EXPECT_THAT(refusal(promise_text(R"({"begin": 4, "copy": {"rank": 0, "begin": 0}})")),
              HasSubstr("the promise of rank 0 names 5 chunks of its output"));
  EXPECT_THAT(refusal(promise_text(R"({"begin": 0, "copy": {"rank": 2, "begin": 1}})")),
              HasSubstr("the promise of rank 0 names 2 chunks of the input of rank 2"));
}

TEST(PromisedPrograms, may_say_it_in_the_plan_of_mscclpp) {
  const std::string more = ", \"hemiola_promise\": " + promise_text(kGathered);
  const program::Program program =
      program::read_mscclpp(custom_text("all-gather/direct", more), "custom.json");
  EXPECT_EQ(check(program::bind(program, nullptr, {.size = KiB(64)})).verdict, Verdict::proven);
}

}  // namespace
}  // namespace hemiola::verify
