// Ring attention: what goes round, beside what, and that it is what gathering moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/index.h"
#include "core/testing/failure.h"
#include "study/laboratory/job_run.h"
#include "workload/iteration/iteration.h"
#include "workload/iteration/job_text.h"
#include "workload/scheduler/fold.h"
#include "workload/testing/models.h"
#include "workload/testing/schedule.h"
#include "workload/testing/traces.h"
#include "workload/trace_reader.h"
#include "workload/traces/chakra/writer.h"

namespace hemiola::workload {
namespace {

using generated::bytes_called;
using generated::bytes_sent;
using generated::flop_of;
using generated::nodes_named;
using generated::tiny_gpt;
using hemiola::test::message_of;

constexpr std::int64_t kRingLayers = 4;

MakeRequest ring_of(int cp, Recompute recompute = Recompute::none) {
  Model model = tiny_gpt(kRingLayers);
  model.kv_heads = 2;
  model.sequence = 96;
  return {.model = complete(model),
          .parallelism = {.cp = cp},
          .micro_batch = 2,
          .global_batch = 6,
          .recompute = recompute,
          .context_parallel = ContextParallel::ring};
}

MakeRequest gathering(MakeRequest request) {
  request.context_parallel = ContextParallel::gather;
  return request;
}

/// Of a rank and an iteration: keys and values of two heads of 8, for its tokens of two sequences,
/// in three micro batches.
std::int64_t block_of(int cp) {
  return 3 * kRingLayers * (2 * 96 / cp) * 2 * 2 * 8 * size_of(DataType::bfloat16);
}

TEST(RingAttention, MovesKeysAndValuesOnceForwardAndTheirGradientsToo) {
  for (const int cp : {2, 3, 4, 8}) {
    const std::int64_t hops = cp - 1;
    EXPECT_EQ(bytes_sent(make_workload(ring_of(cp)), 0), hops * (1 + 2) * block_of(cp)) << cp;
    // The forward pass once more.
    for (const Recompute recompute : {Recompute::selective, Recompute::full})
      EXPECT_EQ(bytes_sent(make_workload(ring_of(cp, recompute)), 0), hops * (2 + 2) * block_of(cp))
          << cp;
    MakeRequest prefill = ring_of(cp);
    prefill.phase = Phase::prefill;
    EXPECT_EQ(bytes_sent(make_workload(prefill), 0), hops * block_of(cp)) << cp;
  }
}

TEST(RingAttention, SendsAsManyBytesAsRingsOfTheGatheringCalls) {
  for (const int cp : {2, 4}) {
    auto calls = bytes_called(make_workload(gathering(ring_of(cp))), 0, "cp");
    const std::int64_t moved = calls[Collective::all_gather] + calls[Collective::reduce_scatter];
    EXPECT_EQ(bytes_sent(make_workload(ring_of(cp)), 0), moved / cp * (cp - 1));
  }
}

TEST(RingAttention, ComputesWhatGatheringComputes) {
  const auto is_attention = [](const Node&, const Compute& compute) {
    return compute.kind == Compute::Kind::attention;
  };
  for (const bool causal : {true, false}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      MakeRequest ring = ring_of(4, recompute);
      ring.causal = causal;
      const Workload pieces = make_workload(ring), whole = make_workload(gathering(ring));
      EXPECT_GT(flop_of(whole, is_attention), 0);
      EXPECT_EQ(flop_of(pieces, is_attention), flop_of(whole, is_attention));
      EXPECT_EQ(pieces.facts->flop, whole.facts->flop);
      EXPECT_EQ(nodes_named(pieces, 0, "attention"), 4 * nodes_named(whole, 0, "attention"));
      EXPECT_EQ(nodes_named(pieces, 0, "attention backward"),
                4 * nodes_named(whole, 0, "attention backward"));
    }
  }
}

TEST(RingAttention, EveryRankSendsToTheNextOfItsGroupAndAllAreOneClass) {
  MakeRequest request = ring_of(4);
  request.parallelism = {.tp = 2, .pp = 2, .cp = 4};
  request.global_batch = 8;
  const Workload workload = make_workload(request);
  ASSERT_EQ(workload.classes.size(), 2u);
  EXPECT_EQ(workload.name, "tiny train tp2 pp2 dp1 cp4 ring");
  const auto ring = std::find_if(workload.families.begin(), workload.families.end(),
                                 [](const GroupFamily& one) { return one.name == "cp-ring"; });
  ASSERT_NE(ring, workload.families.end());
  EXPECT_TRUE(is_ring(*ring));
  ASSERT_EQ(ring->groups.size(), 16u);
  EXPECT_EQ(ring->groups[0], (std::vector<int>{0, 2}));
  EXPECT_EQ(ring->groups[3], (std::vector<int>{6, 0}));
  EXPECT_EQ(ring->groups[15], (std::vector<int>{15, 9}));
}

/// Attention takes `piece` and a message `message`; everything else next to nothing.
class RingCosts : public Costs {
 public:
  RingCosts(const Workload& workload, Time piece, Time message)
      : workload_(workload), piece_(piece), message_(message) {}
  Time alone(const LaunchKind& kind, Follows) override {
    if (kind.kind == NodeKind::send) return message_;
    if (kind.kind != NodeKind::compute) return Time{1};
    return workload_.computes[index(kind.work)].kind == Compute::Kind::attention ? piece_ : Time{1};
  }
  Time latency(const LaunchKind&) override { return {}; }
  std::vector<std::int64_t> speeds(std::int32_t, const std::vector<LaunchKind>& all) override {
    return std::vector<std::int64_t>(all.size(), kFullSpeed);
  }

 private:
  const Workload& workload_;
  Time piece_, message_;
};

TEST(RingAttention, MessagesAreHiddenAsLongAsPiecesTakeLonger) {
  for (const int cp : {2, 3, 4}) {
    MakeRequest request = ring_of(cp);
    request.phase = Phase::prefill;
    const Workload workload = make_workload(request);
    const auto time = [&](std::int64_t piece, std::int64_t message) {
      Places places(workload);
      RingCosts costs(workload, Time::from_us(piece), Time::from_us(message));
      return schedule(workload, places, costs);
    };
    const double passes = 3 * kRingLayers;
    const ScheduleResult hidden = time(10, 9);
    EXPECT_NEAR(hidden.time.us(), passes * cp * 10, 0.01) << cp;
    EXPECT_NEAR(hidden.classes[0].exposed().us(), 0, 0.01) << cp;
    // Long ones keep the next piece waiting, but for the last one, which nothing has to come for.
    const ScheduleResult late = time(10, 15);
    EXPECT_NEAR(late.time.us(), passes * (10 + (cp - 1) * 15), 0.01) << cp;
    EXPECT_NEAR(late.classes[0].exposed().us(), passes * (cp - 1) * 5, 0.01) << cp;
  }
}

TEST(RingAttention, BackwardWaitsForTheGradientsThatItAddsTo) {
  const Workload workload = make_workload(ring_of(3));
  Places places(workload);
  RingCosts costs(workload, Time::from_us(10), Time::from_us(15));
  // Forward two messages come before the last piece, backward three exchanges before the last sum.
  const double of_pass = (10 + 2 * 15) + 3 * 15;
  EXPECT_NEAR(schedule(workload, places, costs).time.us(), 3 * kRingLayers * of_pass, 0.01);
}

/// Every rank in a class of its own, every pair in a family of its own, as in traces of others.
Workload taken_apart(const Workload& from) {
  WorkloadBuilder builder(from.name, from.ranks);
  for (const Stream& stream : from.streams) builder.stream(stream.name, stream.in_order);
  Workload& to = builder.workload();
  to.names = from.names;
  to.computes = from.computes;
  for (int rank = 0; rank < from.ranks; ++rank) {
    auto trace = std::make_shared<Trace>(*from.classes.front().trace);
    for (Node& node : trace->nodes) {
      if (!is_call(node.kind)) continue;
      const auto& groups = from.families[index(call_of(from, node.kind, node.work).family)].groups;
      const bool is_message = node.kind != NodeKind::collective;
      const std::size_t side =
          is_message && (node.kind == NodeKind::send) != from.messages[index(node.work)].from_first
              ? 1
              : 0;
      const auto own = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        return is_message ? group[side] == rank
                          : std::find(group.begin(), group.end(), rank) != group.end();
      });
      std::vector<int> group = *own;
      if (is_message) {
        Message message = from.messages[index(node.work)];
        // Traces say from whom to whom.
        if (!message.from_first) std::reverse(group.begin(), group.end());
        message.from_first = true;
        message.family = builder.family("pair", {group});
        node.work = builder.message(message);
      } else {
        CollectiveCall call = from.collectives[index(node.work)];
        call.family = builder.family("group", {group});
        node.work = builder.collective(call);
      }
    }
    to.classes.push_back({"rank " + std::to_string(rank), std::move(trace), {rank}});
  }
  return builder.take();
}

TEST(RingAttention, RanksOfATraceFoldAgain) {
  const Workload made = make_workload(ring_of(4));
  const Workload apart = taken_apart(made);
  ASSERT_EQ(apart.classes.size(), 4u);
  const Workload folded = fold(apart);
  ASSERT_EQ(folded.classes.size(), 1u);
  EXPECT_NO_THROW(check(folded));
  EXPECT_EQ(test::run(folded).time, test::run(made).time);
  EXPECT_EQ(test::run(apart).time, test::run(made).time);
}

MakeRequest long_request(int cp, ContextParallel how) {
  Model model = tiny_gpt(2);
  model.hidden = 1024;
  model.head_dim = 128;
  model.intermediate = 4096;
  model.sequence = 16384;
  return {.model = complete(model),
          .parallelism = {.cp = cp},
          .micro_batch = 1,
          .global_batch = 1,
          .context_parallel = how};
}

TEST(RingAttention, ExposesLessThanGatheringWhereAttentionIsLong) {
  study::Laboratory laboratory;
  const auto run = [&](ContextParallel how) {
    return run_iteration(
        laboratory,
        {.workload = std::make_shared<const Workload>(make_workload(long_request(4, how))),
         .machine = {.name = "dgx-h100", .ranks = "4"}});
  };
  const IterationOutcome gather = run(ContextParallel::gather), ring = run(ContextParallel::ring);
  const auto exposed = [](const IterationOutcome& outcome) {
    Time sum{};
    for (const auto& [key, call] : outcome.result.classes[0].calls) {
      const std::string& family = outcome.workload->families[index(key.family)].name;
      const bool is_gathering =
          key.collective == Collective::all_gather || key.collective == Collective::reduce_scatter;
      if (family == "cp-ring" || is_gathering) sum = sum + call.exposed;
    }
    return sum;
  };
  EXPECT_GT(exposed(gather).us(), 10);
  EXPECT_LT(exposed(ring), Time{exposed(gather).fs / 4});
  EXPECT_LT(ring.result.time, gather.result.time);
}

TEST(RingAttention, ComesBackFromChakraWithTheSameTime) {
  study::Laboratory laboratory;
  const auto time = [&](Workload workload) {
    const std::string ranks = std::to_string(workload.ranks);
    return run_iteration(laboratory,
                         {.workload = std::make_shared<const Workload>(std::move(workload)),
                          .machine = {.name = "dgx-h100", .ranks = ranks}})
        .result.time;
  };
  for (const int cp : {2, 4}) {
    MakeRequest request = long_request(cp, ContextParallel::ring);
    request.sequence = 2048;
    const Workload made = make_workload(request);
    const test::Folder folder;
    write_chakra(made, folder / "w");
    const Workload read = read_workload({.path = folder / "w"});
    ASSERT_EQ(read.classes.size(), 1u);
    EXPECT_EQ(bytes_sent(read, 0), bytes_sent(made, 0));
    EXPECT_EQ(time(read), time(made)) << cp;
  }
}

TEST(RingAttention, IsNearTheLinkedJob) {
  study::Laboratory laboratory;
  MakeRequest request = long_request(3, ContextParallel::ring);
  request.sequence = 12288;
  request.phase = Phase::prefill;
  const auto workload = std::make_shared<const Workload>(make_workload(request));
  const study::MachineChoice machine{.name = "dgx-h100", .ranks = "3"};
  const IterationOutcome outcome =
      run_iteration(laboratory, {.workload = workload, .machine = machine});
  Places places(*workload);
  study::JobRequest job{.machine = machine,
                        .file = "<job>",
                        .text = job_text(*workload, places, outcome.result),
                        .check = false,
                        .alone = false};
  job.options.engine = sim::Engine::fluid;
  const Time linked = study::run_job(laboratory, job).result.time;
  EXPECT_NEAR(outcome.result.time.us() / linked.us(), 1, 0.05);
}

TEST(RingAttention, WhatHasNoRingIsRefused) {
  const auto refusal = [](const MakeRequest& request) {
    return message_of([&] { make_workload(request); });
  };
  EXPECT_EQ(refusal(ring_of(1)),
            "--context-parallel: error: no ranks divide the sequence: there is no ring\n"
            "  hint: --cp 2 or more, or gather");
  MakeRequest request = ring_of(4);
  request.attention = AttentionKernel::unfused;
  EXPECT_EQ(refusal(request),
            "--context-parallel: error: attention that keeps a matrix of scores has no pieces to "
            "go round\n  hint: --attention flash, or gather");
  EXPECT_EQ(refusal(ring_of(5)),
            "--cp: error: a sequence of 96 cannot be divided into two equal parts for each of 5 "
            "ranks\n  hint: one of 1, 2, 3, 4, 6, 8, 12, 16, 24, 48");
}

}  // namespace
}  // namespace hemiola::workload
