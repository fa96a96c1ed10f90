// Kineto traces: what becomes of kernels, launches and calls.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "workload/testing/kineto.h"
#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::call_of;
using test::failure_of;
using test::Folder;
using test::kAllReduce;
using test::KinetoText;
using test::kJob;

Workload read_text(const std::string& text, TraceRequest request = {}) {
  const Folder folder;
  request.path = folder.write("k.json", text);
  return read_workload(request);
}
std::string kineto_refusal(const std::string& text, TraceRequest request = {}) {
  const Folder folder;
  request.path = folder.write("k.json", text);
  return failure_of(folder, request);
}

const Node& named(const Workload& workload, std::string_view name) {
  for (const Node& node : workload.classes.at(0).trace->nodes) {
    if (workload.names[node.name] == name) return node;
  }
  throw std::runtime_error("no such node");
}
std::vector<std::string> waits(const Workload& workload, const Node& node) {
  std::vector<std::string> names;
  const Trace& trace = *workload.classes.at(0).trace;
  for (std::uint32_t d = 0; d < node.dependencies; ++d)
    names.push_back(
        workload.names[trace.nodes[trace.dependencies[node.first_dependency + d]].name]);
  return names;
}

TEST(KinetoTrace, KernelsRunOnTheirStreamsAfterTheirLaunch) {
  KinetoText text;
  text.add("cpu_op", "aten::relu", 1, 0, 10);
  text.launch(1, 3, "relu_kernel", 7, 20, 4.5);
  text.add("cpu_op", "aten::add", 1, 30, 10);
  text.launch(2, 35, "add_kernel", 8, 60, 5);
  const Workload workload = read_text(text.str());
  EXPECT_EQ(workload.ranks, 1);
  const Node& relu = named(workload, "relu_kernel");
  EXPECT_EQ(relu.kind, NodeKind::compute);
  EXPECT_EQ(relu.work, -1);
  EXPECT_EQ(relu.recorded, Time::from_ns(4500));
  EXPECT_EQ(relu.recorded_begin, Time::from_us(20));
  EXPECT_EQ(workload.streams[relu.stream].name, "stream 7");
  EXPECT_TRUE(workload.streams[relu.stream].in_order);
  EXPECT_EQ(waits(workload, relu), (std::vector<std::string>{"aten::relu"}));
  // The host: 5 us to the end of the first launch, 32 us to that of the second.
  EXPECT_EQ(named(workload, "aten::relu").kind, NodeKind::host);
  EXPECT_EQ(named(workload, "aten::relu").recorded, Time::from_us(5));
  EXPECT_EQ(named(workload, "aten::add").recorded, Time::from_us(32));
  EXPECT_EQ(workload.streams[named(workload, "add_kernel").stream].name, "stream 8");
}

TEST(KinetoTrace, TheHostWaitsWhereItSynchronised) {
  KinetoText text;
  text.launch(1, 0, "long_kernel", 7, 5, 100);
  text.add("cuda_runtime", "cudaStreamSynchronize", 1, 10, 96, R"("correlation": 5)");
  text.launch(2, 110, "next_kernel", 7, 115, 5);
  const Workload workload = read_text(text.str());
  const Trace& trace = *workload.classes.at(0).trace;
  const Node& next = named(workload, "next_kernel");
  const Node& launch = trace.nodes[trace.dependencies[next.first_dependency]];
  EXPECT_EQ(waits(workload, launch), (std::vector<std::string>{"long_kernel"}));
  EXPECT_EQ(launch.recorded, Time::from_us(6)) << "not the 96 us that it waited";
}

TEST(KinetoTrace, ACollectiveHasItsGroupAndTheSizeOfNcclTests) {
  KinetoText text{std::string(kJob)};
  text.launch(1, 0, "gemm", 7, 10, 10);
  text.launch(2, 5, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)", 20, 25, 30, kAllReduce);
  text.launch(
      3, 8, "ncclDevKernel_AllGather_RING_LL(args)", 20, 60, 30,
      R"("Collective name": "_allgather_base", "In msg nelems": 100, "Out msg nelems": 200, )"
      R"("Group size": 2, "dtype": "Float", "Process Group Name": "7", "Process Group Ranks": "[0, 1]")");
  text.launch(
      4, 11, "ncclDevKernel_ReduceScatter(args)", 20, 100, 30,
      R"("Collective name": "reduce_scatter_tensor_coalesced", "In msg nelems": 200, )"
      R"("Out msg nelems": 100, "Group size": 2, "dtype": "Long", "Process Group Name": "7", )"
      R"("Process Group Ranks": "[0, 1]")");
  const Workload workload = read_text(text.str(), {.replicate = 2});
  EXPECT_EQ(workload.families.at(0).name, "7");
  EXPECT_EQ(workload.families.at(0).groups, (std::vector<std::vector<int>>{{0, 1}}));
  ASSERT_EQ(workload.collectives.size(), 3u);
  EXPECT_EQ(workload.collectives[0].kind, Collective::all_reduce);
  EXPECT_EQ(workload.collectives[0].bytes, 2048);
  EXPECT_EQ(workload.collectives[0].type, DataType::bfloat16);
  EXPECT_EQ(workload.collectives[1].kind, Collective::all_gather);
  EXPECT_EQ(workload.collectives[1].bytes, 800);
  EXPECT_EQ(workload.collectives[2].kind, Collective::reduce_scatter);
  EXPECT_EQ(workload.collectives[2].bytes, 1600);
  const Node& reduce = named(workload, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)");
  EXPECT_EQ(waits(workload, reduce), (std::vector<std::string>{"gemm", "cudaLaunchKernel"}))
      << "what was on the current stream before, and the launch";
}

TEST(KinetoTrace, AfterAWaitOfTheStreamAKernelWaitsForTheCommunication) {
  KinetoText text{std::string(kJob)};
  text.launch(1, 0, "before", 7, 10, 10);
  text.launch(2, 5, "ncclDevKernel_AllReduce(args)", 20, 25, 30, kAllReduce);
  text.launch(3, 8, "meanwhile", 7, 26, 5);
  text.add("cuda_runtime", "cudaStreamWaitEvent", 1, 11, 1, R"("correlation": 9)");
  text.launch(4, 13, "after", 7, 56, 5);
  text.launch(5, 16, "and then", 7, 62, 5);
  const Workload workload = read_text(text.str(), {.replicate = 2});
  EXPECT_EQ(waits(workload, named(workload, "meanwhile")),
            (std::vector<std::string>{"cudaLaunchKernel"}));
  EXPECT_EQ(waits(workload, named(workload, "after")),
            (std::vector<std::string>{"ncclDevKernel_AllReduce(args)", "cudaLaunchKernel"}));
  EXPECT_EQ(waits(workload, named(workload, "and then")),
            (std::vector<std::string>{"cudaLaunchKernel"}));
}

TEST(KinetoTrace, OlderTracesSayTheShapesOfWhatIsSent) {
  KinetoText text{std::string(kJob)};
  text.add("cpu_op", "record_param_comms", 1, 0, 20,
           R"("Input Dims": [[24], []], "Input type": ["long", ""])");
  text.add("user_annotation", "nccl:reduce_scatter", 1, 1, 18,
           R"("Input Dims": [[6, 4]], "Input type": ["c10::Half"])");
  text.launch(1, 5, "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", 20, 25, 30);
  const Workload workload = read_text(text.str(), {.replicate = 2});
  EXPECT_EQ(workload.collectives.at(0).kind, Collective::reduce_scatter);
  EXPECT_EQ(workload.collectives.at(0).bytes, 48);
  EXPECT_EQ(workload.families.at(0).name, "stream 20");
  EXPECT_TRUE(test::has_notice(workload,
                               "the group of stream 20 is inferred: it is the only "
                               "communicator of the trace, of a job of 2 ranks"));
  EXPECT_FALSE(workload.families.at(0).inferred.empty());
}

TEST(KinetoTrace, TheOperatorThatLaunchedAProductSaysItsShape) {
  KinetoText text;
  text.add(
      "cpu_op", "aten::linear", 1, 0, 50,
      R"("Input Dims": [[4, 128, 64], [32, 64], [32]], "Input type": ["float", "float", "float"])");
  text.add(
      "cpu_op", "aten::addmm", 1, 1, 40,
      R"("Input Dims": [[32], [512, 64], [64, 32], [], []], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])");
  text.launch(1, 5, "splitKreduce_kernel", 7, 20, 40);
  text.launch(2, 10, "ampere_bf16_s16816gemm_64x64", 7, 70, 10);
  const Workload workload = read_text(text.str());
  const Node& gemm = named(workload, "ampere_bf16_s16816gemm_64x64");
  ASSERT_GE(gemm.work, 0);
  const Compute& work = workload.computes.at(static_cast<std::size_t>(gemm.work));
  EXPECT_EQ(work.product.m, 512);
  EXPECT_EQ(work.product.n, 32);
  EXPECT_EQ(work.product.k, 64);
  EXPECT_EQ(work.product.type, DataType::bfloat16);
  EXPECT_EQ(named(workload, "splitKreduce_kernel").work, -1);
}

TEST(KinetoTrace, CopiesAreBetweenMemories) {
  KinetoText text;
  text.add("cuda_runtime", "cudaMemcpyAsync", 1, 0, 2, R"("correlation": 1)");
  text.add("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 5, 3,
           R"("stream": 7, "correlation": 1, "bytes": 4096)");
  const Workload workload = read_text(text.str());
  const Node& copy = named(workload, "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(copy.kind, NodeKind::memory);
  EXPECT_EQ(workload.computes.at(static_cast<std::size_t>(copy.work)).read, 4096);
}

TEST(KinetoTrace, MessagesHaveTheirPeers) {
  KinetoText text{std::string(kJob)};
  text.launch(
      1, 5, "ncclDevKernel_SendRecv(args)", 20, 25, 30,
      R"("Collective name": "send", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, )"
      R"("dtype": "Float", "Process Group Name": "7", "Process Group Ranks": "[0, 1]", "Dst Rank": 1)");
  KinetoText other{R"("distributedInfo": {"rank": 1, "world_size": 2}, )"};
  other.launch(
      1, 5, "ncclDevKernel_SendRecv(args)", 20, 25, 30,
      R"("Collective name": "recv", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 2, )"
      R"("dtype": "Float", "Process Group Name": "7", "Process Group Ranks": "[0, 1]", "Src Rank": 0)");
  const Folder folder;
  folder.write("first.json", other.str());  // ranks are told by content
  folder.write("second.json", text.str());
  const Workload workload = read_workload({.path = folder.path()});
  ASSERT_EQ(workload.messages.size(), 1u);
  EXPECT_EQ(workload.messages[0].bytes, 32);
  EXPECT_EQ(workload.families[0].groups, (std::vector<std::vector<int>>{{0, 1}}));
  for (const Node& node : test::trace_of(workload, 0).nodes)
    EXPECT_NE(node.kind, NodeKind::receive);
}

TEST(KinetoTrace, LongListsOfRanksAreCutAndFollowFromTheirStride) {
  KinetoText text{R"("distributedInfo": {"rank": 0, "world_size": 128}, )"};
  text.launch(
      1, 5, "ncclDevKernel_AllReduce(args)", 20, 25, 30,
      R"("Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 64, )"
      R"("dtype": "Float", "Process Group Name": "7", "Process Group Ranks": "[0, 2, ..., 126]", )"
      R"("Global rank start": 0, "Global rank stride": 2)");
  const Workload workload = read_text(text.str(), {.replicate = 128});
  ASSERT_EQ(workload.families.at(0).groups.size(), 2u);
  EXPECT_EQ(workload.families.at(0).groups[1].back(), 127);
}

TEST(KinetoTrace, CallsWithoutASizeAreRefusedOrTakenFromAFile) {
  KinetoText text{std::string(kJob)};
  text.launch(1, 5, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 20, 25, 30);
  text.launch(2, 8, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 20, 60, 30);
  EXPECT_EQ(
      kineto_refusal(text.str(), {.replicate = 2}),
      "k.json: error: 2 calls say no size: the first is node 1 "
      "'ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)' at 20 us\n"
      "  hint: --call-sizes names a file with the bytes of calls, by name or number; --lenient "
      "keeps the "
      "time that was recorded");
  const Workload kept = read_text(text.str(), {.lenient = true, .replicate = 2});
  EXPECT_EQ(kept.classes[0].trace->nodes[1].kind, NodeKind::recorded_call);
  const Folder folder;
  const std::string yaml =
      folder.write("sizes.yaml", "# both\nncclKernel_AllReduce_RING_LL_Sum_float: 1 MiB\n1: 64\n");
  const Workload workload = read_text(text.str(), {.sizes = yaml, .replicate = 2});
  ASSERT_EQ(workload.collectives.size(), 2u);
  EXPECT_EQ(workload.collectives[0].bytes, 1 << 20);
  EXPECT_EQ(workload.collectives[1].bytes, 64) << "the number goes before the name";
  const std::string csv = folder.write("sizes.csv", "call,bytes\n0,128\n1,256\n");
  EXPECT_EQ(read_text(text.str(), {.sizes = csv, .replicate = 2}).collectives[0].bytes, 128);
}

TEST(KinetoTrace, NamesWithCommasHaveSizesToo) {
  KinetoText text{std::string(kJob)};
  text.launch(1, 5, "ncclDevKernel_AllGather(ncclDevComm*, unsigned long, ncclWork*)", 20, 25, 30);
  const Folder folder;
  for (const std::string line :
       {"\"ncclDevKernel_AllGather(ncclDevComm*, unsigned long, ncclWork*)\": 4 KiB\n",
        "ncclDevKernel_AllGather(ncclDevComm*, unsigned long, ncclWork*): 4096\n",
        "'ncclDevKernel_AllGather(ncclDevComm*, unsigned long, ncclWork*)',4096\n",
        "ncclDevKernel_AllGather: 4096\n"}) {
    const std::string sizes = folder.write("sizes", line);
    EXPECT_EQ(read_text(text.str(), {.sizes = sizes, .replicate = 2}).collectives.at(0).bytes, 4096)
        << line;
  }
}

TEST(KinetoTrace, CallsOfUnknownRanksAreRefusedUntilSomebodySaysThem) {
  KinetoText text;  // of no job that is named
  text.add("cpu_op", "nccl:all_reduce", 1, 0, 10,
           R"("Input Dims": [[256]], "Input type": ["float"])");
  text.launch(1, 5, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 20, 25, 30);
  EXPECT_EQ(
      kineto_refusal(text.str(), {.replicate = 4}),
      "k.json: error: node 1 'ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)': nothing "
      "says which ranks the 1 call on stream 20 is among\n"
      "  hint: --groups FILE says it: {\"stream 20\": [0, 1]}, or \"all\"; --lenient keeps the "
      "time that was recorded");
  const Folder folder;
  const auto given = [&](const std::string& groups) {
    return read_text(text.str(), {.groups = folder.write("groups.json", groups), .replicate = 4});
  };
  EXPECT_EQ(given(R"({"stream 20": [0, 2]})").families.at(0).groups,
            (std::vector<std::vector<int>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(given(R"({"stream 20": "all"})").families.at(0).groups.size(), 1u);
  EXPECT_EQ(given(R"({"stream 20": [[0, 1], [2, 3]]})").families.at(0).groups.size(), 2u);
  const Workload kept = read_text(text.str(), {.lenient = true, .replicate = 4});
  EXPECT_EQ(named(kept, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)").kind,
            NodeKind::recorded_call);
  // A stream whose calls name their group cannot be given.
  KinetoText named_group{std::string(kJob)};
  named_group.launch(1, 5, "ncclDevKernel_AllReduce(args)", 20, 25, 30, kAllReduce);
  const std::string refusal = kineto_refusal(
      named_group.str(), {.groups = folder.write("g", R"({"stream 20": [0, 1]})"), .replicate = 2});
  EXPECT_NE(refusal.find("is on stream 20, and the trace names its group: '7'"), std::string::npos);
}

TEST(KinetoTrace, KernelsOfLibrariesCommunicate) {
  KinetoText text;
  text.launch(1, 0, "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*)", 7, 5,
              50);
  text.launch(2, 10, "relu_kernel", 7, 60, 5);
  const Workload workload = read_text(text.str());
  const Node& dispatch =
      named(workload, "void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*)");
  EXPECT_EQ(dispatch.kind, NodeKind::recorded_call);
  EXPECT_EQ(workload.names.at(static_cast<std::size_t>(dispatch.work)), "DeepEP dispatch");
  EXPECT_EQ(dispatch.recorded, Time::from_us(50));
  EXPECT_EQ(named(workload, "relu_kernel").kind, NodeKind::compute);
}

TEST(KinetoTrace, SplitsMakeAnAllToAllUneven) {
  KinetoText text{std::string(kJob)};
  text.launch(1, 5, "ncclDevKernel_SendRecv(args)", 20, 25, 30,
              R"("Collective name": "all_to_allv", "In msg nelems": 400, "Out msg nelems": 400, )"
              R"("Group size": 2, "dtype": "Float", "In split size": "[3, 1]", )"
              R"("Process Group Name": "0", "Process Group Ranks": "[0, 1]")");
  const Workload workload = read_text(text.str(), {.replicate = 2});
  ASSERT_EQ(workload.collectives.size(), 1u);
  EXPECT_EQ(workload.collectives[0].bytes, 1600);
  ASSERT_EQ(workload.collectives[0].splits, 0);
  EXPECT_EQ(workload.splits.at(0), (Splits{1200, 400, 400, 1200}));
}

/// What rank 0 of two sends and receives in one kernel.
KinetoText batch_of_messages(std::string_view job) {
  KinetoText text{std::string(job)};
  text.add("cpu_op", "nccl:send 0->1", 1, 0, 2,
           R"("Input Dims": [[256]], "Input type": ["float"])");
  text.add("cpu_op", "nccl:recv 0<-1", 1, 3, 1,
           R"("Input Dims": [[128]], "Input type": ["float"])");
  text.launch(1, 5, "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", 20, 25, 30);
  text.launch(2, 60, "ncclDevKernel_AllReduce(args)", 20, 65, 5, kAllReduce);
  return text;
}

TEST(KinetoTrace, AKernelOfMessagesIsEachOfThem) {
  const Folder folder;
  folder.write("t.0.json", batch_of_messages(kJob).str());
  KinetoText other{R"("distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2}, )"};
  other.add("cpu_op", "nccl:recv 1<-0", 1, 0, 2,
            R"("Input Dims": [[256]], "Input type": ["float"])");
  other.add("cpu_op", "nccl:send 1->0", 1, 3, 1,
            R"("Input Dims": [[128]], "Input type": ["float"])");
  other.launch(1, 5, "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)", 20, 25, 30);
  other.launch(2, 60, "ncclDevKernel_AllReduce(args)", 20, 65, 5, kAllReduce);
  folder.write("t.1.json", other.str());
  const Workload workload = read_workload({.path = folder / "t"});
  ASSERT_EQ(workload.messages.size(), 2u);
  for (const RankClass& one : workload.classes) {
    std::vector<const Node*> messages;
    for (const Node& node : one.trace->nodes) {
      if (node.kind == NodeKind::send || node.kind == NodeKind::receive) messages.push_back(&node);
      if (node.kind == NodeKind::collective) {
        EXPECT_GE(node.dependencies, 2u) << "it waits for the launch, and for both messages";
      }
    }
    ASSERT_EQ(messages.size(), 2u);
    EXPECT_NE(messages[0]->stream, messages[1]->stream) << "they are under way together";
  }
}

TEST(KinetoTrace, TheDeviceIsRead) {
  KinetoText text{
      R"("deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "totalGlobalMem": 85000000000}], )"};
  text.launch(1, 0, "a", 7, 5, 5);
  const Workload workload = read_text(text.str());
  ASSERT_TRUE(workload.recorded_on);
  EXPECT_EQ(workload.recorded_on->name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(workload.recorded_on->compute_units, 108);
}

TEST(KinetoTrace, KernelsShareTheBytesOfTheirOperator) {
  KinetoText text;
  text.add("cpu_op", "aten::add", 1, 0, 20,
           R"("Input Dims": [[1000], [1000], []], "Input type": ["float", "float", "Scalar"])");
  text.launch(1, 3, "first", 7, 30, 3);
  text.launch(2, 8, "second", 7, 40, 1);
  const Workload workload = read_text(text.str());
  const auto work = [&](std::string_view name) {
    return workload.computes.at(static_cast<std::size_t>(named(workload, name).work));
  };
  EXPECT_TRUE(work("first").concluded);
  EXPECT_EQ(work("first").read, 6000);
  EXPECT_EQ(work("first").written, 3000);
  EXPECT_EQ(work("second").read, 2000);
}

TEST(KinetoTrace, FilesOfSizesThatAreNone) {
  const Folder folder;
  folder.write("k.json", KinetoText().launch(1, 0, "a", 7, 5, 5).str());
  const auto refused = [&](const std::string& sizes) {
    return failure_of(folder, {.path = folder / "k.json", .sizes = folder.write("sizes", sizes)});
  };
  const std::string hint =
      "\n  hint: a line is a name or number and bytes: 'nccl:all_reduce: 64 MiB' or '3,1048576'";
  EXPECT_EQ(refused("a: 1\nb: much\n"), "sizes:2: error: 'b: much' is no name with a size" + hint);
  EXPECT_EQ(refused("a: 0\n"), "sizes:1: error: 'a: 0' is no name with a size" + hint);
  EXPECT_EQ(refused("a: 1\na: 2\n"), "sizes:2: error: 'a' has two sizes");
  EXPECT_EQ(refused("# nothing\n"), "sizes: error: has no size in it");
}

TEST(KinetoTrace, WhatIsRefused) {
  const auto call = [](std::string_view arguments) {
    return kineto_refusal(KinetoText{std::string(kJob)}
                              .launch(1, 5, "ncclDevKernel_X(args)", 20, 25, 30, arguments)
                              .str(),
                          {.replicate = 2});
  };
  EXPECT_EQ(call(R"("Collective name": "teleport", "In msg nelems": 1, "dtype": "Float")"),
            "k.json: error: node 1 'ncclDevKernel_X(args)' calls 'teleport', which is no "
            "communication that is "
            "known");
  EXPECT_EQ(
      call(
          R"("Collective name": "allreduce", "In msg nelems": 0, "Out msg nelems": 0, "dtype": "Float")"),
      "k.json: error: node 1 'ncclDevKernel_X(args)' is a call that moves 0 bytes\n"
      "  hint: --lenient lets it take the time that was recorded");
  EXPECT_EQ(
      call(
          R"("Collective name": "allreduce", "In msg nelems": 4, "dtype": "Float", "Group size": 3, "Process Group Name": "5")"),
      "k.json: error: node 1 'ncclDevKernel_X(args)' is in process group '5' of 3 ranks, and "
      "nothing says "
      "which they are\n"
      "  hint: give a file of process groups: {\"5\": [0, 1]}");
  EXPECT_EQ(
      kineto_refusal(KinetoText{std::string(kJob)}
                         .launch(1, 5, "ncclDevKernel_AllReduce(args)", 20, 25, 30, kAllReduce)
                         .str()),
      "k.json: error: node 1 'ncclDevKernel_AllReduce(args)' is in process group '7' with rank 1, "
      "but there "
      "is a trace of rank 0 only\n"
      "  hint: give the traces of all ranks, or --replicate 2 makes the others from it");
  EXPECT_EQ(
      kineto_refusal(KinetoText().add("cpu_op", "aten::relu", 1, 0, 10).str()),
      "k.json: error: has nothing that a GPU did\n  hint: profile with ProfilerActivity.CUDA");
  KinetoText two;
  two.add("kernel", "a", 7, 0, 1, R"("device": 0, "stream": 7)")
      .add("kernel", "b", 7, 0, 1, R"("device": 1, "stream": 7)");
  EXPECT_EQ(kineto_refusal(two.str()),
            "k.json: error: is a trace of several GPUs: 0 and 1\n  hint: a rank has one GPU");
  EXPECT_EQ(kineto_refusal(
                R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "ts": "soon"}]})"),
            "k.json: error: event 'a' has no time and duration in microseconds");
  const std::string text = KinetoText().launch(1, 0, "a", 7, 5, 5).str();
  EXPECT_EQ(kineto_refusal(text.substr(0, 90)),
            "k.json:2:53: error: the JSON text ends too early\n  hint: the file may be truncated");
  EXPECT_EQ(kineto_refusal(R"({"traceEvents": [{"ph": "X"},, {}]})"),
            "k.json:1:30: error: the JSON text is malformed here");
  EXPECT_EQ(kineto_refusal(R"({"traceEvents": {"ph": "X"}})"),
            "k.json:1:17: error: is no trace: something else was expected here");
}

TEST(KinetoTrace, AKernelWithoutALaunchKeepsItsGap) {
  KinetoText text;
  text.add("kernel", "first", 7, 0, 10, R"("stream": 7, "correlation": 1)");
  text.add("kernel", "second", 7, 510, 10, R"("stream": 7, "correlation": 2)");
  const Workload workload = read_text(text.str());
  EXPECT_EQ(waits(workload, named(workload, "second")),
            (std::vector<std::string>{"until a launch"}));
  EXPECT_EQ(named(workload, "until a launch").recorded, Time::from_us(500));
  EXPECT_TRUE(
      test::has_notice(workload, "has no launch in the trace and waits for its stream only"));
}

}  // namespace
}  // namespace hemiola::workload
