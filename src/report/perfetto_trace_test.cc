#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "perfetto.pb.h"
#include "report/report.h"

namespace hemiola::report {
namespace {

using perfetto::TrackDescriptor;
using perfetto::TrackEvent;

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

struct ReadSlice {
  std::string track, name;
  std::uint64_t begin_ns, end_ns;
  std::int64_t begin_fs, duration_fs;
  std::uint64_t uuid;
};
struct ReadTrace {
  std::map<std::uint64_t, TrackDescriptor> tracks;
  std::vector<ReadSlice> slices;
  std::map<std::string, std::vector<std::pair<std::uint64_t, double>>> counters;
};

void read_slice_begin(const TrackEvent& event, std::uint64_t ns, const std::string& track,
                      const std::map<std::uint64_t, std::string>& names,
                      std::map<std::uint64_t, std::vector<ReadSlice>>& open) {
  ASSERT_TRUE(names.count(event.name_iid())) << "name " << event.name_iid() << " is not interned";
  ASSERT_EQ(event.debug_annotations_size(), 2);
  open[event.track_uuid()].push_back({track, names.at(event.name_iid()), ns, 0,
                                      event.debug_annotations(0).int_value(),
                                      event.debug_annotations(1).int_value(), event.track_uuid()});
}

/// Parses the bytes back and checks what a viewer relies on: every track is declared with a
/// declared parent, names are interned before use, time never goes back, begins and ends pair up.
void check(const std::string& bytes, ReadTrace& read) {
  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(bytes));
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::vector<ReadSlice>> open;
  std::set<int> processes;
  std::uint64_t last = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    ASSERT_NE(packet.trusted_packet_sequence_id(), 0u);
    for (const auto& name : packet.interned_data().event_names()) names[name.iid()] = name.name();
    if (packet.has_track_descriptor()) {
      const TrackDescriptor& track = packet.track_descriptor();
      ASSERT_NE(track.uuid(), 0u);
      ASSERT_TRUE(read.tracks.emplace(track.uuid(), track).second) << "declared twice";
      ASSERT_TRUE(track.has_process() || read.tracks.count(track.parent_uuid()));
      if (track.has_process()) {
        ASSERT_TRUE(processes.insert(track.process().pid()).second);
      }
    }
    if (!packet.has_track_event()) continue;
    ASSERT_GE(packet.timestamp(), last);
    last = packet.timestamp();
    const TrackEvent& event = packet.track_event();
    ASSERT_TRUE(read.tracks.count(event.track_uuid())) << "not declared: " << event.track_uuid();
    const TrackDescriptor& track = read.tracks.at(event.track_uuid());
    ASSERT_EQ(track.has_counter(), event.type() == TrackEvent::TYPE_COUNTER);
    if (event.type() == TrackEvent::TYPE_COUNTER) {
      read.counters[track.name()].push_back({last, event.double_counter_value()});
    } else if (event.type() == TrackEvent::TYPE_SLICE_BEGIN) {
      ASSERT_TRUE(open[event.track_uuid()].empty()) << "slices of a track must not overlap";
      ASSERT_NO_FATAL_FAILURE(read_slice_begin(event, last, track.name(), names, open));
    } else {
      ASSERT_EQ(event.type(), TrackEvent::TYPE_SLICE_END);
      ASSERT_FALSE(open[event.track_uuid()].empty()) << "an end without a begin";
      read.slices.push_back(open[event.track_uuid()].back());
      read.slices.back().end_ns = last;
      open[event.track_uuid()].pop_back();
    }
  }
  for (const auto& [uuid, slices] : open) ASSERT_TRUE(slices.empty()) << "a begin without an end";
}

ReadTrace checked(const PerfettoTrace& trace) {
  ReadTrace read;
  check(trace.serialize(), read);
  return read;
}

TEST(PerfettoTrace, of_nothing_declares_the_ranks_and_the_fabric) {
  const ReadTrace read = checked(PerfettoTrace(two_gpus()));
  std::vector<std::string> names;
  for (const auto& [uuid, track] : read.tracks) names.push_back(track.process().process_name());
  EXPECT_THAT(names, testing::ElementsAre("rank 0 (toy)", "rank 1 (toy)", "fabric"));
}

TEST(PerfettoTrace, puts_each_workgroup_and_engine_on_a_track_of_its_rank) {
  PerfettoTrace trace(two_gpus());
  trace.operation(1, 3, "op 0 (put)", Time::from_ns(10), Time::from_ns(20));
  trace.engine(0, "dma 0", "copy", Time::from_ns(5), Time::from_ns(6));
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
  trace.operation(0, 0, "a", {1'900'000}, {2'100'000});
  trace.operation(0, 0, "b", {2'100'000}, {2'900'000});
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
  trace.operation(0, 0, "a", Time::from_ns(0), Time::from_ns(10));
  trace.operation(0, 0, "b", Time::from_ns(5), Time::from_ns(15));
  trace.operation(0, 0, "c", Time::from_ns(10), Time::from_ns(20));
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
  const auto& use = read.counters.at("gpu.1 to gpu.0 lane 0");
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
                       {call.begin + call.length});
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
