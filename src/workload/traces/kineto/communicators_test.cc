// Groups of ranks that older Kineto traces do not name.
#include "workload/traces/kineto/communicators.h"

#include <gtest/gtest.h>

#include "core/diagnostics.h"

namespace hemiola::workload {
namespace {

UnnamedCall gather(std::int64_t share, std::int64_t whole) {
  return {.kind = TorchCallKind::all_gather, .sent = share, .received = whole};
}
UnnamedCall reduce(std::int64_t elements, std::int64_t begin = 0, std::int64_t end = 10'000) {
  return {.kind = TorchCallKind::all_reduce, .sent = elements, .begin = begin, .end = end};
}
CommunicatorsOfRank of_rank(int rank, int world, std::vector<Communicator> communicators) {
  return {.rank = rank, .world = world, .unnamed = std::move(communicators)};
}

TEST(Communicators, SharesTellTheSize) {
  const auto found =
      infer_groups({of_rank(9, 16, {{20, {reduce(5)}}, {30, {gather(8, 64), gather(3, 24)}}})});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].known.at(30).ranks, (std::vector{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_NE(found[0].known.at(30).inferred.find("so there are 8 ranks"), std::string::npos);
  // The lowest stream is the default group's.
  EXPECT_TRUE(found[0].known.at(20).ranks.empty());
  EXPECT_EQ(found[0].known.at(20).size, 16);
}

TEST(Communicators, SharesThatContradictEachOtherAreRefused) {
  EXPECT_THROW(infer_groups({of_rank(0, 8, {{7, {gather(8, 64), gather(8, 32)}}})}), Failure);
  EXPECT_THROW(infer_groups({of_rank(0, 4, {{7, {gather(8, 64)}}})}), Failure)
      << "of a job of four";
}

TEST(Communicators, ACallMaySayHowManyRanksThereAre) {
  UnnamedCall call = reduce(5);
  call.size = 4;
  const auto found = infer_groups({of_rank(5, 16, {{7, {call}}})});
  EXPECT_EQ(found[0].known.at(7).ranks, (std::vector{4, 5, 6, 7}));
  UnnamedCall other = gather(8, 64);
  other.size = 4;
  EXPECT_THROW(infer_groups({of_rank(0, 16, {{7, {other}}})}), Failure);
  // NCCL launches no kernel for a group of one rank: equal shares say nothing.
  EXPECT_TRUE(infer_groups({of_rank(0, 0, {{7, {gather(8, 8)}}})})[0].problem);
}

TEST(Communicators, WhatIsGivenIsNotInferred) {
  Communicator given{7, {gather(8, 64), gather(8, 32)}, true};
  const auto found = infer_groups({of_rank(0, 8, {given})});
  EXPECT_TRUE(found[0].known.empty());
  EXPECT_FALSE(found[0].problem);
}

TEST(Communicators, OfOthersNothingIsKnown) {
  const auto found = infer_groups({of_rank(0, 16, {{20, {reduce(5)}}, {40, {reduce(7)}}})});
  EXPECT_FALSE(found[0].known.contains(40));
  ASSERT_TRUE(found[0].problem);
  EXPECT_EQ(*found[0].problem, "nothing says which ranks the 1 call on stream 40 is among");
  // Without a number of ranks not even one communicator is known.
  EXPECT_TRUE(infer_groups({of_rank(0, 0, {{20, {reduce(5)}}})})[0].problem);
}

TEST(Communicators, RanksWhoseCallsAgreeAndOverlapAreOneGroup) {
  // Two pairs call the same; the calls of one pair are over before those of the other begin.
  std::vector<CommunicatorsOfRank> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    const std::int64_t late = rank / 2 * 1'000'000;
    ranks.push_back(of_rank(
        rank, 4,
        {{20 + rank, {reduce(9, 0, 50'000)}}, {40 + rank, {reduce(5, late, late + 50'000)}}}));
  }
  const auto found = infer_groups(ranks);
  EXPECT_EQ(found[0].known.at(20).ranks, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(found[3].known.at(23).ranks, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(found[0].known.at(40).ranks, (std::vector{0, 1}));
  EXPECT_EQ(found[3].known.at(43).ranks, (std::vector{2, 3}));
  // Whatever a rank calls its stream, the group has one name.
  EXPECT_EQ(found[3].known.at(43).name, found[0].known.at(40).name);
}

}  // namespace
}  // namespace hemiola::workload
