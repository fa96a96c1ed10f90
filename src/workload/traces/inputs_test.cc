// Traces of others, as they are.
#include <gtest/gtest.h>

#include <map>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::failure_of;
using test::Folder;
using test::has_notice;

/// The number of nodes of a kind, of all classes.
std::int64_t count(const Workload& workload, NodeKind kind) {
  std::int64_t all = 0;
  for (const RankClass& one : workload.classes)
    for (const Node& node : one.trace->nodes) all += node.kind == kind ? 1 : 0;
  return all;
}

std::int64_t products(const Workload& workload) {
  std::int64_t all = 0;
  for (const RankClass& one : workload.classes) {
    for (const Node& node : one.trace->nodes) {
      if (node.kind != NodeKind::compute || node.work < 0) continue;
      all += workload.computes[static_cast<std::size_t>(node.work)].kind == Compute::Kind::product
                 ? 1
                 : 0;
    }
  }
  return all;
}

std::string refusal_of(const std::string& path) {
  try {
    read_workload({.path = path});
  } catch (const Failure& failure) {
    return failure.diagnostics().items().at(0).message;
  }
  return "no failure";
}

/// What a node takes: when each begins if streams and dependencies are kept and everything takes
/// the time that was recorded.
Time replay(const Workload& workload, const Trace& trace) {
  std::vector<Time> end(trace.nodes.size()), free(workload.streams.size());
  Time last{};
  for (std::size_t i = 0; i < trace.nodes.size(); ++i) {
    const Node& node = trace.nodes[i];
    Time begin = workload.streams[node.stream].in_order ? free[node.stream] : Time{};
    for (std::uint32_t d = 0; d < node.dependencies; ++d)
      begin = std::max(begin, end[trace.dependencies[node.first_dependency + d]]);
    end[i] = free[node.stream] = begin + node.recorded;
    last = std::max(last, end[i]);
  }
  return last;
}
Time recorded(const Trace& trace) {
  Time last{};
  for (const Node& node : trace.nodes) last = std::max(last, node.recorded_begin + node.recorded);
  return last;
}

TEST(TraceInputs, CollectivesOfAstraSim) {
  HEMIOLA_SHARED_INPUT(gather, "chakra/all_gather_8npus_1MB");
  const Workload workload = read_workload({.path = gather});
  EXPECT_EQ(workload.ranks, 8);
  ASSERT_EQ(workload.collectives.size(), 1u);
  EXPECT_EQ(workload.collectives[0].kind, Collective::all_gather);
  EXPECT_EQ(workload.collectives[0].bytes, 8 << 20) << "1 MiB of each rank";
  HEMIOLA_SHARED_INPUT(reduce, "chakra/all_reduce_8npus_1MB");
  EXPECT_EQ(read_workload({.path = reduce + "/all_reduce"}).collectives.at(0).bytes, 1 << 20);
}

TEST(TraceInputs, ALlamaOfEightRanks) {
  HEMIOLA_SHARED_INPUT(path, "chakra/llama_tiny_dp2tp2pp2");
  const Workload workload = read_workload({.path = path + "/llama_tiny"});
  EXPECT_EQ(workload.ranks, 8);
  EXPECT_EQ(workload.nodes(), 2816);
  EXPECT_EQ(count(workload, NodeKind::collective), 720);
  EXPECT_EQ(count(workload, NodeKind::compute), 2032);
  EXPECT_EQ(count(workload, NodeKind::send), 32);
  EXPECT_EQ(count(workload, NodeKind::receive), 32);
  EXPECT_TRUE(has_notice(workload, "process groups were taken from the file beside the traces"));
  // All ranks of a group make the same calls in the same order.
  std::map<std::pair<std::int32_t, int>, std::vector<std::int32_t>> calls;
  for (const RankClass& one : workload.classes) {
    for (const Node& node : one.trace->nodes) {
      if (node.kind != NodeKind::collective) continue;
      calls[{workload.collectives[static_cast<std::size_t>(node.work)].family, one.ranks.at(0)}]
          .push_back(node.work);
    }
  }
  for (const auto& [who, made] : calls) {
    const std::vector<int>& group =
        workload.families[static_cast<std::size_t>(who.first)].groups.at(0);
    EXPECT_EQ(made, (calls[{who.first, group.at(0)}]));
  }
}

TEST(TraceInputs, ARealTraceOfPyTorchAsChakra) {
  HEMIOLA_SHARED_INPUT(path, "chakra/real_pytorch");
  EXPECT_EQ(refusal_of(path),
            "node 216 'aten::flatten_dense_tensors(0)' depends on node 3, which is not there");
  const Workload workload = read_workload({.path = path, .lenient = true, .replicate = 8});
  EXPECT_EQ(workload.nodes(), 8 * 3664);
  EXPECT_EQ(count(workload, NodeKind::collective), 7);
  EXPECT_EQ(count(workload, NodeKind::host), 2448);
  EXPECT_TRUE(
      has_notice(workload, "ignored: a dependency on a node that is not there: 1277 times"));
  HEMIOLA_SHARED_INPUT(archive, "chakra/feeder_tests_trace.tar.gz");
  EXPECT_EQ(read_workload({.path = archive, .lenient = true}).nodes(), 3664);
}

TEST(TraceInputs, ExecutionTracesOfPyTorch) {
  HEMIOLA_SHARED_INPUT(path, "chakra/linear_et.json.gz");
  const Workload linear = read_workload({.path = path});
  EXPECT_EQ(linear.name, "linear_et");
  EXPECT_EQ(count(linear, NodeKind::compute), 219);
  EXPECT_EQ(products(linear), 62);
  for (const char* name : {"chakra/resnet_et.json.gz", "chakra/resnet_1gpu_et.json.gz"}) {
    HEMIOLA_SHARED_INPUT(file, name);
    const Workload resnet = read_workload({.path = file});
    EXPECT_EQ(count(resnet, NodeKind::collective), 21) << name;
    EXPECT_EQ(count(resnet, NodeKind::compute), 2217) << name;
    EXPECT_EQ(resnet.collectives.at(0).bytes, 212480) << name;
  }
  HEMIOLA_SHARED_INPUT(archive, "chakra/1.0.2-chakra.0.0.4.tgz");
  EXPECT_EQ(refusal_of(archive),
            "node 30 'record_param_comms' communicates in a group of all 2 ranks, but there is a "
            "trace of rank 0");
  const Workload gather = read_workload({.path = archive, .replicate = 2});
  EXPECT_EQ(count(gather, NodeKind::collective), 10);
  EXPECT_EQ(gather.collectives.at(0).bytes, 8);
}

TEST(TraceInputs, AKinetoTraceTakesAsLongAsItTook) {
  struct Case {
    const char* name;
    int ranks;
    double least;  ///< of the recorded time
  };
  for (const Case& one : {Case{"kineto/nccl_data.json.gz", 2, 0.999},
                          Case{"kineto/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 1, 0.98},
                          Case{"kineto/sampled_rank-0.json.gz", 128, 0.999}}) {
    HEMIOLA_SHARED_INPUT(path, one.name);
    const Workload workload = read_workload({.path = path, .replicate = one.ranks});
    const Trace& trace = *workload.classes.at(0).trace;
    const double share = replay(workload, trace).ns() / recorded(trace).ns();
    EXPECT_GT(share, one.least) << one.name;
    EXPECT_LT(share, 1.001) << one.name;
  }
}

TEST(TraceInputs, KinetoTracesOfEightRanksInAnArchive) {
  HEMIOLA_SHARED_INPUT(path, "kineto/dlrm_kineto.tar.gz");
  const Workload workload = read_workload({.path = path});
  EXPECT_EQ(workload.ranks, 8);
  EXPECT_EQ(count(workload, NodeKind::collective), 64);
  EXPECT_EQ(products(workload), 184);
  ASSERT_EQ(workload.families.size(), 1u);
  EXPECT_EQ(workload.families[0].groups.at(0).size(), 8u);
}

TEST(TraceInputs, KinetoTracesWithArgumentsOfCalls) {
  HEMIOLA_SHARED_INPUT(path, "kineto/nccl_data.json.gz");
  EXPECT_EQ(refusal_of(path),
            "node 11 'ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, "
            "ncclWork*)' is in process "
            "group '0' with rank 1, but there is a trace of rank 0 only");
  const Workload workload = read_workload({.path = path, .replicate = 2});
  EXPECT_EQ(count(workload, NodeKind::collective), 21);
  EXPECT_EQ(workload.collectives.at(0).kind, Collective::broadcast);
  EXPECT_EQ(workload.collectives.at(0).bytes, 212480);
}

TEST(TraceInputs, KinetoTracesThatLackWhatASimulationNeeds) {
  const auto refused = [](const char* name, int ranks) {
    try {
      read_workload({.path = test::shared_input(name), .replicate = ranks});
    } catch (const Failure& failure) {
      return failure.diagnostics().items().at(0).message;
    }
    return std::string("no failure");
  };
  HEMIOLA_SHARED_INPUT(path, "kineto/test.json.gz");
  EXPECT_EQ(refused("kineto/test.json.gz", 2),
            "4 calls say no size: the first is node 803 "
            "'ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)' at "
            "9.376 ms");
  const Workload workload = read_workload({.path = path, .lenient = true, .replicate = 2});
  EXPECT_EQ(count(workload, NodeKind::collective), 60);
  HEMIOLA_SHARED_INPUT(sampled, "kineto/sampled_rank-0.json.gz");
  const Workload cut = read_workload({.path = sampled, .replicate = 128});
  EXPECT_EQ(count(cut, NodeKind::collective), 10);
  EXPECT_TRUE(has_notice(cut, "the trace has no cudaStreamWaitEvent"));
}

}  // namespace
}  // namespace hemiola::workload
