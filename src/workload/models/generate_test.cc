#include "workload/models/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

using generated::nodes_named;
using generated::Simulation;
using generated::tiny_gpt;

const GroupFamily& family_named(const Workload& workload, std::string_view name) {
  for (const GroupFamily& family : workload.families) {
    if (family.name == name) return family;
  }
  ADD_FAILURE() << "no family " << name;
  return workload.families.front();
}

/// Nodes of a stage, by their names.
std::vector<std::string> order_of(const Workload& workload, int stage) {
  std::vector<std::string> names;
  for (const Node& node : workload.classes[static_cast<std::size_t>(stage)].trace->nodes)
    names.push_back(workload.names[node.name]);
  return names;
}

/// What a node waits for, by name.
std::vector<std::string> waited_for(const Workload& workload, std::size_t node) {
  const Trace& trace = *workload.classes[0].trace;
  std::vector<std::string> names;
  for (std::uint32_t d = 0; d < trace.nodes[node].dependencies; ++d) {
    const std::uint32_t other = trace.dependencies[trace.nodes[node].first_dependency + d];
    names.push_back(workload.names[trace.nodes[other].name]);
  }
  return names;
}

std::size_t first_named(const Workload& workload, const std::string& name) {
  const std::vector<std::string> order = order_of(workload, 0);
  const auto at = std::find(order.begin(), order.end(), name);
  EXPECT_NE(at, order.end()) << "no node " << name;
  return static_cast<std::size_t>(at - order.begin());
}

/// Every kernel and every call of that name takes 1, everything else nothing.
std::int64_t time_with(const Workload& workload, const std::set<std::string>& named) {
  const generated::Duration duration = [&](const std::string& name) {
    return named.count(name) == 0 ? 0 : 1;
  };
  const Simulation simulation(workload, duration);
  EXPECT_EQ(simulation.stuck(), "");
  return simulation.time();
}

TEST(Generate, RanksAreNumberedAsInMegatron) {
  const Workload workload =
      make_workload({.model = tiny_gpt(), .parallelism = {.tp = 2, .pp = 2, .dp = 2, .cp = 2}});
  EXPECT_EQ(workload.ranks, 16);
  using Groups = std::vector<std::vector<int>>;
  EXPECT_EQ(family_named(workload, "tp").groups,
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(family_named(workload, "cp").groups,
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(family_named(workload, "dp").groups,
            (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(family_named(workload, "pp-even").groups,
            (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  EXPECT_EQ(family_named(workload, "model").groups[0], (std::vector<int>{0, 1, 8, 9}));
}

TEST(Generate, ExpertsAreDividedAmongConsecutiveDataRanks) {
  Model model = tiny_gpt();
  model.experts = {.count = 8, .per_token = 2, .intermediate = 32};
  const Workload workload =
      make_workload({.model = model, .parallelism = {.tp = 2, .dp = 4, .ep = 2}});
  using Groups = std::vector<std::vector<int>>;
  EXPECT_EQ(family_named(workload, "ep").groups, (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(family_named(workload, "expert-dp").groups, (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(Generate, EachStageIsOneClassWhateverTheNumberOfRanks) {
  const Workload workload = make_workload({.model = load_model("llama-70b"),
                                           .parallelism = {.tp = 8, .pp = 4, .dp = 128},
                                           .global_batch = 2048});
  EXPECT_EQ(workload.ranks, 4096);
  ASSERT_EQ(workload.classes.size(), 4U);
  EXPECT_EQ(workload.classes[1].name, "stage 1");
  EXPECT_EQ(workload.classes[1].ranks.size(), 1024U);
  EXPECT_EQ(workload.classes[1].ranks.front(), 1024);
  EXPECT_EQ(workload.name, "llama-3-70b train tp8 pp4 dp128");
  EXPECT_EQ(workload.facts->tokens, 2048 * 8192);
}

TEST(Generate, LongTracesHaveFewDistinctWorks) {
  MakeRequest request{.model = load_model("llama-3-405b"),
                      .parallelism = {.tp = 8, .pp = 9, .dp = 2, .sequence_parallel = true},
                      .global_batch = 512,
                      .recompute = Recompute::full};
  const Workload workload = make_workload(request);
  EXPECT_GT(workload.classes[4].trace->nodes.size(), 100'000U);
  EXPECT_LT(workload.computes.size(), 100U);
  EXPECT_LT(workload.collectives.size(), 40U);
  EXPECT_LT(workload.names.size(), 100U);
}

TEST(Generate, StreamsStandInTheirOrder) {
  const Workload workload = make_workload({.model = tiny_gpt()});
  std::vector<std::string> names;
  for (const Stream& stream : workload.streams) {
    names.push_back(stream.name);
    EXPECT_TRUE(stream.in_order);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"compute", "tp", "dp", "pp-send", "pp-receive", "ep",
                                             "cp", "dp-gather"}));
  // One rank communicates with nobody.
  EXPECT_TRUE(workload.collectives.empty());
  EXPECT_TRUE(workload.families.empty());
}

TEST(Generate, AForwardLayerIsWhatTheFrameworkLaunches) {
  const Workload workload = make_workload({.model = load_model("llama-3-8b"),
                                           .parallelism = {.tp = 2, .sequence_parallel = true},
                                           .phase = Phase::prefill});
  const std::vector<std::string> order = order_of(workload, 0);
  const std::vector<std::string> layer{"attention norm",
                                       "tp all-gather",
                                       "qkv",
                                       "rotary",
                                       "kv cache",
                                       "attention",
                                       "attention output",
                                       "tp reduce-scatter",
                                       "attention residual",
                                       "mlp norm",
                                       "tp all-gather",
                                       "gate and up",
                                       "activation",
                                       "down",
                                       "tp reduce-scatter",
                                       "mlp residual"};
  EXPECT_TRUE(std::equal(layer.begin(), layer.end(), order.begin() + 2));
  EXPECT_EQ(order.size(), 2 + 32 * layer.size() + 4);
}

TEST(Generate, ProductsHaveTheShapesOfTheirMatrices) {
  const Workload workload = make_workload({.model = load_model("llama-3-70b"),
                                           .parallelism = {.tp = 8},
                                           .micro_batch = 2,
                                           .sequence = 4096});
  const auto shape_of_node = [&](const std::string& name) {
    const Node& node = workload.classes[0].trace->nodes[first_named(workload, name)];
    const machine::GemmShape& product =
        workload.computes[static_cast<std::size_t>(node.work)].product;
    return std::tuple(product.m, product.n, product.k, product.accumulate,
                      product.output.value_or(product.type));
  };
  const auto half = DataType::bfloat16;
  EXPECT_EQ(shape_of_node("gate and up"), std::tuple(8192, 2 * 28672 / 8, 8192, false, half));
  EXPECT_EQ(shape_of_node("gate and up input gradient"),
            std::tuple(8192, 8192, 2 * 28672 / 8, false, half));
  EXPECT_EQ(shape_of_node("gate and up weight gradient"),
            std::tuple(8192, 2 * 28672 / 8, 8192, true, DataType::float32));
  EXPECT_EQ(shape_of_node("qkv"), std::tuple(8192, (64 + 2 * 8) * 128 / 8, 8192, false, half));
  EXPECT_EQ(shape_of_node("down"), std::tuple(8192, 8192, 28672 / 8, false, half));
  // 128,256 tokens are padded to a multiple of 8 x 128.
  EXPECT_EQ(shape_of_node("logits"), std::tuple(8192, 129'024 / 8, 8192, false, half));
}

TEST(Generate, KernelsOfBytesMoveTheirTensorsOnce) {
  const Workload workload =
      make_workload({.model = load_model("llama-3-8b"), .micro_batch = 1, .sequence = 1024});
  const auto of = [&](const std::string& name) {
    const Node& node = workload.classes[0].trace->nodes[first_named(workload, name)];
    const Compute& compute = workload.computes[static_cast<std::size_t>(node.work)];
    return std::pair(compute.read, compute.written);
  };
  constexpr std::int64_t kTensor = 1024 * 4096 * 2;
  EXPECT_EQ(of("attention norm"), std::pair(kTensor + 4096 * 2, kTensor));
  EXPECT_EQ(of("mlp residual"), std::pair(2 * kTensor, kTensor));
  EXPECT_EQ(of("activation"),
            std::pair(std::int64_t{2 * 1024 * 14336 * 2}, std::int64_t{1024 * 14336 * 2}));
  // Q, K, V; the result and a float32 for each head and token.
  EXPECT_EQ(of("attention"), std::pair(std::int64_t{1024 * (32 + 16) * 128 * 2},
                                       std::int64_t{1024 * 32 * (128 * 2 + 4)}));
  // Copy, two moments and gradient of each parameter; written with the bfloat16 parameter.
  const std::int64_t count = parameters(load_model("llama-3-8b"));
  EXPECT_EQ(of("optimizer"), std::pair(16 * count, 14 * count));
}

TEST(Generate, TensorSumsAreExposedButForTheProductsOfWeights) {
  MakeRequest request{.model = tiny_gpt(1), .parallelism = {.tp = 2}, .clip_gradients = false};
  Workload workload = make_workload(request);
  EXPECT_EQ(waited_for(workload, first_named(workload, "attention residual")),
            (std::vector<std::string>{"tp all-reduce"}));
  EXPECT_EQ(waited_for(workload, first_named(workload, "up weight gradient")),
            (std::vector<std::string>{}));
  EXPECT_EQ(waited_for(workload, first_named(workload, "mlp norm backward")),
            (std::vector<std::string>{"tp all-reduce"}));
  // Sums of three input gradients run beside three products; 3 sums of the forward pass do not.
  const std::set<std::string> both{"tp all-reduce", "qkv weight gradient", "up weight gradient",
                                   "logits weight gradient"};
  EXPECT_EQ(time_with(workload, both), 3 + 3);
  request.overlap_tensor_gradients = false;
  EXPECT_EQ(time_with(make_workload(request), both), 3 + 3 + 3);
}

TEST(Generate, GradientsLeaveWhileEarlierLayersAreComputed) {
  MakeRequest request{.model = tiny_gpt(8),
                      .parallelism = {.dp = 2},
                      .micro_batch = 1,
                      .global_batch = 4,
                      .gradient_bucket = 1,
                      .clip_gradients = false};
  const std::set<std::string> both{"gradients all-reduce", "down weight gradient"};
  Workload workload = make_workload(request);
  // 8 layers, two micro batches; every gradient is a bucket, and leaves in the second.
  const std::int64_t buckets = nodes_named(workload, 0, "gradients all-reduce");
  EXPECT_GT(buckets, 8);
  const std::int64_t overlapped = time_with(workload, both);
  EXPECT_LT(overlapped, 16 + buckets);
  EXPECT_GE(overlapped, 8 + buckets);
  EXPECT_EQ(waited_for(workload, first_named(workload, "optimizer")),
            (std::vector<std::string>{"gradients all-reduce"}));
  request.overlap_gradients = false;
  workload = make_workload(request);
  EXPECT_EQ(time_with(workload, both), 16 + buckets);
  std::vector<std::string> order = order_of(workload, 0);
  order.erase(std::find(order.begin(), order.end(), "gradients all-reduce"), order.end());
  EXPECT_EQ(order.back(), "embedding gradient");
  EXPECT_EQ(std::count(order.begin(), order.end(), "embedding gradient"), 2);
}

TEST(Generate, MegatronMakesBucketsOnTheFirstStageOnly) {
  const Workload workload = make_workload({.model = load_model("llama-3-70b"),
                                           .parallelism = {.tp = 8, .pp = 2, .dp = 2},
                                           .global_batch = 8});
  // 4.5 G parameters of a rank, 40 M for each bucket and what a matrix adds to it.
  EXPECT_GT(nodes_named(workload, 0, "gradients all-reduce"), 40);
  EXPECT_EQ(nodes_named(workload, 1, "gradients all-reduce"), 1);
}

TEST(Generate, GathersOfParametersAreAheadByThePrefetchDepth) {
  MakeRequest request{.model = tiny_gpt(8),
                      .parallelism = {.dp = 2, .zero = 3},
                      .phase = Phase::train,
                      .global_batch = 2,
                      .prefetch = 0,
                      .clip_gradients = false};
  const std::set<std::string> both{"parameters all-gather", "down", "down input gradient"};
  // Ten units forward and backward; eight layers with a kernel each way.
  EXPECT_EQ(time_with(make_workload(request), both), 20 + 16);
  request.prefetch = 1;
  const std::int64_t one_ahead = time_with(make_workload(request), both);
  EXPECT_LE(one_ahead, 20 + 2);
  EXPECT_GE(one_ahead, 20);
}

TEST(Generate, ReceivesAreEarlyAndSendsWaitForTheirKernels) {
  const Workload workload =
      make_workload({.model = tiny_gpt(), .parallelism = {.pp = 2}, .global_batch = 4});
  const Trace& trace = *workload.classes[0].trace;
  for (const Node& node : trace.nodes) {
    if (node.kind == NodeKind::receive || node.kind == NodeKind::send) {
      EXPECT_EQ(node.dependencies, node.kind == NodeKind::send ? 1U : 0U);
    }
  }
  EXPECT_EQ(waited_for(workload, first_named(workload, "send")),
            (std::vector<std::string>{"mlp residual"}));
}

TEST(Generate, TheCpuNeedsItsTimeForEveryNode) {
  const Workload workload = make_workload(
      {.model = tiny_gpt(), .parallelism = {.tp = 2, .pp = 2}, .host_time = Time::from_us(6)});
  for (const RankClass& one : workload.classes) {
    for (const Node& node : one.trace->nodes) EXPECT_EQ(node.host, Time::from_us(6));
  }
}

TEST(Generate, ZeroBubbleComputesGradientsOfWeightsByThemselves) {
  MakeRequest request{.model = tiny_gpt(4),
                      .parallelism = {.tp = 2, .pp = 2, .dp = 2, .sequence_parallel = true},
                      .global_batch = 8};
  const Workload plain = make_workload(request);
  request.schedule = Schedule::zero_bubble;
  const Workload split = make_workload(request);
  for (const int stage : {0, 1}) {
    std::vector<std::string> before = order_of(plain, stage);
    std::vector<std::string> after = order_of(split, stage);
    // The same work in another order.
    std::sort(before.begin(), before.end());
    std::sort(after.begin(), after.end());
    EXPECT_EQ(before, after);
  }
  // On the second stage the gradient of the input leaves before any gradient of a weight.
  const std::vector<std::string> order = order_of(split, 1);
  const auto send = std::find(order.begin(), order.end(), "send");
  EXPECT_EQ(std::find(order.begin(), send, "down weight gradient"), send);
}

/// Megatron-DeepSpeed as in 2022, given a model by its numbers.
TEST(Generate, GptOfMegatronDeepSpeedWithoutFlashAttention) {
  const Model model{.name = "gpt-18b",
                    .layers = 40,
                    .hidden = 6144,
                    .heads = 48,
                    .vocabulary = 51200,
                    .sequence = 2048};
  const Workload workload = make_workload({.model = model,
                                           .parallelism = {.tp = 8, .pp = 8, .dp = 4},
                                           .micro_batch = 4,
                                           .global_batch = 128,
                                           .type = DataType::float16,
                                           .recompute = Recompute::full,
                                           .overlap_gradients = false,
                                           .overlap_tensor_gradients = false,
                                           .fused_gradient_sum = false,
                                           .attention = AttentionKernel::unfused});
  EXPECT_EQ(workload.ranks, 256);
  EXPECT_EQ(nodes_named(workload, 3, "attention"), 0);
  // Forward, and forward again in the backward pass: 5 layers, 8 micro batches.
  EXPECT_EQ(nodes_named(workload, 3, "scale mask softmax"), 2 * 5 * 8);
  EXPECT_EQ(nodes_named(workload, 3, "scale mask softmax backward"), 5 * 8);
  EXPECT_EQ(nodes_named(workload, 3, "tp all-reduce"), 6 * 5 * 8);
  EXPECT_EQ(nodes_named(workload, 3, "gradients all-reduce"), 1);
  // Gradients are summed in float16; a layer has 12 h^2 / 8 and 7 h / 8 of biases, 6 h whole ones.
  EXPECT_EQ(generated::bytes_called(workload, 3, "dp")[Collective::all_reduce],
            2 * 5 * (12 * 6144 * 6144 / 8 + 7 * 6144 / 8 + 6 * 6144));
  EXPECT_EQ(nodes_named(workload, 3, "unscale gradients"), 1);
}

TEST(Generate, SameRequestSameWorkload) {
  const MakeRequest request{
      .model = load_model("deepseek-v3"),
      .parallelism = {.tp = 2, .dp = 8, .ep = 8, .zero = 1, .sequence_parallel = true},
      .global_batch = 16};
  const Workload one = make_workload(request);
  const Workload other = make_workload(request);
  EXPECT_EQ(order_of(one, 0), order_of(other, 0));
  EXPECT_EQ(one.classes[0].trace->dependencies, other.classes[0].trace->dependencies);
}

TEST(Generate, WhatAReaderLeftOutStandsInTheWorkload) {
  MakeRequest request{.model = tiny_gpt()};
  request.model.notices.push_back({.severity = Severity::warning, .message = "ignored: x"});
  ASSERT_EQ(make_workload(request).notices.size(), 1U);
}

}  // namespace
}  // namespace hemiola::workload
