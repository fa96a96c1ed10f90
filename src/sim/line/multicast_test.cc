// The line engine gives what the reference engine gives: multicast groups (NVLS).

#include <gtest/gtest.h>

#include "sim/testing/line_compare.h"
#include "sim/testing/random_groups.h"

namespace hemiola::sim {
namespace {

using namespace test;

TEST(LineMulticast, gives_the_reference_result_on_random_planes) {
  std::int64_t multicasts = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < 2; ++i) {
      const machine::Machine machine = any_nvls(none_or_at_links());
      const program::Bound program = any_group_exchange(machine);
      const Options options = any_options(program.ranks());
      RC_ASSERT(Line::refuses(machine, program, options).empty());
      multicasts += expect_equal(machine, program, options).counters.at("requests.multicasts");
    }
  }));
  EXPECT_GT(multicasts, 500);
}

class LineMulticastShipped : public ::testing::TestWithParam<Shipped> {};

TEST_P(LineMulticastShipped, gives_the_reference_result) {
  expect_equal(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Machines, LineMulticastShipped,
    ::testing::Values(
        Shipped{"all-reduce/nvls", "dgx-h100", 8, {{"realization", "multicast"}}, KiB(64), 0},
        Shipped{"all-reduce/nvls", "dgx-h100", 4, {{"realization", "multicast"}}, KiB(32), 2}));

}  // namespace
}  // namespace hemiola::sim
