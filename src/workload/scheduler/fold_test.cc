#include "workload/scheduler/fold.h"

#include <gtest/gtest.h>

#include "workload/testing/schedule.h"

namespace hemiola::workload {
namespace {

/// Four ranks, a process group for each pair: two tensor-parallel pairs, two data-parallel ones.
Workload four_ranks(std::int64_t last_kernel) {
  WorkloadBuilder builder("four", 4);
  const std::int32_t tp[] = {builder.family("tp 0", {{0, 1}}), builder.family("tp 1", {{2, 3}})};
  const std::int32_t dp[] = {builder.family("dp 0", {{0, 2}}), builder.family("dp 1", {{1, 3}})};
  for (int rank = 0; rank < 4; ++rank) {
    test::TraceWriter trace(builder);
    const auto kernel = trace.compute("kernel", rank == 3 ? last_kernel : 10);
    const auto call = trace.call("tp", tp[rank / 2], 5, {kernel}, "tp");
    trace.call("dp", dp[rank % 2], 7, {call}, "dp");
    trace.finish({rank});
  }
  return builder.take();
}

TEST(Fold, RanksThatDoTheSameBecomeOneClassWithFamiliesOfGroups) {
  const Workload folded = fold(four_ranks(10));
  ASSERT_EQ(folded.classes.size(), 1u);
  EXPECT_EQ(folded.classes[0].ranks, (std::vector<int>{0, 1, 2, 3}));
  ASSERT_EQ(folded.families.size(), 2u);
  EXPECT_EQ(folded.families[0].groups, (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  EXPECT_EQ(folded.families[1].groups, (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(folded.collectives.size(), 2u);
  EXPECT_NO_THROW(check(folded));
}

TEST(Fold, TheTimeIsWhatItWas) {
  const Workload workload = four_ranks(10);
  EXPECT_EQ(test::run(fold(workload)).time, test::run(workload).time);
  EXPECT_EQ(test::run(workload).time, test::FixedCosts::us(22));
}

TEST(Fold, ARankThatDoesSomethingElseStaysApart) {
  const Workload workload = four_ranks(30);
  const Workload folded = fold(workload);
  ASSERT_EQ(folded.classes.size(), 2u);
  EXPECT_EQ(folded.classes[1].ranks, (std::vector<int>{3}));
  EXPECT_NO_THROW(check(folded));
  EXPECT_EQ(test::run(folded).time, test::run(workload).time);
}

TEST(Fold, ARingOfPairsIsOneClassInWhichEachSendsToTheNext) {
  // Every rank is in two of them, as the first and as the second.
  WorkloadBuilder builder("ring", 3);
  std::vector<std::int32_t> pairs;
  for (int rank = 0; rank < 3; ++rank)
    pairs.push_back(builder.family("pair", {{rank, (rank + 1) % 3}}));
  for (int rank = 0; rank < 3; ++rank) {
    test::TraceWriter trace(builder);
    trace.send(pairs[static_cast<std::size_t>(rank)], 4);
    trace.receive(pairs[static_cast<std::size_t>((rank + 2) % 3)], 4);
    trace.finish({rank});
  }
  const Workload workload = builder.take();
  const Workload folded = fold(workload);
  ASSERT_EQ(folded.classes.size(), 1u);
  ASSERT_EQ(folded.families.size(), 1u);
  EXPECT_TRUE(is_ring(folded.families.front()));
  EXPECT_NO_THROW(check(folded));
  EXPECT_EQ(test::run(folded).time, test::FixedCosts::us(4));
  EXPECT_EQ(test::run(workload).time, test::FixedCosts::us(4));
}

TEST(Fold, StagesOfAChainDoTheSameAtOtherTimes) {
  // All but the ends receive from the one before and send to the next.
  WorkloadBuilder builder("chain", 10);
  std::vector<std::int32_t> pairs;
  for (int stage = 0; stage < 4; ++stage)
    pairs.push_back(builder.family("pair", {{stage, stage + 1}, {stage + 5, stage + 6}}));
  for (int rank = 0; rank < 10; ++rank) {
    const auto stage = static_cast<std::size_t>(rank % 5);
    test::TraceWriter trace(builder);
    std::vector<std::uint32_t> received;
    if (stage > 0) received.push_back(trace.receive(pairs[stage - 1], 4));
    const auto kernel = trace.compute("kernel", 10, received);
    if (stage < 4) trace.send(pairs[stage], 4, {kernel});
    trace.finish({rank});
  }
  const Workload workload = builder.take();
  const Workload folded = fold(workload);
  EXPECT_EQ(folded.classes.size(), 5u) << "a stage of one chain is as that of the other";
  EXPECT_EQ(test::run(folded).time, test::run(workload).time);
}

TEST(Fold, GroupsOfCollectivesThatWouldOverlapAreLeftAsTheyAre) {
  WorkloadBuilder builder("ring", 3);
  std::vector<std::int32_t> pairs;
  for (int rank = 0; rank < 3; ++rank)
    pairs.push_back(builder.family("pair", {{rank, (rank + 1) % 3}}));
  for (int rank = 0; rank < 3; ++rank) {
    test::TraceWriter trace(builder);
    trace.call("call", pairs[static_cast<std::size_t>(rank)], 4, {}, "a");
    trace.call("call", pairs[static_cast<std::size_t>((rank + 2) % 3)], 4, {}, "b");
    trace.finish({rank});
  }
  EXPECT_EQ(fold(builder.take()).classes.size(), 3u);
}

}  // namespace
}  // namespace hemiola::workload
