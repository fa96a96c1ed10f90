// What has to hold of every iteration, whatever the engine: bytes are those of its calls, time is
// no less than its longest chain, engines agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "core/testing/long_tests.h"
#include "workload/costs/launch_job.h"
#include "workload/costs/traffic.h"
#include "workload/iteration/iteration.h"
#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

MakeRequest small_request(const Parallelism& by) {
  Model model = generated::tiny_gpt(2);
  model.hidden = 512;
  model.sequence = 256;
  return {.model = complete(model), .parallelism = by, .micro_batch = 1, .global_batch = 4};
}

std::shared_ptr<const Workload> make_small(const Parallelism& by) {
  return std::make_shared<const Workload>(make_workload(small_request(by)));
}

study::MachineChoice node(const char* name, const Workload& workload) {
  return {.name = name, .ranks = std::to_string(workload.ranks)};
}

/// Wire bytes of one call that runs alone, as a program, on the ranks of a group.
double wire_bytes_alone(study::Laboratory& laboratory, const Workload& workload,
                        const machine::SharedMachine& machine, const CallRow& row) {
  const Call asked = call_of(workload, row.kind, row.work);
  const RunAs call = run_as(workload, row.kind, row.work);
  const std::vector<int>& group = workload.families[index(asked.family)].groups.front();
  const study::Experiment experiment{
      .machine = {.given = machine::select_ranks(machine, group)},
      .subject = std::string("auto/nccl"),
      .parameters = {{"collective", std::string(name_of(call.kind))}},
      .size = Bytes{asked.bytes},
      .round_size = true,
      .type = call.type,
      .check = false,
      .options = {.engine = sim::Engine::fluid}};
  double bytes = 0;
  for (const Traffic& one : traffic_of(laboratory.run(experiment).result, 1, 1))
    bytes += one.wire_bytes;
  return bytes;
}

TEST(Conservation, AnIterationPutsOnLinksWhatItsCallsDoAlone) {
  study::Laboratory laboratory;
  for (const Parallelism& by : {Parallelism{.tp = 2}, Parallelism{.tp = 2, .dp = 2, .zero = 1},
                                Parallelism{.tp = 4, .sequence_parallel = true},
                                Parallelism{.tp = 2, .pp = 2}, Parallelism{.cp = 4}}) {
    MakeRequest request = small_request(by);
    if (by.cp > 1) request.context_parallel = ContextParallel::ring;
    const auto workload = std::make_shared<const Workload>(make_workload(request));
    const IterationOutcome outcome =
        run_iteration(laboratory, {.workload = workload, .machine = node("dgx-h100", *workload)});
    double whole = 0, alone = 0;
    for (const LinkShares& row : outcome.links)
      whole += row.wire_bytes *
               static_cast<double>(workload->classes[index(row.rank_class)].ranks.size());
    for (const CallRow& row : outcome.calls)
      alone += static_cast<double>(row.calls) *
               wire_bytes_alone(laboratory, *workload, outcome.machine, row);
    EXPECT_GT(alone, 0);
    EXPECT_NEAR(whole / alone, 1, 1e-9) << workload->name;
  }
}

/// Of a class: the longest chain of nodes, each with what its like took at least.
Time longest_chain(const Workload& workload, std::size_t number, const ScheduleResult& result) {
  const Trace& trace = *workload.classes[number].trace;
  std::map<std::pair<NodeKind, std::int32_t>, Time> least;
  const auto length = [&](std::size_t n) {
    return result.nodes[number][n].end - result.nodes[number][n].begin;
  };
  for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
    const auto [at, is_new] =
        least.emplace(std::pair(trace.nodes[n].kind, trace.nodes[n].work), length(n));
    if (!is_new) at->second = std::min(at->second, length(n));
  }
  std::vector<Time> ends(trace.nodes.size());
  std::map<std::uint16_t, Time> streams;
  Time longest{};
  for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
    const Node& node = trace.nodes[n];
    Time begin = workload.streams[node.stream].in_order ? streams[node.stream] : Time{};
    for (std::uint32_t d = 0; d < node.dependencies; ++d)
      begin = std::max(begin, ends[trace.dependencies[node.first_dependency + d]]);
    ends[n] = begin + least[{node.kind, node.work}];
    streams[node.stream] = std::max(streams[node.stream], ends[n]);
    longest = std::max(longest, ends[n]);
  }
  return longest;
}

TEST(Conservation, TheTimeIsNoLessThanTheLongestChain) {
  study::Laboratory laboratory;
  for (const Parallelism& by :
       {Parallelism{.tp = 2, .pp = 2, .dp = 2}, Parallelism{.dp = 4, .zero = 3},
        Parallelism{.tp = 2, .pp = 4, .zero = 1, .sequence_parallel = true}}) {
    MakeRequest request = small_request(by);
    request.model.layers = 4;
    const auto workload = std::make_shared<const Workload>(make_workload(request));
    IterationRequest run{.workload = workload, .machine = node("dgx-h100", *workload)};
    run.costs.level = Level::estimate;
    const IterationOutcome outcome = run_iteration(laboratory, run);
    Time longest{};
    for (std::size_t c = 0; c < workload->classes.size(); ++c)
      longest = std::max(longest, longest_chain(*workload, c, outcome.result));
    EXPECT_GT(longest.fs, 0);
    EXPECT_LE(longest, outcome.result.time) << workload->name;
    // The path that is printed is a chain without gaps: the CPU is not modelled.
    Time end{};
    for (const PathStep& step : outcome.path) {
      const NodeTimes& times = outcome.result.nodes[index(step.rank_class)][step.node];
      EXPECT_GE(times.begin, end) << workload->name;
      end = times.end;
    }
    EXPECT_EQ(end, outcome.result.time) << workload->name;
  }
}

/// docs/workloads.md has the table of larger ones.
TEST(Conservation, FluidIsWithinFivePercentOfLineOnAllCollectivesOfASmallModel) {
  study::Laboratory laboratory;
  using Cases = std::vector<Parallelism>;
  const Parallelism sequence{.tp = 4, .sequence_parallel = true};
  for (const char* machine :
       some_or_all<std::vector<const char*>>({"dgx-h100"}, {"dgx-h100", "mi300x-8"})) {
    for (const Parallelism& by : some_or_all<Cases>(
             {sequence},
             {sequence, {.tp = 2, .dp = 2}, {.tp = 2, .dp = 2, .zero = 1}, {.dp = 4, .zero = 3}})) {
      const auto workload = make_small(by);
      IterationRequest run{.workload = workload, .machine = node(machine, *workload)};
      const Time fluid = run_iteration(laboratory, run).result.time;
      for (const Collective kind : {Collective::all_reduce, Collective::all_gather,
                                    Collective::reduce_scatter, Collective::all_to_all})
        run.costs.detail[kind] = Level::line;
      const Time line = run_iteration(laboratory, run).result.time;
      EXPECT_NE(fluid, line);
      EXPECT_NEAR(fluid.us() / line.us(), 1, 0.05) << workload->name << " on " << machine;
    }
  }
}

}  // namespace
}  // namespace hemiola::workload
