// The scheduler above the engines beside the linked simulation of the same launches.
#include "workload/iteration/iteration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/testing/failure.h"
#include "core/testing/long_tests.h"
#include "study/laboratory/job_run.h"
#include "workload/iteration/job_text.h"
#include "workload/testing/schedule.h"

namespace hemiola::workload {
namespace {

using hemiola::test::message_of;

class RealTrace {
 public:
  RealTrace(WorkloadBuilder& builder, std::int32_t family)
      : builder_(builder), family_(family), trace_(builder) {}

  std::uint32_t product(std::int64_t m, std::int64_t n, std::int64_t k,
                        const std::vector<std::uint32_t>& after = {}) {
    Compute compute{.kind = Compute::Kind::product};
    compute.product = {.m = m, .n = n, .k = k};
    return trace_.add("product", NodeKind::compute, builder_.stream("compute"),
                      builder_.compute(compute), after);
  }
  std::uint32_t kernel(std::int64_t bytes, const std::vector<std::uint32_t>& after = {}) {
    return trace_.add("kernel", NodeKind::compute, builder_.stream("compute"),
                      builder_.compute({.read = bytes, .written = bytes}), after);
  }
  std::uint32_t call(Collective kind, std::int64_t bytes,
                     const std::vector<std::uint32_t>& after = {}) {
    return trace_.call("call", family_, bytes, after, "comm", kind);
  }
  void finish(std::vector<int> ranks) { trace_.finish(std::move(ranks)); }

 private:
  WorkloadBuilder& builder_;
  std::int32_t family_;
  test::TraceWriter trace_;
};

struct Both {
  double scheduled = 0, linked = 0;
  double error() const { return scheduled / linked - 1; }
};

Both both(Workload made, const std::string& machine) {
  study::Laboratory laboratory;
  const auto workload = std::make_shared<const Workload>(std::move(made));
  study::MachineChoice choice{.name = machine, .ranks = std::to_string(workload->ranks)};
  const IterationOutcome outcome =
      run_iteration(laboratory, {.workload = workload, .machine = choice});
  Places places(*workload);
  const std::string text = job_text(*workload, places, outcome.result);
  study::JobRequest request{
      .machine = choice, .file = "<job>", .text = text, .check = false, .alone = false};
  request.options.engine = sim::Engine::fluid;
  const study::Outcome linked = study::run_job(laboratory, request);
  return {static_cast<double>(outcome.result.time.fs), static_cast<double>(linked.result.time.fs)};
}

/// Four ranks of one class; `write` fills the trace.
template <class Write>
Workload four(const Write& write) {
  WorkloadBuilder builder("four", 4);
  RealTrace trace(builder, builder.family("all", {{0, 1, 2, 3}}));
  write(trace);
  trace.finish({0, 1, 2, 3});
  return builder.take();
}

/// Layers of a product, a call and a kernel, one after the other.
Workload serial(Collective kind, std::int64_t bytes, std::int64_t kernel, int layers) {
  return four([&](RealTrace& trace) {
    std::uint32_t last = trace.product(1024, 2048, 1024);
    for (int layer = 0; layer < layers; ++layer) {
      last = trace.call(kind, bytes, {last});
      last = trace.kernel(kernel, {last});
      last = trace.product(2048, 1024, 1024, {last});
    }
  });
}

// The first two calls of a communicator find all slots of its FIFOs free and look at no credits; in
// an iteration all calls take what the later ones do.
TEST(Iteration, WithoutOverlapTheTimeIsThatOfTheLinkedJob) {
  constexpr double kCredits = 2 * 0.2e9;  // fs
  for (const char* machine : {"dgx-h100", "mi300x-8"}) {
    const auto compare = [&](const Workload& workload) {
      const Both times = both(workload, machine);
      EXPECT_NEAR(times.scheduled, times.linked, 0.001 * times.linked + kCredits) << machine;
    };
    compare(serial(Collective::all_reduce, 4 << 20, 4 << 20, 2));
    compare(serial(Collective::all_gather, 256 << 10, 32 << 20, 2));
    compare(serial(Collective::reduce_scatter, 8 << 20, 64 << 10, 4));
    compare(serial(Collective::all_to_all, 1 << 20, 1 << 20, 1));
  }
}

TEST(Iteration, WithOverlapItIsNearTheLinkedJob) {
  std::vector<double> errors;
  const auto compare = [&](const Workload& workload, const char* machine) {
    errors.push_back(std::abs(both(workload, machine).error()));
    EXPECT_LT(errors.back(), 0.15) << workload.name << " on " << machine;
  };
  // Large calls take most of the time of this test.
  for (const char* machine : {"dgx-h100", "mi300x-8"}) {
    for (const std::int64_t bytes :
         some_or_all<std::vector<std::int64_t>>({2 << 20}, {2 << 20, 16 << 20})) {
      // Gradients beside the backward pass.
      compare(four([&](RealTrace& trace) {
                for (int layer = 0; layer < 4; ++layer) {
                  const auto product = trace.product(2048, 1024, 2048);
                  trace.call(Collective::all_reduce, bytes, {product});
                }
              }),
              machine);
      // Parameters gathered ahead.
      compare(four([&](RealTrace& trace) {
                std::vector<std::uint32_t> gathers;
                for (int layer = 0; layer < 4; ++layer)
                  gathers.push_back(trace.call(Collective::all_gather, bytes));
                for (int layer = 0; layer < 4; ++layer)
                  trace.product(2048, 2048, 1024, {gathers[static_cast<std::size_t>(layer)]});
              }),
              machine);
      // A kernel that takes all of the memory's rate.
      compare(four([&](RealTrace& trace) {
                trace.call(Collective::reduce_scatter, bytes);
                for (int i = 0; i < 4; ++i) trace.kernel(8 << 20);
              }),
              machine);
    }
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[errors.size() / 2], 0.05);
}

// In a job all pairs of ranks count: beside a kernel, neighbours stand for a large group.
TEST(Iteration, WhatAFifoHoldsIsCopiedOutAndNotSentAgain) {
  WorkloadBuilder builder("late", 2);
  const std::int32_t pair = builder.family("pair", {{0, 1}});
  test::TraceWriter sender(builder), receiver(builder);
  sender.send(pair, 1 << 20);
  sender.finish({0});
  const std::uint32_t kernel =
      receiver.add("kernel", NodeKind::compute, builder.stream("compute"),
                   builder.compute({.read = 64 << 20, .written = 64 << 20}), {});
  receiver.receive(pair, 1 << 20, {kernel});
  receiver.finish({1});
  const auto workload = std::make_shared<const Workload>(builder.take());
  study::Laboratory laboratory;
  const IterationOutcome outcome = run_iteration(
      laboratory, {.workload = workload, .machine = {.name = "dgx-h100", .ranks = "2"}});
  const NodeTimes& send = outcome.result.nodes[0][0];
  const NodeTimes& receive = outcome.result.nodes[1][1];
  EXPECT_EQ(receive.begin, outcome.result.nodes[1][0].end);
  EXPECT_LT((receive.end - receive.begin).fs * 2, (send.end - send.begin).fs)
      << "memory is faster than a link";
  Places places(*workload);
  const std::string text = job_text(*workload, places, outcome.result);
  const std::size_t sent = text.find("auto/nccl");
  EXPECT_NE(sent, std::string::npos);
  EXPECT_EQ(text.find("auto/nccl", sent + 1), std::string::npos) << text;
  EXPECT_LT(std::abs(both(*workload, "dgx-h100").error()), 0.1);
}

TEST(Iteration, BesideAKernelALargeGroupIsRepresentedByNeighbours) {
  WorkloadBuilder builder("large", 128);
  std::vector<int> all(128);
  std::iota(all.begin(), all.end(), 0);
  RealTrace trace(builder, builder.family("all", {all}));
  trace.call(Collective::all_to_all, 4 << 20);
  for (int i = 0; i < 4; ++i) trace.product(4096, 4096, 4096);
  trace.finish(all);
  std::vector<std::string> simulated;
  IterationRequest request{.workload = std::make_shared<const Workload>(builder.take()),
                           .machine = {.name = "dgx-h100:16"}};
  request.costs.on_simulation = [&](const std::string& text) { simulated.push_back(text); };
  study::Laboratory laboratory;
  const IterationOutcome outcome = run_iteration(laboratory, request);
  const auto has = [&](const char* text) {
    return std::find(simulated.begin(), simulated.end(), text) != simulated.end();
  };
  EXPECT_TRUE(has("all-to-all of 4 MiB on 128 GPUs"));
  EXPECT_TRUE(has("all-to-all of 4 MiB beside product 4096x4096x4096 on 32 GPUs"));
  EXPECT_GT(outcome.result.time, outcome.calls.front().alone);
}

TEST(Iteration, AMachineOfAnotherSizeIsRefused) {
  const auto workload = std::make_shared<const Workload>(
      four([](RealTrace& trace) { trace.product(128, 128, 128); }));
  study::Laboratory laboratory;
  EXPECT_EQ(message_of([&] {
              run_iteration(laboratory, {.workload = workload, .machine = {.name = "dgx-h100"}});
            }),
            "--machine: error: four has 4 ranks, and dgx-h100 has 8 GPUs\n"
            "  hint: say which GPUs they are: --ranks 4");
}

TEST(Iteration, FasterLinksAndFewerCallsAreFaster) {
  const auto workload = std::make_shared<const Workload>(four([](RealTrace& trace) {
    const auto product = trace.product(1024, 1024, 1024);
    trace.call(Collective::all_gather, 16 << 20, {product});
  }));
  study::Laboratory laboratory;
  const auto time = [&](const study::Settings& settings, const ScheduleOptions& schedule) {
    return run_iteration(laboratory,
                         {.workload = workload,
                          .machine = {.name = "dgx-h100", .settings = settings, .ranks = "4"},
                          .schedule = schedule})
        .result.time;
  };
  const Time whole = time({}, {});
  EXPECT_GT(time({{"link.nvlink4.bandwidth", "12.5 GB/s"}}, {}), whole);
  EXPECT_LT(time({}, {.without = {Collective::all_gather}}), whole);
  EXPECT_LT(time({}, {.compute_permille = 500}), whole);
}

TEST(Iteration, InferenceIsLaunchedAsFrameworksDo) {
  EXPECT_TRUE(usual_costs("train").rules.empty());
  EXPECT_EQ(usual_costs("").launch, sim::Launch::stream);
  EXPECT_EQ(usual_costs("prefill").launch, sim::Launch::stream);
  EXPECT_EQ(usual_costs("decode").launch, sim::Launch::graph);
  const auto workload = std::make_shared<const Workload>(
      four([](RealTrace& trace) { trace.call(Collective::all_reduce, 64 << 10); }));
  study::Laboratory laboratory;
  const auto time = [&](std::string_view phase, const char* machine, const char* ranks) {
    return run_iteration(laboratory, {.workload = workload,
                                      .machine = {.name = machine, .ranks = ranks},
                                      .costs = usual_costs(phase)})
        .result.time;
  };
  // One-shot by loads and stores against a ring of the library.
  EXPECT_LT(time("prefill", "dgx-h100", "4"), time("train", "dgx-h100", "4"));
  // Loads and stores do not reach other nodes.
  EXPECT_EQ(time("prefill", "dgx-h100:2", "0,1,8,9"), time("train", "dgx-h100:2", "0,1,8,9"));
}

TEST(Iteration, LinksCarryWhatTheCallsPutOnThem) {
  // An all-reduce of S bytes by n ranks: each sends 2 (n - 1) / n S, over a link to the switch and
  // one from it, with 16 B for each 128.
  const std::int64_t bytes = 8 << 20;
  study::Laboratory laboratory;
  const auto workload = std::make_shared<const Workload>(
      four([&](RealTrace& trace) { trace.call(Collective::all_reduce, bytes); }));
  const IterationOutcome outcome =
      run_iteration(laboratory, {.workload = workload, .machine = {.name = "switch:4"}});
  ASSERT_EQ(outcome.links.size(), 1u);
  const LinkShares& row = outcome.links.front();
  EXPECT_EQ(row.link_class, "link");
  const double least = 2 * 2 * 0.75 * static_cast<double>(bytes) * 144 / 128;
  EXPECT_GE(row.wire_bytes, least);
  EXPECT_LE(row.wire_bytes, 1.25 * least) << "flags and acknowledgements";
  double sum = 0;
  for (const double share : row.shares) {
    EXPECT_LE(share, 1.0001);
    sum += share;
  }
  // Two links of 450 GB/s each way.
  const double seconds = static_cast<double>(outcome.result.time.fs) * 1e-15;
  EXPECT_NEAR(sum / kLinkBins * 2 * 450e9 * seconds, row.wire_bytes, 1e-3 * row.wire_bytes);
}

TEST(Iteration, WhatWasRecordedStandsBesideIt) {
  const auto made = [](Time begin) {
    WorkloadBuilder builder("recorded", 4);
    test::TraceWriter trace(builder);
    const auto first = trace.call("call", builder.family("all", {{0, 1, 2, 3}}), 1 << 20);
    const auto second = trace.call("call", builder.family("all", {{0, 1, 2, 3}}), 1 << 20, {first});
    trace.node(first).recorded = Time::from_us(30);
    trace.node(second).recorded = Time::from_us(20);
    trace.node(second).recorded_begin = begin;
    trace.finish({0, 1, 2, 3});
    study::Laboratory laboratory;
    return run_iteration(laboratory, {.workload = std::make_shared<const Workload>(builder.take()),
                                      .machine = {.name = "dgx-h100", .ranks = "4"}});
  };
  const IterationOutcome known = made(Time::from_us(50));
  EXPECT_EQ(known.recorded, Time::from_us(70));
  ASSERT_EQ(known.calls.size(), 1U);
  EXPECT_EQ(known.calls[0].recorded, Time::from_us(20)) << "the call that waited least";
  // Durations alone do not say how long all of it took.
  EXPECT_EQ(made(Time{}).recorded, Time{});
}

}  // namespace
}  // namespace hemiola::workload
