// Which traces end, and which wait for ever.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "workload/iteration/iteration.h"
#include "workload/testing/traces.h"
#include "workload/trace_reader.h"

namespace hemiola::workload {
namespace {

bool ends(const Workload& workload) {
  study::Laboratory laboratory;
  IterationRequest request{
      .workload = std::make_shared<const Workload>(workload),
      .machine = {.name = "dgx-h100", .ranks = std::to_string(workload.ranks)}};
  request.costs.level = Level::estimate;
  try {
    run_iteration(laboratory, request);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock) << failure.what();
    return false;
  }
  return true;
}

/// Two ranks, each sends and receives as `first` and `second` say; they are Chakra's as JSON.
Workload pair_of_messages(std::int64_t bytes, bool sends_first_0, bool sends_first_1) {
  const test::Folder folder;
  const auto rank = [&](int own, bool sends_first) {
    const int peer = 1 - own;
    const auto node = [&](int id, bool sends) {
      return fmt::format(
          R"({{"Id": {}, "Name": "{}", "NodeType": {}, "data_deps": [{}], "comm_size": {}, "comm_src": {}, "comm_dst": {}, "comm_tag": 0}})",
          id, sends ? "send" : "recv", sends ? 5 : 6, id == 0 ? "" : "0", bytes, sends ? own : peer,
          sends ? peer : own);
    };
    folder.write(fmt::format("t.{}.json", own),
                 fmt::format("{{\"workload_graph\": [{}, {}]}}", node(0, sends_first),
                             node(1, !sends_first)));
  };
  rank(0, sends_first_0);
  rank(1, sends_first_1);
  return read_workload({.path = folder / "t"});
}

TEST(TracesThatEnd, SmallSendsDoNotWait) {
  for (const bool first : {true, false}) {
    for (const bool second : {true, false}) {
      const Workload workload = pair_of_messages(1024, first, second);
      EXPECT_EQ(ends(workload), first || second) << "two that receive first wait for ever";
    }
  }
  // Beyond the FIFO of a connection NCCL's sends wait.
  EXPECT_FALSE(ends(pair_of_messages(std::int64_t{1} << 30, true, true)));
}

TEST(TraceInputs, WhatEnds) {
  for (const auto& [folder, prefix] : std::vector<std::pair<std::string, std::string>>{
           {"chakra/all_gather_8npus_1MB", ""},
           {"chakra/all_reduce_8npus_1MB", ""},
           {"chakra/llama_tiny_dp2tp2pp2", "/llama_tiny"},
           {"../defects/traces/ring2", "/t"},
           {"../defects/traces/ring2", "/indep"},
           {"../defects/traces/is_cpu_op_true", "/t"}}) {
    HEMIOLA_SHARED_INPUT(path, folder);
    EXPECT_TRUE(ends(read_workload({.path = path + prefix}))) << folder << prefix;
  }
}

}  // namespace
}  // namespace hemiola::workload
