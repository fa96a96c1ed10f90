#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "report/report.h"
#include "report/testing/read_trace.h"

namespace hemiola::report {
namespace {

machine::Machine two_gpus() {
  machine::Machine machine;
  machine.name = "pair";
  machine.nodes.resize(2);
  machine.nodes[0].name = "gpu.0";
  machine.nodes[1].name = "gpu.1";
  machine.link_classes.resize(1);
  machine.links = {{0, 1, 0, 0}, {1, 0, 0, 0}};
  machine.gpus = {0, 1};
  machine.gpu_models = {0, 0};
  machine.models.resize(1);
  machine.models[0].name = "toy";
  return machine;
}

TEST(PerfettoTrace, of_nothing_declares_the_ranks_and_the_fabric) {
  const ReadTrace read = checked(PerfettoTrace(two_gpus()));
  std::vector<std::string> names;
  for (const auto& [uuid, track] : read.tracks) names.push_back(track.process().process_name());
  EXPECT_THAT(names, testing::ElementsAre("rank 0 (toy)", "rank 1 (toy)", "fabric"));
}

TEST(PerfettoTrace, puts_each_workgroup_and_engine_on_a_track_of_its_rank) {
  PerfettoTrace trace(two_gpus());
  trace.operation(1, 3, "op 0 (put)", Time::from_ns(10), Time::from_ns(20), {});
  trace.engine(0, "dma 0", "copy", Time::from_ns(5), Time::from_ns(6), {});
  const ReadTrace read = checked(trace);
  ASSERT_EQ(read.slices.size(), 2u);
  EXPECT_EQ(read.slices[0].track, "dma 0");
  EXPECT_EQ(read.slices[0].name, "copy");
  EXPECT_EQ(read.slices[1].track, "workgroup 3");
  EXPECT_EQ(read.slices[1].name, "op 0 (put)");
  const TrackDescriptor& workgroup = read.tracks.at(read.slices[1].uuid);
  EXPECT_EQ(read.tracks.at(workgroup.parent_uuid()).process().process_name(), "rank 1 (toy)");
}

TEST(PerfettoTrace, rounds_both_ends_down_and_keeps_the_exact_times_beside) {
  PerfettoTrace trace(two_gpus());
  trace.operation(0, 0, "a", {1'900'000}, {2'100'000}, {});
  trace.operation(0, 0, "b", {2'100'000}, {2'900'000}, {});
  const ReadTrace read = checked(trace);
  ASSERT_EQ(read.slices.size(), 2u);
  EXPECT_EQ(read.slices[0].begin_ns, 1u);
  EXPECT_EQ(read.slices[0].end_ns, 2u);
  EXPECT_EQ(read.slices[0].begin_fs, 1'900'000);
  EXPECT_EQ(read.slices[0].duration_fs, 200'000);
  EXPECT_EQ(read.slices[1].begin_ns, 2u);
  EXPECT_EQ(read.slices[1].end_ns, 2u);
  EXPECT_EQ(read.slices[1].uuid, read.slices[0].uuid);
}

TEST(PerfettoTrace, gives_overlapping_operations_rows_of_their_own) {
  PerfettoTrace trace(two_gpus());
  trace.operation(0, 0, "a", Time::from_ns(0), Time::from_ns(10), {});
  trace.operation(0, 0, "b", Time::from_ns(5), Time::from_ns(15), {});
  trace.operation(0, 0, "c", Time::from_ns(10), Time::from_ns(20), {});
  const ReadTrace read = checked(trace);
  std::map<std::string, std::uint64_t> row;
  for (const ReadSlice& slice : read.slices) row[slice.name] = slice.uuid;
  EXPECT_NE(row["a"], row["b"]);
  EXPECT_EQ(row["a"], row["c"]);
}

TEST(PerfettoTrace, counts_what_a_link_carries) {
  PerfettoTrace trace(two_gpus());
  const Time bin{1 << 20};
  trace.link(1, 1000, 4, bin, 2 * bin);
  const ReadTrace read = checked(trace);
  EXPECT_TRUE(read.slices.empty());
  const auto& use = read.counters.at("gpu.1 to gpu.0 lane 0 use");
  ASSERT_EQ(use.size(), 2u);
  EXPECT_EQ(use[0].first, 1u);
  EXPECT_DOUBLE_EQ(use[0].second, 1000 * 1e6 / (1 << 20));
  EXPECT_EQ(use[1], std::pair(std::uint64_t{2}, 0.0));
  const auto& queue = read.counters.at("gpu.1 to gpu.0 lane 0 queue");
  EXPECT_EQ(queue[0].second, 4);
}

TEST(PerfettoTrace, shows_requests_only_inside_the_window) {
  PerfettoTrace trace(two_gpus(), Time::from_ns(10), Time::from_ns(20));
  EXPECT_FALSE(trace.wants_requests({9'999'999}));
  EXPECT_TRUE(trace.wants_requests(Time::from_ns(10)));
  EXPECT_FALSE(trace.wants_requests(Time::from_ns(20)));
  trace.link(0, 144, 0, Time::from_ns(9), Time::from_ns(10));
  trace.link(0, 144, 0, Time::from_ns(10), Time::from_ns(11));
  trace.request(-1, "switch 0", "load", Time::from_ns(11), Time::from_ns(12));
  const ReadTrace read = checked(trace);
  ASSERT_EQ(read.slices.size(), 2u);
  EXPECT_EQ(read.slices[0].track, "gpu.0 to gpu.1 lane 0");
  EXPECT_EQ(read.slices[0].name, "144 B");
  const TrackDescriptor& track = read.tracks.at(read.slices[1].uuid);
  EXPECT_EQ(read.tracks.at(track.parent_uuid()).process().process_name(), "fabric");
}

TEST(PerfettoTrace, nests_operations_in_their_workgroup_below_its_stream) {
  PerfettoTrace trace(two_gpus());
  trace.stream(0, 2, "launch", Time::from_ns(0), Time::from_ns(5));
  trace.stream(0, 2, "kernel", Time::from_ns(5), Time::from_ns(40));
  trace.operation(0, 7, "a", Time::from_ns(10), Time::from_ns(20), {});
  trace.operation(0, 7, "b", Time::from_ns(15), Time::from_ns(25), {});
  trace.workgroup(0, 2, 7, Time::from_ns(6), Time::from_ns(30));
  const ReadTrace read = checked(trace);
  std::map<std::string, const ReadSlice*> named;
  for (const ReadSlice& slice : read.slices) named[slice.name] = &slice;
  EXPECT_EQ(named.at("kernel")->track, "stream 2");
  EXPECT_EQ(named.at("launch")->track, "stream 2");
  EXPECT_EQ(named.at("a")->track, "workgroup 7");
  EXPECT_EQ(named.at("b")->track, "workgroup 7, row 2");
  for (const char* name : {"a", "b"}) {
    const ReadSlice& around = read.slices.at(static_cast<std::size_t>(named.at(name)->inside));
    EXPECT_EQ(around.name, around.track) << "rows show the workgroup by their own name";
    EXPECT_EQ(around.begin_fs, 6'000'000);
    EXPECT_EQ(read.parent(around.uuid).name(), "stream 2");
  }
}

TEST(PerfettoTrace, draws_arrows_from_what_sent_to_the_moment_that_let_go_on) {
  PerfettoTrace trace(two_gpus());
  trace.operation(1, 0, "wait", Time::from_ns(0), Time::from_ns(30),
                  {.released_by = 4, .released_at = Time::from_ns(25)});
  trace.operation(0, 0, "signal", Time::from_ns(10), Time::from_ns(20), {.span = 4});
  trace.engine(1, "proxy", "request", Time::from_ns(15), Time::from_ns(16),
               {.released_by = 4, .released_at = Time::from_ns(15)});
  trace.operation(1, 1, "wait", Time::from_ns(0), Time::from_ns(40),
                  {.released_by = 5, .released_at = Time::from_ns(35)});
  const ReadTrace read = checked(trace);
  EXPECT_EQ(read.instants, 1) << "where a slice begins no moment is needed";
  std::vector<std::string> arrows;
  for (const auto& [id, flow] : read.flows)
    arrows.push_back(read.slices.at(static_cast<std::size_t>(flow.from)).name + " to " +
                     read.slices.at(static_cast<std::size_t>(flow.to)).name);
  EXPECT_THAT(arrows, testing::UnorderedElementsAre("signal to wait", "signal to request"))
      << "there is no span 5";
}

struct Call {
  int rank, workgroup, name;
  std::int64_t begin, length;
};

RC_GTEST_PROP(PerfettoTrace, of_any_calls_is_well_formed_and_independent_of_their_order, ()) {
  auto calls = *rc::gen::container<std::vector<Call>>(rc::gen::construct<Call>(
      rc::gen::inRange(0, 2), rc::gen::inRange(0, 3), rc::gen::inRange(0, 4),
      rc::gen::inRange<std::int64_t>(0, 20'000'000), rc::gen::inRange<std::int64_t>(0, 5'000'000)));
  const auto record = [&] {
    auto trace = std::make_unique<PerfettoTrace>(two_gpus());
    for (const Call& call : calls) {
      trace->operation(call.rank, call.workgroup, "op " + std::to_string(call.name), {call.begin},
                       {call.begin + call.length}, {});
      trace->link(call.rank, 128, call.workgroup, {call.begin}, {call.begin + call.length});
    }
    return trace;
  };
  const auto first = record();
  const ReadTrace read = checked(*first);
  RC_ASSERT(!testing::Test::HasFatalFailure());
  RC_ASSERT(read.slices.size() == calls.size());
  std::reverse(calls.begin(), calls.end());
  RC_ASSERT(record()->serialize() == first->serialize());
}

}  // namespace
}  // namespace hemiola::report
