// check() and running agree about plans with one mistake in them. tools/study mutants tries many
// more.
#include "verify/testing/mutants.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/testing/long_tests.h"
#include "verify/testing/plans.h"

namespace hemiola::verify {
namespace {

std::vector<plan::Plan> plans_to_break() {
  std::vector<plan::Plan> plans;
  for (int ranks = 2; ranks <= 6; ++ranks)
    for (plan::Plan& plan : test::good_plans(ranks)) plans.push_back(std::move(plan));
  return plans;
}

TEST(Mutants, written_out_plans_say_the_same) {
  for (const plan::Plan& plan : plans_to_break()) {
    const plan::Plan written = written_out(plan);
    ASSERT_NO_THROW(validate(written)) << plan.name;
    EXPECT_EQ(check(written).verdict, Verdict::proven)
        << plan.name << ": " << check(written).summary;
    EXPECT_EQ(check(written).operations, check(plan).operations) << plan.name;
  }
}

TEST(Mutants, check_rejects_what_goes_wrong_and_accepts_the_rest) {
  const char* count = std::getenv("HEMIOLA_MUTANTS");
  const char* seed = std::getenv("HEMIOLA_MUTANTS_SEED");
  const Confusion confusion =
      try_mutants(plans_to_break(), count != nullptr ? std::atoll(count) : some_or_all(200, 500),
                  seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  std::cout << to_string(confusion);
  for (const std::string& disagreement : confusion.disagreements) ADD_FAILURE() << disagreement;
  // Most single mistakes matter, and of each kind there are some.
  EXPECT_GT(confusion.counts[true][0], 0);
  for (const std::size_t outcome : {1, 2, 3}) EXPECT_GT(confusion.counts[false][outcome], 0);
}

}  // namespace
}  // namespace hemiola::verify
