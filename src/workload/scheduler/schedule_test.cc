#include "workload/scheduler/schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "core/testing/failure.h"
#include "workload/testing/schedule.h"

namespace hemiola::workload {
namespace {

using test::FixedCosts;
using test::run;
using test::TraceWriter;

Time us(std::int64_t count) {
  return FixedCosts::us(count);
}

std::string failure_of(const Workload& workload, ExitCode code) {
  try {
    run(workload);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code);
    return failure.diagnostics().items().front().message;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Schedule, RunsAStreamsNodesOneAfterTheOtherAndStreamsAtOnce) {
  WorkloadBuilder builder("two streams", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  TraceWriter trace(builder);
  const auto first = trace.compute("first", 10);
  trace.compute("second", 20);
  trace.call("reduce", all, 15, {first});
  trace.finish({0, 1});
  const ScheduleResult result = run(builder.take());
  EXPECT_EQ(result.time, us(30));
  EXPECT_EQ(result.nodes[0][2].begin, us(10));
  EXPECT_EQ(result.nodes[0][2].end, us(25));
  const ClassTime& times = result.classes[0];
  EXPECT_EQ(times.compute, us(30));
  EXPECT_EQ(times.hidden, us(15));
  EXPECT_EQ(times.exposed(), us(0));
}

TEST(Schedule, SaysWhatCommunicationIsExposedAndForWhom) {
  WorkloadBuilder builder("exposed", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  TraceWriter trace(builder);
  const auto first = trace.compute("first", 10);
  const auto reduce = trace.call("reduce", all, 15, {first});
  trace.compute("second", 20, {reduce});
  trace.finish({0, 1});
  const ScheduleResult result = run(builder.take());
  EXPECT_EQ(result.time, us(45));
  const CallKey key{NodeKind::collective, Collective::all_reduce, all};
  EXPECT_EQ(result.classes[0].calls.at(key).exposed, us(15));
  EXPECT_EQ(result.classes[0].calls.at(key).calls, 1);
  EXPECT_EQ(result.classes[0].idle, us(0));
}

TEST(Schedule, ACollectiveWaitsForItsLastRankAndChargesTheOthersWithWaiting) {
  WorkloadBuilder builder("late", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  for (int rank = 0; rank < 2; ++rank) {
    TraceWriter trace(builder);
    const auto before = trace.compute("before", rank == 0 ? 10 : 40);
    trace.call("reduce", all, 5, {before});
    trace.finish({rank});
  }
  const Workload workload = builder.take();
  const ScheduleResult result = run(workload);
  EXPECT_EQ(result.time, us(45));
  EXPECT_EQ(result.classes[0].waiting(), us(30));
  EXPECT_EQ(result.classes[1].waiting(), us(0));
  EXPECT_EQ(result.meetings.at(0).last_class, 1);
  // The path leads through the rank that came last.
  const std::vector<PathStep> path = critical_path(workload, result);
  ASSERT_EQ(path.size(), 2u);
  EXPECT_EQ(path[0].rank_class, 1);
  EXPECT_EQ(path[0].node, 0u);
  EXPECT_EQ(path[1].node, 1u);
}

TEST(Schedule, LaunchesBesideEachOtherGoAtTheSpeedOfTheirSituation) {
  WorkloadBuilder builder("beside", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  TraceWriter trace(builder);
  trace.compute("product", 30);
  trace.call("reduce", all, 10);
  trace.finish({0, 1});
  const ScheduleResult result = run(builder.take(), kFullSpeed / 2);
  // Both at half speed until the collective ends after 20 us; 20 us of the product are left.
  EXPECT_EQ(result.nodes[0][1].end, us(20));
  EXPECT_EQ(result.time, us(40));
  EXPECT_EQ(result.classes[0].slowed, us(10));
  EXPECT_EQ(result.situations, 1);
}

TEST(Schedule, MessagesGoFromStageToStage) {
  WorkloadBuilder builder("pipeline", 4);
  const std::int32_t pairs = builder.family("pp", {{0, 2}, {1, 3}});
  TraceWriter first(builder);
  std::vector<std::uint32_t> work;
  for (int i = 0; i < 3; ++i) {
    const auto forward = first.compute("forward", 10);
    first.send(pairs, 2, {forward});
  }
  first.finish({0, 1});
  TraceWriter second(builder);
  for (int i = 0; i < 3; ++i) second.compute("forward", 10, {second.receive(pairs, 2)});
  second.finish({2, 3});
  const ScheduleResult result = run(builder.take());
  EXPECT_EQ(result.time, us(10 + 2 + 10 + 10 + 10));
  EXPECT_EQ(result.classes[1].waiting(), us(10));
  EXPECT_EQ(result.classes[1].exposed(), us(2));
}

TEST(Schedule, AClassMaySendToItself) {
  WorkloadBuilder builder("ring", 2);
  const std::int32_t pairs = builder.family("pairs", {{0, 1}});
  const std::int32_t back = builder.family("back", {{1, 0}});
  TraceWriter trace(builder);
  trace.send(pairs, 3);
  trace.receive(back, 3);
  trace.finish({0});
  TraceWriter other(builder);
  other.receive(pairs, 3);
  other.send(back, 3);
  other.finish({1});
  EXPECT_EQ(run(builder.take()).time, us(3));
}

TEST(Schedule, TheCpuRunsAheadAndIsWaitedForWhereItIsSlow) {
  WorkloadBuilder builder("cpu", 1);
  TraceWriter trace(builder);
  for (int i = 0; i < 4; ++i) {
    const auto node = trace.compute("kernel", i == 0 ? 10 : 1);
    trace.node(node).host = us(4);
  }
  trace.finish({0});
  const ScheduleResult result = run(builder.take());
  // Launched at 4, 8, 12 and 16 us: the first ends at 14, the second at 15, the third at 16.
  EXPECT_EQ(result.nodes[0][0].begin, us(4));
  EXPECT_EQ(result.nodes[0][2].end, us(16));
  EXPECT_EQ(result.time, us(17));
  EXPECT_EQ(result.classes[0].host, us(4));
}

TEST(Schedule, TheCpuWaitsWhereItSynchronises) {
  WorkloadBuilder builder("cpu", 1);
  TraceWriter trace(builder);
  const auto kernel = trace.compute("kernel", 10);
  trace.node(kernel).host = us(1);
  const auto wait = trace.add("synchronise", NodeKind::host, builder.stream("cpu"), -1, {kernel});
  trace.node(wait).host = us(2);
  const auto next = trace.compute("kernel", 10);
  trace.node(next).host = us(1);
  trace.finish({0});
  const ScheduleResult result = run(builder.take());
  EXPECT_EQ(result.nodes[0][1].end, us(13));
  EXPECT_EQ(result.time, us(24));
}

TEST(Schedule, WhatIsLeftOutTakesNoTime) {
  WorkloadBuilder builder("without", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  TraceWriter trace(builder);
  const auto reduce = trace.call("reduce", all, 15);
  trace.compute("second", 20, {reduce});
  trace.finish({0, 1});
  const Workload workload = builder.take();
  EXPECT_EQ(run(workload, kFullSpeed, {.without = {Collective::all_reduce}}).time, us(20));
  EXPECT_EQ(run(workload, kFullSpeed, {.compute_permille = 500}).time, us(25));
}

TEST(Schedule, AKernelOfWhichNothingIsKnownTakesNoTime) {
  // Its costs are never asked for: there is nothing to ask with.
  for (const ComputeSource source :
       {ComputeSource::automatic, ComputeSource::recorded, ComputeSource::model}) {
    WorkloadBuilder builder("unknown", 1);
    TraceWriter trace(builder);
    const auto first = trace.compute("known", 20);
    const auto unknown =
        trace.add("unknown", NodeKind::compute, builder.stream("compute"), -1, {first});
    trace.add("copy", NodeKind::memory, builder.stream("copies"), -1, {unknown});
    trace.finish({0});
    const ScheduleResult result = run(builder.take(), kFullSpeed, {.compute = source});
    EXPECT_EQ(result.nodes[0][1].begin, us(20));
    EXPECT_EQ(result.nodes[0][1].end, us(20));
    EXPECT_EQ(result.time, us(20));
  }
}

TEST(Schedule, WhatWasRecordedCountsWhereItIsAskedForOrNothingElseIsKnown) {
  Workload workload;
  workload.computes = {{.flop = 1}, {.read = 1, .concluded = true}, {}};
  const auto from = [&](const Node& node, ComputeSource source) {
    return time_from(workload, node, source);
  };
  Node shape{.kind = NodeKind::compute, .work = 0}, time{.kind = NodeKind::compute};
  time.recorded = us(1);
  Node both = shape;
  both.recorded = us(1);
  EXPECT_EQ(from(both, ComputeSource::automatic), TimeFrom::work);
  EXPECT_EQ(from(both, ComputeSource::recorded), TimeFrom::recorded);
  EXPECT_EQ(from(both, ComputeSource::model), TimeFrom::work);
  EXPECT_EQ(from(shape, ComputeSource::recorded), TimeFrom::work);
  EXPECT_EQ(from(time, ComputeSource::automatic), TimeFrom::recorded);
  EXPECT_EQ(from(time, ComputeSource::model), TimeFrom::nothing);
  // Bytes that are concluded come behind what was recorded; nothing to do takes no time.
  both.work = 1;
  EXPECT_EQ(from(both, ComputeSource::automatic), TimeFrom::recorded);
  EXPECT_EQ(from(both, ComputeSource::model), TimeFrom::work);
  shape.work = 2;
  EXPECT_EQ(from(shape, ComputeSource::automatic), TimeFrom::nothing);
}

TEST(Schedule, ARankThatNeverCallsIsNamed) {
  WorkloadBuilder builder("stuck", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  TraceWriter first(builder);
  first.call("reduce", all, 5);
  first.finish({0});
  TraceWriter second(builder);
  second.compute("kernel", 5);
  second.finish({1});
  EXPECT_EQ(failure_of(builder.take(), ExitCode::deadlock),
            "rank 0's node 0 'reduce' waits for ever for rank 1 to call it, too");
}

TEST(Schedule, ASendWithoutAReceiveIsNamed) {
  WorkloadBuilder builder("stuck", 2);
  const std::int32_t pairs = builder.family("pairs", {{0, 1}});
  TraceWriter first(builder);
  first.send(pairs, 5);
  first.finish({0});
  TraceWriter second(builder);
  second.compute("kernel", 5);
  second.finish({1});
  EXPECT_EQ(failure_of(builder.take(), ExitCode::deadlock),
            "rank 0's node 0 'send' (send) waits for ever for the receive of rank 1");
}

TEST(Schedule, NodesInACircleAreNamed) {
  WorkloadBuilder builder("circle", 1);
  TraceWriter trace(builder);
  trace.compute("a", 1, {1});
  trace.compute("b", 1);
  trace.finish({0});
  EXPECT_EQ(failure_of(builder.take(), ExitCode::deadlock),
            "nodes wait for each other in a circle: rank 0's node 0 'a' after rank 0's node 1 'b' "
            "after rank 0's node 0 'a'");
}

TEST(Schedule, CallsThatMeetAndDifferAreWrong) {
  WorkloadBuilder builder("differ", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  for (int rank = 0; rank < 2; ++rank) {
    TraceWriter trace(builder);
    trace.call("reduce", all, 5 + rank);
    trace.finish({rank});
  }
  EXPECT_EQ(failure_of(builder.take(), ExitCode::wrong_program),
            "rank 0's node 0 'reduce' calls all-reduce of 5 B where rank 1's node 0 'reduce' calls "
            "all-reduce of 6 B");
}

/// Every class does random work; the calls of all are in the same order.
Workload random_workload(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t most) { return random() % most; };
  const int ranks = static_cast<int>(2 + below(4));
  WorkloadBuilder builder("random", ranks);
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  const std::int32_t family = builder.family("all", {all});
  const auto calls = static_cast<int>(below(5));
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < calls; ++i) sizes.push_back(static_cast<std::int64_t>(1 + below(20)));
  for (int rank = 0; rank < ranks; ++rank) {
    TraceWriter trace(builder);
    for (int i = 0; i < calls; ++i) {
      std::vector<std::uint32_t> after;
      for (std::uint64_t k = below(4); k > 0; --k)
        after = {trace.compute("kernel", static_cast<std::int64_t>(1 + below(30)))};
      trace.call("call", family, sizes[static_cast<std::size_t>(i)], after);
    }
    trace.compute("last", 3);
    trace.finish({rank});
  }
  return builder.take();
}

TEST(Schedule, ReasonsSumToTheTimeAndThePathExplainsIt) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = random_workload(seed);
    const ScheduleResult result =
        run(workload, kFullSpeed - static_cast<std::int64_t>(seed) * 1000);
    for (const ClassTime& times : result.classes) {
      const Time sum = times.compute + times.memory + times.host + times.idle + times.exposed() +
                       times.waiting();
      EXPECT_EQ(sum, result.time) << "seed " << seed;
    }
    Time end{};
    for (const PathStep& step : critical_path(workload, result)) {
      const NodeTimes& node = result.nodes[static_cast<std::size_t>(step.rank_class)][step.node];
      EXPECT_EQ(node.begin, end) << "seed " << seed;
      end = node.end;
    }
    EXPECT_EQ(end, result.time) << "seed " << seed;
  }
}

}  // namespace
}  // namespace hemiola::workload
