// Plans that are right are proven, and what is wrong with others is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/execute.h"
#include "verify/test_plans.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(CheckPlan, good_plans_are_proven_and_run_right) {
  for (const int ranks : {2, 3, 5}) {
    for (const plan::Plan& plan : good_plans(ranks)) {
      ASSERT_NO_THROW(validate(plan)) << plan.name;
      const Proof proof = check(plan);
      EXPECT_EQ(proof.verdict, Verdict::proven)
          << plan.name << " over " << ranks << " ranks: " << proof.summary;
      EXPECT_TRUE(proof.warnings.empty()) << plan.name << ": " << proof.warnings.render();
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const Execution one = interleave(plan, seed);
        EXPECT_EQ(one.outcome, Outcome::right) << plan.name << ": " << one.summary;
        EXPECT_GT(one.compared, 0) << plan.name;
        const Execution many = execute(plan, {.seed = seed});
        EXPECT_EQ(many.outcome, Outcome::right) << plan.name << ": " << many.summary;
      }
    }
  }
}

}  // namespace
}  // namespace hemiola::verify
