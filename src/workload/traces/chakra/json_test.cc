// Chakra traces as JSON say the same as those in protobuf.
#include <gtest/gtest.h>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::call_of;
using test::failure_of;
using test::Folder;
using test::node_with;
using test::trace_of;
using test::waits_of;

/// As its jsonizer writes it: objects without anything between them, 64-bit numbers as texts, and
/// what is zero left out.
constexpr const char* kJsonizer = R"({
  "version": "0.0.4"
}{
  "id": "7",
  "name": "kernel \"{\"",
  "type": "COMP_NODE",
  "durationMicros": "5",
  "attr": [
    {"name": "is_cpu_op", "boolVal": false},
    {"name": "num_ops", "int64Val": "1000"},
    {"name": "tensor_size", "uint64Val": "4096"}
  ]
}{
  "id": "8",
  "name": "call",
  "type": "COMM_COLL_NODE",
  "dataDeps": ["7"],
  "startTimeMicros": "12",
  "attr": [
    {"name": "comm_type", "int64Val": "0"},
    {"name": "comm_size", "int64Val": "1024"},
    {"name": "involved_dim", "boolList": {"values": [true, true]}}
  ]
})";

constexpr const char* kFeeder = R"({"workload_graph": [
  {"Id": 7, "Name": "kernel", "NodeType": 4, "is_cpu_op": false, "runtime": 5, "data_deps": [],
   "num_ops": 1000, "tensor_size": 4096},
  {"Id": 8, "Name": "call", "NodeType": 7, "is_cpu_op": false, "data_deps": [7],
   "comm_type": 0, "comm_priority": 0, "comm_size": 1024, "involved_dim": [true, true]}]})";

Workload read_two(const char* content) {
  const Folder folder;
  folder.write("t.0.json", content);
  folder.write("t.1.json", content);
  return read_workload({.path = folder / "t"});
}

TEST(ChakraJson, BothFormsAreRead) {
  for (const char* content : {kJsonizer, kFeeder}) {
    const Workload workload = read_two(content);
    const Trace& trace = trace_of(workload, 1);
    ASSERT_EQ(trace.nodes.size(), 2U);
    const Node& kernel = node_with(trace, 7);
    EXPECT_EQ(kernel.kind, NodeKind::compute);
    EXPECT_EQ(kernel.recorded, Time::from_us(5));
    const Compute& work = workload.computes.at(static_cast<std::size_t>(kernel.work));
    EXPECT_EQ(work.flop, 1000);
    EXPECT_EQ(work.read, 4096);
    EXPECT_EQ(call_of(workload, 1, 8).bytes, 1024);
    EXPECT_EQ(call_of(workload, 1, 8).kind, Collective::all_reduce);
    EXPECT_EQ(waits_of(trace, 8), std::vector<std::uint64_t>{7});
  }
  EXPECT_EQ(read_two(kJsonizer).names.at(trace_of(read_two(kJsonizer), 0).nodes[0].name),
            "kernel \"{\"");
}

TEST(ChakraJson, WhatIsWrongHasItsPlace) {
  const Folder folder;
  const auto failure = [&](const std::string& content) {
    return failure_of(folder, {.path = folder.write("t.json", content)});
  };
  EXPECT_EQ(failure(R"({"workload_graph": [{"Id": 1,]})"),
            "t.json:1:30: error: the JSON text is malformed here");
  EXPECT_EQ(failure(std::string(kJsonizer).substr(0, 200)),
            "t.json:10:31: error: the JSON text ends too early\n  hint: the file may be truncated");
  EXPECT_EQ(failure(R"({"workload_graph": [{"Id": -1, "Name": "x", "NodeType": 4}]})"),
            "t.json: error: node -1: 'id' has another kind of value");
  EXPECT_EQ(failure(R"({}{"id": "3", "name": "x", "type": "KERNEL_NODE", "attr": []})"),
            "t.json: error: node 3: 'type' has another kind of value");
  EXPECT_EQ(failure(R"({"workload_graph": {}})"),
            "t.json: error: 'workload_graph' is no list of nodes");
  EXPECT_EQ(failure(R"({"workload_graph": [{"Id": 4, "Name": "x", "NodeType": 7}]})"),
            "t.json: error: node 4 'x' has no comm_type");
}

}  // namespace
}  // namespace hemiola::workload
