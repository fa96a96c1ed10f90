#include "plan/waves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/template.h"

namespace hemiola::plan {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> told(const Plan& plan, int rank, std::int32_t tensor) {
  std::vector<std::string> lines;
  for (const std::vector<Area>& wave : waves(plan, rank, tensor)) {
    std::string line;
    for (const Area& area : wave) line += (line.empty() ? "" : " ") + to_string(plan, area);
    lines.push_back(line);
  }
  return lines;
}

/// The known answer of Syncopate's artifact: an all-gather by pulling of a (16, 2) tensor over 4
/// ranks, as rank 2 sees it.
TEST(Waves, of_a_pulled_gather_begin_with_the_own_block_and_go_round) {
  const Parameters sizes = {{"m", "16"}, {"n", "4"}, {"k", "2"}, {"transfer", "pull"}};
  EXPECT_THAT(told(make("ag-gemm/swizzle", 4, sizes), 2, 0),
              ElementsAre("a[8:12, 0:2]", "a[12:16, 0:2]", "a[0:4, 0:2]", "a[4:8, 0:2]"));
}

TEST(Waves, of_a_ring_come_from_the_left) {
  const Parameters sizes = {{"m", "16"}, {"n", "4"}, {"k", "2"}};
  EXPECT_THAT(told(make("ag-gemm/ring", 4, sizes), 2, 0),
              ElementsAre("a[8:12, 0:2]", "a[4:8, 0:2]", "a[0:4, 0:2]", "a[12:16, 0:2]"));
}

TEST(Waves, of_two_rings_hold_what_comes_at_the_same_time) {
  const Parameters sizes = {{"m", "16"}, {"n", "4"}, {"k", "2"}, {"inner", "2"}};
  EXPECT_THAT(told(make("ag-gemm/double-ring", 4, sizes), 2, 0),
              ElementsAre("a[8:12, 0:2]", "a[0:4, 0:2] a[12:16, 0:2]", "a[4:8, 0:2]"));
}

TEST(Waves, of_the_same_period_stay_together) {
  const std::vector<std::vector<Area>> all = waves(make("all-gather/direct", 3), 0, 1);
  ASSERT_EQ(all.size(), 3u);  // two from peers, then the own
  EXPECT_EQ(all[0].size(), 1u);
}

TEST(Waves, of_transfers_that_wait_for_each_other_are_refused) {
  Plan plan = make("all-gather/ring", 3);
  plan.codes[0].streams[0].items.pop_back();
  plan.codes[0].streams[0].items.erase(plan.codes[0].streams[0].items.begin());
  std::get<Transfer>(plan.codes[0].streams[0].items[0]).after = {
      {neighbour(-1, 3), 0, constant(0), {}}};
  EXPECT_THROW(waves(plan, 0, 1), Failure);
}

}  // namespace
}  // namespace hemiola::plan
