// Traces of real runs, read back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"
#include "report/testing/read_trace.h"
#include "sim/simulate.h"

namespace hemiola::report {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

struct Traced {
  sim::Result result;
  ReadTrace read;

  const ReadSlice& slice(int number) const {
    return read.slices.at(static_cast<std::size_t>(number));
  }
  std::string rank_of(const ReadSlice& slice) const {
    return read.process(slice.uuid).process().process_name();
  }
};

Traced traced(const std::string& name, const std::string& topology, Bytes size,
              const Parameters& parameters = {}, sim::Options options = {}) {
  const machine::Machine machine = machine::load(topology);
  const program::Bound program =
      program::bind(program::load(name, {.ranks = machine.ranks(),
                                         .parameters = parameters,
                                         .machine = machine::share(machine),
                                         .size = size}),
                    machine::share(machine), {.size = size});
  PerfettoTrace trace(machine);
  options.trace = &trace;
  Traced traced;
  traced.result = sim::simulate(program, options);
  traced.read = checked(trace);
  return traced;
}

/// Of programs with one stream per rank: its slices follow each other without a gap and sum to the
/// rank's time; kernels hold their workgroups, and these their operations.
void expect_whole(const Traced& traced, std::size_t ranks) {
  std::map<std::string, std::int64_t> at;  // by rank: the end of its stream so far
  std::map<std::uint64_t, std::vector<const ReadSlice*>> kernels;  // by track of the stream
  for (const ReadSlice& slice : traced.read.slices) {
    if (slice.track != "stream 0") continue;
    std::int64_t& end = at[traced.rank_of(slice)];
    EXPECT_EQ(slice.begin_fs, end) << slice.name;
    end = slice.end_fs();
    if (slice.name != "launch" && slice.name != "end") kernels[slice.uuid].push_back(&slice);
  }
  ASSERT_EQ(at.size(), ranks);
  std::size_t rank = 0;
  for (const auto& [name, end] : at) EXPECT_EQ(end, traced.result.rank_end[rank++].fs) << name;
  int operations = 0;
  for (const ReadSlice& slice : traced.read.slices) {
    if (!slice.track.starts_with("workgroup")) continue;
    if (slice.inside >= 0) {
      ++operations;
      continue;
    }
    EXPECT_EQ(slice.name, slice.track) << "an operation outside of its workgroup";
    const auto& around = kernels[traced.read.parent(slice.uuid).uuid()];
    EXPECT_TRUE(std::any_of(around.begin(), around.end(),
                            [&](const ReadSlice* kernel) {
                              return kernel->begin_fs <= slice.begin_fs &&
                                     slice.end_fs() <= kernel->end_fs();
                            }))
        << slice.name << " of " << traced.rank_of(slice);
  }
  EXPECT_GT(operations, 0);
}

TEST(TraceOfARun, shows_launch_kernel_and_end_and_nests_workgroups_and_operations) {
  for (const sim::Engine engine : {sim::Engine::reference, sim::Engine::line, sim::Engine::fluid}) {
    SCOPED_TRACE(sim::name_of(engine));
    const Traced once = traced("all-reduce/two-shot", "switch:4", KiB(64), {}, {.engine = engine});
    // The fluid engine shows one rank of those that behave alike.
    const bool fluid = engine == sim::Engine::fluid;
    expect_whole(once, fluid ? 1 : 4);
    const std::string rank = fluid ? "rank 0 (h100)" : "rank 3 (h100)";
    std::multiset<std::string> items;
    for (const ReadSlice& slice : once.read.slices)
      if (slice.track == "stream 0" && once.rank_of(slice) == rank) items.insert(slice.name);
    EXPECT_THAT(items, testing::UnorderedElementsAre("launch", testing::_, "end"));
  }
  const Traced thrice =
      traced("all-reduce/two-shot", "switch:4", KiB(64), {}, {.warmup = 1, .iterations = 2});
  std::map<std::string, int> items;
  for (const ReadSlice& slice : thrice.read.slices)
    if (slice.track == "stream 0") ++items[slice.name];
  EXPECT_EQ(items["launch"], 4 * 3);
  EXPECT_EQ(items["end"], 4 * 3);
}

TEST(TraceOfARun, has_an_arrow_to_every_wait_from_the_last_signal_that_it_waited_for) {
  const Traced run = traced("all-reduce/two-shot", "switch:4", KiB(64));
  ASSERT_GT(run.read.flows.size(), 0u);
  std::set<int> reached;
  for (const auto& [id, flow] : run.read.flows) {
    EXPECT_TRUE(reached.insert(flow.to).second) << "one of them came last";
    EXPECT_THAT(run.slice(flow.from).name, testing::HasSubstr("signal"));
    EXPECT_THAT(run.slice(flow.to).name, testing::HasSubstr("wait"));
  }
  EXPECT_EQ(static_cast<std::size_t>(run.read.instants), run.read.flows.size());
}

TEST(TraceOfARun, has_arrows_through_packets) {
  const Traced run = traced("all-reduce/nccl", "switch:2", KiB(4), {{"protocol", "ll"}});
  expect_whole(run, 2);
  ASSERT_GT(run.read.flows.size(), 0u);
  for (const auto& [id, flow] : run.read.flows)
    EXPECT_NE(run.rank_of(run.slice(flow.from)), run.rank_of(run.slice(flow.to)));
}

TEST(TraceOfARun, has_arrows_from_a_post_through_proxy_and_nic_to_the_wait_at_the_other_end) {
  const Traced run = traced("all-gather/ring", "clos:2x2x1", KiB(64));
  expect_whole(run, run.result.rank_end.size());
  int whole = 0;
  std::map<int, int> came_from;
  for (const auto& [id, flow] : run.read.flows) came_from[flow.to] = flow.from;
  for (const auto& [to, from] : came_from) {
    if (run.slice(to).name.find("wait") == std::string::npos) continue;
    if (!run.slice(from).track.starts_with("NIC")) continue;
    const ReadSlice& proxy = run.slice(came_from.at(from));
    EXPECT_EQ(proxy.track, "proxy");
    const ReadSlice& post = run.slice(came_from.at(came_from.at(from)));
    EXPECT_THAT(post.name, testing::HasSubstr("post"));
    EXPECT_NE(run.rank_of(post), run.rank_of(run.slice(to)));
    ++whole;
  }
  EXPECT_GT(whole, 0);
}

}  // namespace
}  // namespace hemiola::report
