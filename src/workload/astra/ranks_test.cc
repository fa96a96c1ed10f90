// What ranks do with their nodes in the ASTRA-sim model.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/testing/failure.h"
#include "workload/astra/astra.h"
#include "workload/testing/astra.h"

namespace hemiola::workload {
namespace {

using hemiola::test::message_of;
using test::astra_link_ns;
using test::astra_ring;
using Topology = AstraNetwork::Topology;

/// A workload in the making: nodes of a rank, in the order of their ids from 1 on.
class Draft {
 public:
  explicit Draft(int ranks) : builder_("draft", ranks), traces_(static_cast<std::size_t>(ranks)) {
    stream_ = builder_.stream("any", false);
  }

  WorkloadBuilder& builder() { return builder_; }
  /// After nodes of the rank, by number from 0 on.
  std::uint32_t add(int rank, Node node, const std::vector<std::uint32_t>& after = {}) {
    Trace& trace = traces_[static_cast<std::size_t>(rank)];
    node.id = trace.nodes.size() + 1;
    if (node.name == 0) node.name = builder_.name(std::string(name_of(node.kind)));
    if (!in_order_) node.stream = stream_;
    node.first_dependency = static_cast<std::uint32_t>(trace.dependencies.size());
    node.dependencies = static_cast<std::uint32_t>(after.size());
    trace.dependencies.insert(trace.dependencies.end(), after.begin(), after.end());
    trace.nodes.push_back(node);
    return static_cast<std::uint32_t>(trace.nodes.size() - 1);
  }
  Node kernel(Time recorded) { return {.kind = NodeKind::compute, .recorded = recorded}; }
  Node kernel(std::int64_t flop, std::int64_t bytes) {
    return {.kind = NodeKind::compute, .work = builder_.compute({.flop = flop, .read = bytes})};
  }
  Node message(NodeKind kind, int from, int to, std::int64_t bytes, int tag = 0) {
    const std::int32_t family = builder_.family("pair", {{std::min(from, to), std::max(from, to)}});
    return {.kind = kind, .work = builder_.message({family, from < to, bytes, tag})};
  }
  void keep_streams() { in_order_ = true; }
  Workload take() {
    for (std::size_t r = 0; r < traces_.size(); ++r)
      builder_.workload().classes.push_back({"rank " + std::to_string(r),
                                             std::make_shared<const Trace>(traces_[r]),
                                             {static_cast<int>(r)}});
    return builder_.take();
  }

 private:
  WorkloadBuilder builder_;
  std::vector<Trace> traces_;
  std::uint16_t stream_ = 0;
  bool in_order_ = false;
};

AstraConfiguration with_roofline(int npus) {
  AstraConfiguration configuration = astra_ring(npus);
  configuration.system.roofline = true;
  return configuration;
}

TEST(AstraRanks, KernelsTakeWhatWasRecordedAndOneAtATime) {
  Draft draft(2);
  draft.add(0, draft.kernel(Time::from_us(3)));
  draft.add(0, draft.kernel(Time::from_us(4)));
  draft.add(0, {.kind = NodeKind::host, .recorded = Time::from_us(5)});
  const AstraResult result = run_astra(draft.take(), astra_ring(2));
  EXPECT_EQ(result.ranks[0].finish_ns, 7'000);
  EXPECT_EQ(result.ranks[0].compute_ns, 7'000);
  EXPECT_EQ(result.ranks[0].host_ns, 5'000);
  EXPECT_EQ(result.ranks[0].exposed_ns, 0);
  EXPECT_EQ(result.ranks[1].finish_ns, 0);
}

TEST(AstraRanks, KernelsTakeWhatTheRooflineSays) {
  Draft draft(2);
  draft.add(0, draft.kernel(9'000'000'000, 1000));  // 900 TFLOPS: 10 us
  draft.add(1, draft.kernel(1000, 3'200'000'000));  // 1600 GB/s: 2 ms
  const AstraResult result = run_astra(draft.take(), with_roofline(2));
  EXPECT_EQ(result.ranks[0].compute_ns, 10'000);
  EXPECT_EQ(result.ranks[1].compute_ns, 1'999'999) << "cut off, by the rounding of its rate";
}

TEST(AstraRanks, ProductsWithoutFlopHaveThoseOfTheirShape) {
  Draft draft(2);
  Compute product{.kind = Compute::Kind::product, .product = {.m = 3000, .n = 3000, .k = 5000}};
  draft.add(0, {.kind = NodeKind::compute, .work = draft.builder().compute(product)});
  // 2 m n k flop at 900 TFLOPS: more than its bytes take.
  EXPECT_EQ(run_astra(draft.take(), with_roofline(2)).ranks[0].compute_ns, 100'000);
}

TEST(AstraRanks, KernelsWithoutBytesTakeNoTimeAndANoticeSaysSo) {
  Draft draft(2);
  const auto first = draft.add(0, draft.kernel(5, 0));
  draft.add(0, draft.kernel(0, 1'600'000), {first});  // its bytes alone: 1 us
  const AstraResult result = run_astra(draft.take(), with_roofline(2));
  EXPECT_EQ(result.time_ns, 1'000);
  EXPECT_EQ(result.notices.render(),
            "warning: 1 kernel: no bytes are known, and ASTRA-sim takes no time\n"
            "warning: 1 kernel: no flop are known, so the bytes alone count, where ASTRA-sim "
            "divides 0 by 0");
}

TEST(AstraRanks, WhatFollowsAKernelWithoutBytesWaitsForTheNextEnd) {
  Draft draft(2);
  const auto nothing = draft.add(0, draft.kernel(5, 0));
  draft.add(0, draft.kernel(0, 3'200'000));  // 2 us
  draft.add(0, {.kind = NodeKind::host, .recorded = Time::from_us(1)}, {nothing});
  // Not at 0: ASTRA-sim looks at it when the kernel after it ends.
  EXPECT_EQ(run_astra(draft.take(), with_roofline(2)).time_ns, 3'000);
}

TEST(AstraRanks, ComputeHidesCommunication) {
  Draft draft(2);
  const std::int32_t family = draft.builder().family("all", {{0, 1}});
  const std::int32_t call =
      draft.builder().collective({Collective::all_gather, family, 2'000'000, DataType::int8});
  for (int r = 0; r < 2; ++r) {
    draft.add(r, {.kind = NodeKind::collective, .work = call});
    draft.add(r, draft.kernel(Time::from_us(50)));
  }
  AstraConfiguration configuration = astra_ring(2);
  configuration.system.chunks = 1;
  const AstraResult result = run_astra(draft.take(), configuration);
  EXPECT_EQ(result.time_ns, 50'000);
  EXPECT_EQ(result.ranks[1].exposed_ns, 0);
  EXPECT_EQ(result.ranks[1].communication_ns, astra_link_ns(1'000'000) + 20);
}

TEST(AstraRanks, SendsGoOneAfterTheOtherAndReceivesAllAtOnce) {
  Draft draft(3);
  for (int tag = 0; tag < 2; ++tag) {
    draft.add(0, draft.message(NodeKind::send, 0, 1, 1'000'000, tag));
    draft.add(1, draft.message(NodeKind::receive, 0, 1, 1'000'000, 1 - tag));
  }
  const AstraResult result = run_astra(draft.take(), astra_ring(3));
  EXPECT_EQ(result.time_ns, 2 * astra_link_ns(1'000'000));
  EXPECT_EQ(result.messages, 2);
  ASSERT_EQ(result.works.size(), 4U);
  EXPECT_EQ(result.works[0].kind, NodeKind::send);
  EXPECT_EQ(result.works[0].bytes, 1'000'000);
  EXPECT_EQ(result.works[0].time_ns, astra_link_ns(1'000'000));
  // The receive that comes first in the trace is of the second message.
  EXPECT_EQ(result.works[3].time_ns + result.works[2].time_ns, 3 * astra_link_ns(1'000'000));
}

TEST(AstraRanks, AReceiveThatComesLateTakesNoTime) {
  Draft draft(2);
  draft.add(0, draft.message(NodeKind::send, 0, 1, 1'000));
  const auto late = draft.add(1, draft.kernel(Time::from_us(90)));
  draft.add(1, draft.message(NodeKind::receive, 0, 1, 1'000), {late});
  const AstraResult result = run_astra(draft.take(), astra_ring(2));
  EXPECT_EQ(result.ranks[0].finish_ns, astra_link_ns(1'000));
  EXPECT_EQ(result.ranks[1].finish_ns, 90'000);
}

TEST(AstraRanks, MessagesCrossALinkWholeAndInTheirOrder) {
  // On a ring of 5, from 0 to 2 and from 1 to 2: both need the link from 1 to 2.
  Draft draft(5);
  draft.add(0, draft.message(NodeKind::send, 0, 2, 1'000'000));
  draft.add(2, draft.message(NodeKind::receive, 0, 2, 1'000'000));
  const auto busy = draft.add(1, draft.kernel(Time::from_us(15)));
  draft.add(1, draft.message(NodeKind::send, 1, 2, 1'000'000), {busy});
  draft.add(2, draft.message(NodeKind::receive, 1, 2, 1'000'000));
  const Workload workload = draft.take();
  AstraConfiguration ring = astra_ring(5);
  const AstraResult unaware = run_astra(workload, ring);
  EXPECT_EQ(unaware.time_ns, 15'000 + astra_link_ns(1'000'000));
  EXPECT_EQ(unaware.ranks[0].finish_ns, astra_link_ns(1'000'000, 2));
  ring.aware = true;
  const AstraResult aware = run_astra(workload, ring);
  // The message of 1 has the link first, that of 0 comes at 19,126 and waits until 33,626.
  EXPECT_EQ(aware.ranks[1].finish_ns, 15'000 + astra_link_ns(1'000'000));
  EXPECT_EQ(aware.ranks[0].finish_ns, 15'000 + 18'626 + astra_link_ns(1'000'000));
}

TEST(AstraRanks, TheLowestIdGoesFirst) {
  Draft draft(2);
  const auto gate = draft.add(0, {.kind = NodeKind::host, .recorded = Time::from_us(1)});
  draft.add(0, draft.kernel(Time::from_us(10)));
  const auto late = draft.add(0, draft.kernel(Time::from_us(3)), {gate});
  draft.add(0, draft.kernel(Time::from_us(20)));
  draft.add(0, draft.message(NodeKind::send, 0, 1, 1'000), {late});
  draft.add(1, draft.message(NodeKind::receive, 0, 1, 1'000));
  // The third node is ready when the second ends, and before the fourth by its id.
  const AstraResult result = run_astra(draft.take(), astra_ring(2));
  EXPECT_EQ(result.ranks[1].finish_ns, 13'000 + astra_link_ns(1'000));
}

TEST(AstraRanks, StreamsInOrderAreDependenciesUnlessAssumed) {
  const auto time = [](bool in_order, bool assumed) {
    Draft draft(2);
    draft.keep_streams();
    const std::uint16_t stream = draft.builder().stream("copies", in_order);
    draft.builder().workload().streams[stream].assumed = assumed;
    Node host{.kind = NodeKind::host, .stream = stream, .recorded = Time::from_us(5)};
    draft.add(0, host);
    Node kernel = draft.kernel(Time::from_us(5));
    kernel.stream = stream;
    draft.add(0, kernel);
    return run_astra(draft.take(), astra_ring(2)).time_ns;
  };
  EXPECT_EQ(time(true, false), 10'000);
  EXPECT_EQ(time(false, false), 5'000);
  EXPECT_EQ(time(true, true), 5'000);
}

TEST(AstraRanks, ReplayTakesRecordedTimesOfEverything) {
  Draft draft(2);
  const std::int32_t family = draft.builder().family("all", {{0, 1}});
  const std::int32_t call =
      draft.builder().collective({Collective::reduce, family, 2'000'000, DataType::int8});
  draft.add(0, {.kind = NodeKind::collective, .work = call, .recorded = Time::from_us(8)});
  draft.add(0, draft.kernel(Time::from_us(50)));
  AstraConfiguration replay = astra_ring(2);
  replay.system.replay = true;
  const AstraResult result = run_astra(draft.take(), replay);
  EXPECT_EQ(result.ranks[0].finish_ns, 50'000);
  EXPECT_EQ(result.ranks[0].compute_ns, 58'000) << "as ASTRA-sim adds them up";
}

TEST(AstraRanks, BroadcastsTakeWhatWasRecorded) {
  Draft draft(2);
  const std::int32_t family = draft.builder().family("all", {{0, 1}});
  const std::int32_t call =
      draft.builder().collective({Collective::broadcast, family, 2'000'000, DataType::int8});
  draft.add(0, {.kind = NodeKind::collective, .work = call, .recorded = Time::from_us(8)});
  const AstraResult result = run_astra(draft.take(), astra_ring(2));
  EXPECT_EQ(result.time_ns, 8'000);
  EXPECT_EQ(result.notices.render(),
            "warning: 1 broadcast: the recorded time counts, as in ASTRA-sim");
}

TEST(AstraRanks, ACollectiveOfOneRankTakesNoTime) {
  Draft draft(2);
  const std::int32_t family = draft.builder().family("self", {{0}, {1}});
  const std::int32_t call =
      draft.builder().collective({Collective::all_gather, family, 2'000'000, DataType::int8});
  const auto alone = draft.add(0, {.kind = NodeKind::collective, .work = call});
  draft.add(0, draft.kernel(Time::from_us(5)), {alone});
  const AstraResult result = run_astra(draft.take(), astra_ring(2));
  EXPECT_EQ(result.time_ns, 5'000);
  EXPECT_EQ(
      result.notices.render(),
      "warning: 2 collectives: it has one rank and takes no time, where ASTRA-sim never ends");
}

class AstraMemoryAccess : public testing::TestWithParam<AstraMemory::Kind> {};

TEST_P(AstraMemoryAccess, OneAtATimeWhereAMemoryIsShared) {
  Draft draft(4);
  for (int r = 0; r < 4; ++r)
    draft.add(r, {.kind = NodeKind::memory, .work = draft.builder().compute({.read = 2'000'000})});
  AstraConfiguration configuration = astra_ring(4);
  configuration.memory = {GetParam(), 2, 2, 300, 100};  // 20 us and 300 ns each
  const std::int64_t one = 20'300;
  const AstraResult result = run_astra(draft.take(), configuration);
  const std::int64_t turns = GetParam() == AstraMemory::Kind::pool       ? 4
                             : GetParam() == AstraMemory::Kind::per_node ? 2
                                                                         : 1;
  EXPECT_EQ(result.ranks[3].finish_ns, turns * one);
  EXPECT_EQ(result.ranks[0].finish_ns, one);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AstraMemoryAccess,
                         testing::Values(AstraMemory::Kind::pool, AstraMemory::Kind::per_node,
                                         AstraMemory::Kind::per_npu));

TEST(AstraRanks, MemoryNodesNeedARemoteMemory) {
  Draft draft(2);
  draft.add(1, {.kind = NodeKind::memory, .work = draft.builder().compute({.read = 2'000'000})});
  const Workload workload = draft.take();
  EXPECT_EQ(message_of([&] { run_astra(workload, astra_ring(2)); }),
            "error: node 1 'memory' accesses a remote memory, and there is none\n"
            "  hint: NO_MEMORY_EXPANSION is for workloads without such nodes");
}

/// What a Failure of exit code 4 says.
std::string deadlock_of(const Workload& workload, const AstraConfiguration& configuration) {
  try {
    run_astra(workload, configuration);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    return failure.what();
  }
  return "no failure";
}

TEST(AstraDeadlock, ARankThatNeverJoinsIsNamed) {
  Draft draft(8);
  std::vector<int> all{0, 1, 2, 3, 4, 5, 6, 7};
  const std::int32_t family = draft.builder().family("all", {all});
  const std::int32_t call =
      draft.builder().collective({Collective::all_reduce, family, 1 << 20, DataType::float32});
  for (const int r : all)
    if (r != 3) draft.add(r, {.kind = NodeKind::collective, .work = call});
  const std::string expected =
      "error: ranks 0-2, 4-7 wait for ever in node 1 'collective': rank 3 does not join this "
      "all-reduce of 1 MiB";
  const Workload workload = draft.take();
  AstraConfiguration configuration = astra_ring(8);
  EXPECT_EQ(deadlock_of(workload, configuration), expected);
  configuration.aware = true;
  EXPECT_EQ(deadlock_of(workload, configuration), expected);
}

TEST(AstraDeadlock, AMessageThatNobodySendsIsNamed) {
  Draft draft(2);
  draft.add(1, draft.message(NodeKind::receive, 0, 1, 4096, 7));
  draft.add(0, draft.message(NodeKind::send, 0, 1, 4096, 8));
  EXPECT_EQ(deadlock_of(draft.take(), astra_ring(2)),
            "error: rank 1 waits for ever in node 1 'receive': rank 0 sends it no message of 4 KiB "
            "with tag 7");
}

TEST(AstraDeadlock, CallsInDifferentOrdersAreNamed) {
  Draft draft(2);
  const std::int32_t family = draft.builder().family("all", {{0, 1}});
  const auto call = [&](std::int64_t bytes) {
    return Node{.kind = NodeKind::collective,
                .work = draft.builder().collective(
                    {Collective::all_gather, family, bytes, DataType::int8})};
  };
  draft.add(0, call(1000));
  draft.add(0, call(2000));
  draft.add(1, call(2000));
  draft.add(1, call(1000));
  EXPECT_EQ(deadlock_of(draft.take(), astra_ring(2)),
            "error: rank 1 waits for ever in node 1 'collective': rank 0 does not join this "
            "all-gather of 2000 B\n"
            "error: rank 0 waits for ever in node 1 'collective': rank 1 does not join this "
            "all-gather of 1000 B");
}

TEST(AstraDeadlock, NodesThatWaitForEachOtherAreNamed) {
  Draft draft(2);
  draft.add(1, draft.kernel(Time::from_us(1)), {1});
  draft.add(1, {.kind = NodeKind::host}, {0});
  EXPECT_EQ(
      deadlock_of(draft.take(), astra_ring(2)),
      "error: rank 1 waits for ever in node 1 'compute': it waits for node 2 'host', and that "
      "for it");
}

}  // namespace
}  // namespace hemiola::workload
