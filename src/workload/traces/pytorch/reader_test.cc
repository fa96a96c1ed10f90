// PyTorch execution traces.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "workload/testing/traces.h"
#include "workload/traces/pytorch_calls.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

using test::failure_of;
using test::Folder;
using test::node_with;
using test::waits_of;

/// Raw texts end at a parenthesis and a quote: types are "Tensor<float>" here.
std::string with_parentheses(std::string text) {
  std::replace(text.begin(), text.end(), '<', '(');
  std::replace(text.begin(), text.end(), '>', ')');
  return text;
}

/// A node of schema 1.1.0; lists are JSON.
std::string node_text(int id, std::string_view name, int parent, std::string_view values = "[]",
                      std::string_view shapes = "[]", std::string_view types = "[]",
                      std::string_view outputs = "[]", std::string_view attributes = {},
                      std::string_view more = {}) {
  return fmt::format(
      R"({{"id": {}, "name": "{}", "ctrl_deps": {}, "inputs": {{"values": {}, "shapes": {}, "types": {}}}, )"
      R"("outputs": {{"values": {}, "shapes": [], "types": []}}, "attrs": [{{"name": "rf_id", "type": "uint64", )"
      R"("value": 1}}{}{}]{}{}}})",
      id, name, parent, values, shapes, with_parentheses(std::string(types)), outputs,
      attributes.empty() ? "" : ", ", attributes, more.empty() ? "" : ", ", more);
}
std::string trace_text(const std::vector<std::string>& nodes,
                       std::string_view schema = "1.1.0-chakra.0.0.4") {
  return fmt::format(R"({{"schema": "{}", "pid": 1, "nodes": [{}], "finish_ts": 1}})", schema,
                     fmt::join(nodes, ",\n"));
}
Workload read_torch(const std::string& text, TraceRequest request = {}) {
  const Folder folder;
  request.path = folder.write("t.json", text);
  return read_workload(request);
}

constexpr std::string_view kRoot =
    R"({"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, )"
    R"("inputs": {}, "outputs": {}, "attrs": []})";
/// `tensor`: of 100 floats in a storage of the same number + 1000.
std::string tensor(int number) {
  return fmt::format(R"([{}, {}, 0, 100, 4, "cuda:0"])", number, number + 1000);
}

TEST(PyTorchTrace, OperatorsThatCallNoOtherAreKernels) {
  const Workload workload = read_torch(trace_text({
      std::string(kRoot),
      node_text(2, "aten::linear", 1, "[" + tensor(10) + "]", "[[4, 25]]", R"(["Tensor<float>"])",
                "[" + tensor(12) + "]"),
      node_text(3, "aten::t", 2, "[" + tensor(11) + "]", "[[4, 25]]", R"(["Tensor<float>"])",
                R"([[13, 1011, 0, 100, 4, "cuda:0"]])"),
      node_text(4, "aten::mm", 2, "[" + tensor(10) + ", " + tensor(13) + "]", "[[4, 25], [25, 8]]",
                R"(["Tensor<float>", "Tensor<float>"])", "[" + tensor(12) + "]"),
      node_text(5, "aten::relu", 1, "[" + tensor(12) + "]", "[[4, 25]]", R"(["Tensor<c10::Half>"])",
                "[" + tensor(14) + "]"),
      node_text(6, "aten::empty", 1, "[]", "[]", "[]", "[" + tensor(15) + "]"),
      node_text(7, "aten::add_", 1, "[" + tensor(14) + ", " + tensor(12) + "]", "[[100], [100]]",
                R"(["Tensor<float>", "Tensor<float>"])", "[" + tensor(14) + "]"),
      node_text(8, "aten::item", 1, R"([[16, 1016, 0, 1, 4, "cpu"]])", "[[]]",
                R"(["Tensor<float>"])"),
  }));
  const Trace& trace = test::trace_of(workload, 0);
  ASSERT_EQ(trace.nodes.size(), 3u);
  const auto work = [&](std::uint64_t id) {
    return workload.computes.at(static_cast<std::size_t>(node_with(trace, id).work));
  };
  EXPECT_EQ(work(4).kind, Compute::Kind::product);
  EXPECT_EQ(work(4).product.n, 8);
  EXPECT_EQ(work(4).product.type, DataType::float32);
  EXPECT_EQ(work(5).read, 400);
  EXPECT_EQ(work(5).written, 400);
  EXPECT_EQ(work(5).type, DataType::float16);
  EXPECT_EQ(work(7).read, 800);
  EXPECT_TRUE(test::has_notice(
      workload, "left out: 2 operations of the host, whose times such a trace does not have"));
  ASSERT_TRUE(workload.operators);
  EXPECT_EQ(workload.operators->kernels, 3);
  EXPECT_EQ(workload.operators->aliases, 2);
  EXPECT_EQ(workload.operators->covered, 1);
}

TEST(PyTorchTrace, CopiesFromAndToTheHostAreSaid) {
  const auto on_host = [](int number) {
    return fmt::format(R"([{}, {}, 0, 100, 4, "cpu"])", number, number + 1000);
  };
  const Workload workload = read_torch(trace_text({
      std::string(kRoot),
      node_text(2, "aten::copy_", 1, "[" + tensor(10) + ", " + on_host(11) + ", true]",
                "[[100], [100], []]", R"(["Tensor<float>", "Tensor<float>", "Bool"])",
                "[" + tensor(10) + "]"),
      node_text(3, "aten::copy_", 1, "[" + tensor(12) + ", " + tensor(10) + ", true]",
                "[[100], [100], []]", R"(["Tensor<float>", "Tensor<float>", "Bool"])",
                "[" + tensor(12) + "]"),
      node_text(4, "aten::copy_", 1, "[" + on_host(13) + ", " + tensor(12) + ", true]",
                "[[100], [100], []]", R"(["Tensor<float>", "Tensor<float>", "Bool"])",
                "[" + on_host(13) + "]"),
  }));
  const Trace& trace = test::trace_of(workload, 0);
  ASSERT_EQ(trace.nodes.size(), 3u);
  EXPECT_EQ(node_with(trace, 2).kind, NodeKind::memory);
  EXPECT_EQ(node_with(trace, 4).kind, NodeKind::memory);
  EXPECT_EQ(node_with(trace, 3).kind, NodeKind::compute);
  const Compute& inside = workload.computes.at(static_cast<std::size_t>(node_with(trace, 3).work));
  EXPECT_EQ(inside.read, 400) << "what it is copied over is not read";
  EXPECT_EQ(inside.written, 400);
  EXPECT_TRUE(test::has_notice(workload, "is no part of the models: 2 times"));
}

TEST(PyTorchTrace, AFillThatSaysNoOutputWritesItsArgument) {
  const Workload workload = read_torch(trace_text({
      std::string(kRoot),
      node_text(2, "aten::fill_", 1, "[" + tensor(10) + ", 0]", "[[100], []]",
                R"(["Tensor<float>", "Int"])"),
  }));
  const Node& fill = node_with(test::trace_of(workload, 0), 2);
  ASSERT_GE(fill.work, 0);
  const Compute& work = workload.computes.at(static_cast<std::size_t>(fill.work));
  EXPECT_EQ(work.read, 0);
  EXPECT_EQ(work.written, 400);
}

TEST(PyTorchTrace, ASchemaThatIsNotKnownIsSaid) {
  EXPECT_TRUE(test::has_notice(read_torch(trace_text({std::string(kRoot)}, "2.0.0")),
                               "schema 2.0.0 is not known"));
}

TEST(PyTorchTrace, TheOldestSchemaHasListsBesideEachOther) {
  const std::string node =
      R"({"name": "aten::mm", "id": 2, "parent": 1, "inputs": [[3, 4, 0, 6, 4, "cuda:0"], [5, 6, 0, 6, 4, "cuda:0"]], )"
      R"("input_shapes": [[2, 3], [3, 2]], "input_types": ["Tensor<double>", "Tensor<double>"], )"
      R"("outputs": [[7, 8, 0, 4, 4, "cuda:0"]], "output_shapes": [[2, 2]], "output_types": ["Tensor<double>"]})";
  const std::string root = R"({"name": "root", "id": 1, "parent": 1, "inputs": [], "outputs": []})";
  const Workload workload = read_torch(trace_text({root, with_parentheses(node)}, "1.0.1"));
  EXPECT_EQ(workload.computes.at(0).product.k, 3);
  EXPECT_EQ(workload.computes.at(0).product.type, DataType::float64);
}

std::string parameters(int id, std::string_view name, std::string_view attributes = {}) {
  const std::string in = "[[" + tensor(20) + "], 5, [\"3\", \"dp\"], 0, \"" + std::string(name) +
                         "\", [], [], 0, 1, 2]";
  return node_text(
      id, "record_param_comms", 1, in, "[[[100]], [], [[], []], [], [], [], [], [], [], []]",
      R"(["GenericList[Tensor<float>]", "Int", "Tuple[String,String]", "Int", "String", "GenericList[]", "GenericList[]", "Int", "Int", "Int"])",
      "[[" + tensor(21) + "]]", attributes);
}

TEST(PyTorchTrace, CallsHaveTheirGroupAndWaitForWhatWroteTheirTensors) {
  const std::string group =
      R"(["[{\"pg_name\": \"3\", \"pg_desc\": \"dp\", \"ranks\": [0, 1], \"group_size\": 2, \"group_count\": 1}]"])";
  const std::vector<std::string> nodes{
      std::string(kRoot),
      node_text(2, "## process_group:init ##", 1, group, "[[]]", R"(["String"])"),
      node_text(3, "aten::relu", 1, "[" + tensor(10) + "]", "[[100]]", R"(["Tensor<float>"])",
                "[" + tensor(20) + "]"),
      parameters(4, "all_gather"),
      node_text(5, "nccl:all_gather", 4, "[" + tensor(20) + "]"),
      node_text(6, "aten::neg", 1, "[" + tensor(10) + "]", "[[100]]", R"(["Tensor<float>"])",
                "[" + tensor(22) + "]"),
      parameters(7, "wait"),
      node_text(8, "aten::neg", 1, "[" + tensor(21) + "]", "[[100]]", R"(["Tensor<float>"])",
                "[" + tensor(23) + "]"),
  };
  const Workload workload = read_torch(trace_text(nodes), {.replicate = 2});
  const Trace& trace = test::trace_of(workload, 0);
  ASSERT_EQ(trace.nodes.size(), 4u);
  ASSERT_EQ(workload.collectives.size(), 1u);
  EXPECT_EQ(workload.collectives[0].kind, Collective::all_gather);
  EXPECT_EQ(workload.collectives[0].bytes, 800);
  EXPECT_EQ(workload.collectives[0].type, DataType::float32);
  EXPECT_EQ(workload.families[0].name, "3");
  EXPECT_EQ(waits_of(trace, 4), (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(waits_of(trace, 6), (std::vector<std::uint64_t>{}));
  EXPECT_EQ(waits_of(trace, 8), (std::vector<std::uint64_t>{4}));
}

TEST(PyTorchTrace, AttributesOfACallGoBeforeItsInputs) {
  const std::string attributes =
      R"({"name": "collective_name", "type": "string", "value": "allreduce"}, {"name": "dtype", "type": "string", "value": "Half"}, )"
      R"({"name": "in_msg_nelems", "type": "uint64", "value": 64}, {"name": "out_msg_nelems", "type": "uint64", "value": 64}, )"
      R"({"name": "pg_name", "type": "string", "value": "9"}, {"name": "pg_size", "type": "uint64", "value": 2}, )"
      R"({"name": "global_rank_start", "type": "uint64", "value": 0}, {"name": "global_rank_stride", "type": "uint64", "value": 1})";
  const Workload workload = read_torch(
      trace_text({std::string(kRoot), parameters(4, "all_gather", attributes)}), {.replicate = 4});
  EXPECT_EQ(workload.collectives.at(0).kind, Collective::all_reduce);
  EXPECT_EQ(workload.collectives.at(0).bytes, 128);
  EXPECT_EQ(workload.families.at(0).groups, (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
}

TEST(PyTorchTrace, ALinkedTraceHasKernelsAndTimes) {
  const Workload workload = read_torch(trace_text({
      std::string(kRoot),
      node_text(2, "aten::mm", 1, "[]", "[[4, 25], [25, 8]]",
                R"(["Tensor<float>", "Tensor<float>"])", "[]", {},
                R"("ts": 1000.5, "inclusive_dur": 9, "exclusive_dur": 4)"),
      node_text(3, "aten::relu", 1, "[]", "[]", "[]", "[]", {},
                R"("ts": 1010, "exclusive_dur": 3, "inter_thread_dep": 2, "sync_dep": [90])"),
      node_text(90, "sgemm_kernel", 2, "[]", "[]", "[]", "[]", {},
                R"("cat": "kernel", "ts": 1002, "exclusive_dur": 6, "stream": 7)"),
  }));
  const Trace& trace = test::trace_of(workload, 0);
  const Node& kernel = node_with(trace, 90);
  EXPECT_EQ(kernel.kind, NodeKind::compute);
  EXPECT_EQ(workload.streams[kernel.stream].name, "stream 7");
  EXPECT_EQ(kernel.recorded, Time::from_us(6));
  EXPECT_EQ(kernel.recorded_begin, Time::from_ns(1500));
  EXPECT_EQ(workload.computes.at(static_cast<std::size_t>(kernel.work)).product.k, 25);
  EXPECT_EQ(waits_of(trace, 90), (std::vector<std::uint64_t>{2}));
  EXPECT_EQ(waits_of(trace, 3), (std::vector<std::uint64_t>{2, 90}));
  EXPECT_EQ(node_with(trace, 3).kind, NodeKind::host);
}

TEST(PyTorchTrace, WhatIsRefused) {
  const auto torch_refusal = [](const std::string& text) {
    const Folder folder;
    return failure_of(folder, {.path = folder.write("t.json", text)});
  };
  EXPECT_EQ(torch_refusal(trace_text({std::string(kRoot), parameters(4, "all_gather")})),
            "t.json: error: node 4 'record_param_comms' is in process group '3' with rank 1, but "
            "there is a trace "
            "of rank 0 only\n"
            "  hint: give the traces of all ranks, or --replicate 2 makes the others from it");
  EXPECT_EQ(torch_refusal(trace_text({std::string(kRoot), node_text(5, "a", 6),
                                      node_text(6, "b", 7), node_text(7, "c", 5)})),
            "t.json: error: node 5 'a' is called by itself, by way of those that it calls");
  EXPECT_EQ(torch_refusal(R"({"schema": "1.0.1", "nodes": [{"id": 3, "name": 7, "parent": 1}]})"),
            "t.json: error: node 3 has no name");
  EXPECT_EQ(torch_refusal(trace_text(
                {std::string(kRoot), node_text(5, "a", 1),
                 node_text(5, "b", 1, "[" + tensor(1) + "]", "[]", "[]", "[" + tensor(2) + "]"),
                 node_text(5, "c", 1, "[" + tensor(1) + "]", "[]", "[]", "[" + tensor(2) + "]")})),
            "t.json: error: node 5 'c' has an id that another node has");
  EXPECT_EQ(torch_refusal(R"({"schema": "1.0.1", "nodes": [{"id": 3, "name": "a"}]})"),
            "t.json: error: node 'a' has no ctrl_deps");
  EXPECT_EQ(torch_refusal(R"({"schema": "1.0.1", "nodes": [{"id": -3, "name": "a"}]})"),
            "t.json: error: a node's id is no number");
  EXPECT_EQ(torch_refusal("{\"schema\": \"1.0.1\",\n\"nodes\": [{\"id\": 3, }]}"),
            "t.json:2:21: error: the JSON text is malformed here");
}

TEST(PyTorchShapes, ProductsOfEveryOperator) {
  struct Case {
    std::string_view name, shapes;
    std::int64_t m, n, k, batch;
    bool accumulate;
  };
  for (const Case& one :
       {Case{"aten::mm", "[[2, 3], [3, 5]]", 2, 5, 3, 1, false},
        Case{"aten::bmm", "[[7, 2, 3], [7, 3, 5]]", 2, 5, 3, 7, false},
        Case{"aten::addmm", "[[5], [2, 3], [3, 5], [], []]", 2, 5, 3, 1, false},
        Case{"aten::addmm", "[[2, 5], [2, 3], [3, 5], [], []]", 2, 5, 3, 1, true},
        Case{"aten::baddbmm", "[[7, 2, 5], [7, 2, 3], [7, 3, 5]]", 2, 5, 3, 7, true},
        Case{"aten::linear", "[[4, 2, 3], [5, 3], [5]]", 8, 5, 3, 1, false},
        Case{"aten::matmul", "[[4, 6, 2, 3], [4, 6, 3, 5]]", 2, 5, 3, 24, false},
        Case{"aten::matmul", "[[4, 2, 3], [3, 5]]", 8, 5, 3, 1, false},
        Case{"aten::_scaled_mm", "[[2, 3], [3, 5], [], []]", 2, 5, 3, 1, false}}) {
    SCOPED_TRACE(one.name);
    const auto product = product_of(one.name, parse_shapes(one.shapes).value(), {});
    ASSERT_TRUE(product);
    EXPECT_EQ(product->product.m, one.m);
    EXPECT_EQ(product->product.n, one.n);
    EXPECT_EQ(product->product.k, one.k);
    EXPECT_EQ(product->product.batch, one.batch);
    EXPECT_EQ(product->product.accumulate, one.accumulate);
  }
  for (const auto& [name, shapes] : {std::pair{"aten::mm", "[[2, 3], [4, 5]]"},
                                     {"aten::mm", "[[2, 3]]"},
                                     {"aten::mm", "[[2], [2]]"},
                                     {"aten::add", "[[2, 3], [3, 5]]"},
                                     {"aten::mm", "[[0, 3], [3, 5]]"},
                                     {"aten::mm", "[[2, 3], [[3, 5], [3, 5]]]"}})
    EXPECT_FALSE(product_of(name, parse_shapes(shapes).value(), {})) << name << shapes;
  EXPECT_FALSE(
      product_of("aten::mm", parse_shapes("[[2, 3], [3, 5]]").value(), {"Tensor(quaternion)"}));
}

TEST(PyTorchShapes, TextsThatAreNoShapes) {
  for (const char* text :
       {"", "[", "[[1, 2", "[1]", "[[x]]", "[[1], [2]", "[[[[[[[[[[[[1]]]]]]]]]]]]"})
    EXPECT_FALSE(parse_shapes(text)) << text;
  EXPECT_EQ(parse_shapes("[]").value().size(), 0u);
  EXPECT_EQ(elements_of(parse_shapes("[[[2, 3], [4]]]").value()[0]), 10);
  EXPECT_EQ(elements_of(parse_shapes("[[4611686018427387904, 4]]").value()[0]), 0)
      << "more than fit";
}

TEST(PyTorchCalls, NamesTellTheKind) {
  for (const auto& [name, kind] : {std::pair{"allreduce", TorchCallKind::all_reduce},
                                   {"nccl:all_reduce", TorchCallKind::all_reduce},
                                   {"allreduce_coalesced", TorchCallKind::all_reduce},
                                   {"_allgather_base", TorchCallKind::all_gather},
                                   {"nccl:_all_gather_base", TorchCallKind::all_gather},
                                   {"allgather_into_tensor_coalesced", TorchCallKind::all_gather},
                                   {"_reduce_scatter_base", TorchCallKind::reduce_scatter},
                                   {"all_to_allv", TorchCallKind::all_to_all},
                                   {"c10d::alltoall_base_", TorchCallKind::all_to_all},
                                   {"broadcast", TorchCallKind::broadcast},
                                   {"_broadcast_oop", TorchCallKind::broadcast},
                                   {"reduce", TorchCallKind::reduce},
                                   {"_reduce_oop", TorchCallKind::reduce},
                                   {"barrier", TorchCallKind::barrier},
                                   {"gather", TorchCallKind::gather},
                                   {"scatter", TorchCallKind::scatter},
                                   {"send", TorchCallKind::send},
                                   {"recv", TorchCallKind::receive},
                                   {"wait", TorchCallKind::none},
                                   {"init", TorchCallKind::none},
                                   {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevComm*)",
                                    TorchCallKind::reduce_scatter},
                                   {"teleport", TorchCallKind::unknown}})
    EXPECT_EQ(torch_call_kind(name), kind) << name;
}

}  // namespace
}  // namespace hemiola::workload
