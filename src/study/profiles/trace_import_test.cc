// Traces become profiles, and a replay of them waits as long as was measured.
#include "study/profiles/trace_import.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/testing/failure.h"
#include "core/text.h"
#include "sim/result/profile.h"
#include "sim/simulate.h"

namespace hemiola::study {
namespace {

struct Event {
  double begin, length;  // us
  const char* name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)";
};

std::string kineto(int rank, int world, const std::vector<Event>& events) {
  std::string text = R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": )" +
                     std::to_string(rank) + R"(, "world_size": )" + std::to_string(world) +
                     R"(}, "traceEvents": [{"ph": "M", "name": "process_name"})";
  for (const Event& e : events)
    text += R"(, {"ph": "X", "cat": "kernel", "name": ")" + std::string(e.name) + R"(", "ts": )" +
            std::to_string(e.begin) + R"(, "dur": )" + std::to_string(e.length) +
            R"(, "args": {"stream": 20}})";
  return text + "]}";
}

/// Rank 1 comes late to the first communication, rank 0 to the second; clocks differ by `offset`
/// us.
std::vector<NamedText> two_ranks(double offset) {
  return {
      {"r0.json", kineto(0, 2, {{100, 50}, {210, 12}, {300, 5.5, "gemm"}, {400, 20}})},
      {"r1.json", kineto(1, 2, {{140 + offset, 10}, {180 + offset, 42}, {401.5 + offset, 18.25}})}};
}

/// By communication: how long the replayed rank waits.
std::vector<Time> replayed_waits(const ImportedTraces& traces, int rank) {
  const machine::Machine machine = machine::load("dgx-h100");
  const auto& kernels = traces.kernels[static_cast<std::size_t>(rank)];
  std::vector<Time> ends, waits;
  const auto end_of = [&](std::size_t communications) {
    const program::Bound program =
        measured_program(traces, rank, machine::share(machine), communications);
    sim::Profile profile = traces.profile;
    profile.rows.erase(std::remove_if(profile.rows.begin(), profile.rows.end(),
                                      [&](const sim::ProfileRow& row) {
                                        return row.offset >=
                                               8 * std::int64_t{traces.profile.ranks} *
                                                   static_cast<std::int64_t>(communications);
                                      }),
                       profile.rows.end());
    return sim::simulate(program, {.replay = &profile, .watched = {rank}})
        .rank_end.at(static_cast<std::size_t>(rank));
  };
  const Time nothing = end_of(0);
  Time before{};
  for (std::size_t c = 0; c < kernels.size(); ++c) {
    const Time end = end_of(c + 1) - nothing;
    const Time gap = kernels[c].begin - (c == 0 ? Time{} : kernels[c - 1].end);
    waits.push_back(end - before - gap);
    before = end;
  }
  return waits;
}

/// What else a wait differs by: polls, launches and operations of the replayed program.
constexpr double kSimulatedUs = 5;

void expect_measured_waits(const ImportedTraces& traces) {
  for (int rank = 0; rank < traces.profile.ranks; ++rank) {
    const std::vector<Time> waits = replayed_waits(traces, rank);
    const auto& kernels = traces.kernels[static_cast<std::size_t>(rank)];
    ASSERT_EQ(waits.size(), kernels.size());
    for (std::size_t c = 0; c < waits.size(); ++c)
      EXPECT_NEAR(waits[c].us(), (kernels[c].end - kernels[c].begin).us(),
                  2 * traces.alignment_error.us() + kSimulatedUs)
          << "rank " << rank << " communication " << c;
  }
}

TEST(Kineto, ends_of_communications_are_flags_on_one_clock) {
  for (const double offset : {0.0, 3.0, 7'000'000.0}) {
    const ImportedTraces traces = import_kineto(two_ranks(offset), false);
    EXPECT_EQ(traces.profile.ranks, 2);
    ASSERT_EQ(traces.kernels[0].size(), 3U);
    EXPECT_EQ(traces.clock_offset[1], Time::from_ns(static_cast<std::int64_t>(offset * 1000)));
    // Ends of rank 0: 150, 222, 420; of rank 1: 150, 222, 419.75.
    EXPECT_EQ(traces.alignment_error, Time::from_ns(250));
    ASSERT_EQ(traces.profile.rows.size(), 6U);
    EXPECT_EQ(traces.profile.rows[0].time, Time::from_us(50)) << "since rank 0 began at 100";
    EXPECT_EQ(traces.profile.rows[0].kind, sim::ProfileKind::add);
    expect_measured_waits(traces);
  }
}

TEST(Kineto, that_cannot_be_imported_is_refused_in_one_message) {
  const auto says = [](const std::vector<NamedText>& files, const char* expected,
                       bool partial = false) {
    const std::string text = test::message_of([&] { import_kineto(files, partial); });
    EXPECT_NE(text.find(expected), std::string::npos) << text;
  };
  std::vector<NamedText> files = two_ranks(0);
  says({files[0]}, "a trace of one rank alone", true);
  says({files[0]}, "that of rank 1 is missing");
  says({files[0], files[0]}, "this is rank 0, as is 'r0.json'");
  files[1].second = kineto(2, 3, {{100, 50}});
  says(files, "the run had 3 ranks, but there are 2 traces: that of rank 1 is missing");
  EXPECT_EQ(import_kineto(files, true).ranks, (std::vector<int>{0, 2}));
  files[1].second = kineto(1, 2, {{100, 50, "gemm"}});
  says(files, "no communication kernels");
  files[1].second = kineto(1, 2, {{9000, 50, "ncclDevKernel_SendRecv()"}});
  says(files, "no communication in common");
  files = two_ranks(0);
  files[1].second.resize(files[1].second.size() / 2);
  says(files, "r1.json:1:");
  // What is no trace at all, words and times that are none.
  says({{"r0.json", "{}"}}, "traceEvents", true);
  says({{"r0.json", R"({"traceEvents": [{"cat": 1, "name": 2}]})"}}, "no communication kernels");
  says({{"r0.json",
         R"({"traceEvents": [{"cat": "kernel", "name": "nccl", "ts": 1e30, "dur": 1}]})"}},
       "is at no time");
  says({{"r0.json", R"({"traceEvents": [], "baseTimeNanoseconds": 9223372036854775807})"}},
       "baseTimeNanoseconds");
  files = two_ranks(0);
  files[1].second = kineto(1, 2, {{100, 50, "nccl"}, {40'000'000'000, 50, "nccl"}});
  files[0].second = kineto(0, 2, {{100, 50, "nccl"}, {40'000'000'000, 50, "nccl"}});
  says(files, "hours apart");
  files[0].second = kineto(0, 2, {{100, 50, "nccl"}});
  files[1].second = kineto(1, 2, {{40'000'000'000, 50, "nccl"}});
  says(files, "hours apart");
}

std::string shared(const std::string& name) {
  return HEMIOLA_SOURCE_DIR "/../shared/inputs/" + name;
}

TEST(Kineto, real_ranks_wait_as_long_as_was_measured) {
  std::vector<NamedText> files;
  for (const char* name : {"kineto/sampled_rank-0.json.gz", "kineto/sampled_rank-1.json.gz"}) {
    if (!std::filesystem::exists(shared(name))) GTEST_SKIP() << "SKIPPED: no " << shared(name);
    files.emplace_back(name, read_file(shared(name)));
  }
  const std::string missing = test::message_of([&] { import_kineto(files, false); });
  EXPECT_NE(missing.find("128 ranks, but there are 2 traces"), std::string::npos) << missing;
  const ImportedTraces traces = import_kineto(files, true);
  EXPECT_EQ(traces.kernels[0].size(), 5U) << "of ten each, drawn at random from longer traces";
  EXPECT_LT(traces.alignment_error, Time::from_us(400));
  expect_measured_waits(traces);
}

constexpr const char* kRocprof =
    "Dispatch_ID,Kernel_Name,GPU_ID,Start_Timestamp,End_Timestamp\n"
    "0,\"ncclDevKernel_Generic(ncclDevComm*)\",4,1000,9000\n"
    "1,\"ncclDevKernel_Generic(ncclDevComm*)\",2,5000,9100\n"
    "2,gemm,2,9200,9300\n";

TEST(Rocprof, gpus_are_ranks) {
  const ImportedTraces traces = import_rocprof({"r.csv", kRocprof}, "nccl|rccl");
  EXPECT_EQ(traces.profile.ranks, 2);
  ASSERT_EQ(traces.profile.rows.size(), 2U);
  EXPECT_EQ(traces.clock_offset[1], Time::from_ns(-100)) << "ends are at one time";
  const ImportedTraces one = import_rocprof({"r.csv", kRocprof}, "gemm");
  EXPECT_EQ(one.profile.rows.at(0).source, 1);
  EXPECT_EQ(one.profile.rows.at(0).time, Time::from_ns(100));
}

TEST(Rocprof, is_refused_with_the_line) {
  const auto says = [](const std::string& text, const char* expected) {
    const std::string message = test::message_of([&] {
      import_rocprof({"r.csv", text}, "nccl|rccl");
    });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  const std::string head = "Kernel_Name,GPU_ID,Start_Timestamp,End_Timestamp\n";
  says(head + "nccl,1,1.6E+14,1.6E+14\n", "r.csv:2: error: '1.6E+14' is no whole number");
  says(head + "nccl,1,5,5\n", "r.csv:2: error: a kernel ends before it begins");
  says(head + "gemm,1,5,6\n", "no kernel has 'nccl|rccl' in its name");
  says("Kernel_Name,GPU_ID,Start_Timestamp\n", "no column 'End_Timestamp'");
  says(head + "nccl,1,5\n", "this row has 3 cells");
}

TEST(Rocprof, real_files_are_read_or_refused) {
  const std::string name = shared("rocprof/vcopy_MI200_timestamps.csv");
  if (!std::filesystem::exists(name)) GTEST_SKIP() << "SKIPPED: no " << name;
  const ImportedTraces traces = import_rocprof({name, read_file(name)}, "vecCopy");
  EXPECT_EQ(traces.profile.rows.size(), 3U);
  const std::string rounded = shared("rocprof/vcopy_MI300A_A1_timestamps.csv");
  const std::string text = test::message_of([&] {
    import_rocprof({rounded, read_file(rounded)}, "vecCopy");
  });
  EXPECT_NE(text.find("spreadsheets round"), std::string::npos) << text;
}

}  // namespace
}  // namespace hemiola::study
