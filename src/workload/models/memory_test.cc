#include "workload/models/memory.h"

#include <gtest/gtest.h>

#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

constexpr double kGiga = 1e9;

/// The GPT of arXiv:2205.05198, table 2: s, b, h, a of one layer.
struct Layer {
  double s = 2048, b = 4, h = 6144, a = 64;
  double sbh() const { return s * b * h; }
  double scores() const { return 5 * a * s / h; }
};

MakeRequest megatron_22b(int tp, bool sequence_parallel, Recompute recompute) {
  return {.model = load_model("megatron-gpt-22b"),
          .parallelism = {.tp = tp, .sequence_parallel = sequence_parallel},
          .micro_batch = 4,
          .type = DataType::float16,
          .recompute = recompute,
          .attention = AttentionKernel::unfused};
}

TEST(Memory, ActivationsOfALayerAreThoseOfKorthikanti) {
  const Layer x;
  const auto bytes = [](const MakeRequest& request) {
    return static_cast<double>(activation_bytes(request, false));
  };
  EXPECT_DOUBLE_EQ(bytes(megatron_22b(1, false, Recompute::none)), x.sbh() * (34 + x.scores()));
  EXPECT_DOUBLE_EQ(bytes(megatron_22b(8, false, Recompute::none)),
                   x.sbh() * (10 + 24.0 / 8 + x.scores() / 8));
  EXPECT_DOUBLE_EQ(bytes(megatron_22b(8, true, Recompute::none)), x.sbh() / 8 * (34 + x.scores()));
  EXPECT_DOUBLE_EQ(bytes(megatron_22b(8, false, Recompute::selective)), x.sbh() * (10 + 24.0 / 8));
  EXPECT_DOUBLE_EQ(bytes(megatron_22b(8, true, Recompute::selective)), x.sbh() * 34 / 8);
  EXPECT_DOUBLE_EQ(bytes(megatron_22b(8, false, Recompute::full)), x.sbh() * 2);
}

TEST(Memory, FlashAttentionKeepsOneNumberForEachRow) {
  MakeRequest request = megatron_22b(1, false, Recompute::none);
  request.attention = AttentionKernel::flash;
  const Layer x;
  EXPECT_EQ(static_cast<double>(activation_bytes(request, false)),
            x.sbh() * 34 + x.s * x.b * x.a * 4);
}

TEST(Memory, EndsOfTheModelKeepMasksAndLogits) {
  MakeRequest request = megatron_22b(8, true, Recompute::none);
  const auto memory = memory_of(request);
  const Layer x;
  // Korthikanti, section 4.3: sbh / t, 2 sbh / t twice and 4 s b v / t.
  const double expected = 48 * x.sbh() / 8 * (34 + x.scores()) + x.sbh() / 8 + 2 * 2 * x.sbh() / 8 +
                          4 * x.s * x.b * 51200 / 8;
  EXPECT_DOUBLE_EQ(static_cast<double>(memory[0].at("activations")), expected);
}

TEST(Memory, StagesHoldTheActivationsOfMicroBatchesInFlight) {
  MakeRequest request = megatron_22b(8, true, Recompute::none);
  request.parallelism.pp = 4;
  request.global_batch = 4 * 16;
  const std::int64_t layer = activation_bytes(request, false);
  const auto activations = [&](std::size_t stage) {
    return memory_of(request)[stage].at("activations");
  };
  EXPECT_EQ(activations(1), 3 * 12 * layer);
  EXPECT_EQ(activations(2), 2 * 12 * layer);
  request.schedule = Schedule::gpipe;
  EXPECT_EQ(activations(1), 16 * 12 * layer);
  request.schedule = Schedule::zero_bubble;
  EXPECT_EQ(activations(2), 4 * 12 * layer);
  request.schedule = Schedule::interleaved;
  request.chunks = 3;
  // (p - s - 1) 2 + (v - 1) p + 1 chunks of four layers.
  EXPECT_EQ(activations(1), (2 * 2 + 2 * 4 + 1) * 4 * layer);
}

TEST(Memory, RecomputationBringsBackOneLayerAtATime) {
  MakeRequest request = megatron_22b(8, true, Recompute::full);
  const std::int64_t input = activation_bytes(request, false);
  request.parallelism.pp = 3;
  request.global_batch = 4 * 6;
  const std::int64_t full = memory_of(request)[1].at("activations");
  request.recompute = Recompute::none;
  const std::int64_t whole = activation_bytes(request, false);
  EXPECT_EQ(full, 2 * 16 * input + (whole - input));
}

TEST(Memory, ZeroDividesOptimizerGradientsAndParameters) {
  MakeRequest request{
      .model = load_model("llama-2-7b"), .parallelism = {.dp = 64}, .vocabulary_multiple = 1};
  const std::int64_t count = parameters(request.model);
  const auto memory = [&](int zero) {
    request.parallelism.zero = zero;
    return memory_of(request)[0];
  };
  auto now = memory(0);
  EXPECT_EQ(now.at("parameters"), 2 * count);
  EXPECT_EQ(now.at("gradients"), 4 * count);
  EXPECT_EQ(now.at("optimizer"), 12 * count);
  const std::int64_t share = (count + 63) / 64;
  now = memory(1);
  EXPECT_EQ(now.at("gradients"), 4 * count);
  EXPECT_EQ(now.at("optimizer"), 12 * share);
  now = memory(2);
  EXPECT_EQ(now.at("parameters"), 2 * count);
  EXPECT_EQ(now.at("gradients"), 4 * share);
  now = memory(3);
  EXPECT_EQ(now.at("parameters"), 2 * share);
  // The layer that is computed and the next one.
  EXPECT_EQ(now.at("gathered parameters"), 2 * 2 * (4 * 4096 * 4096 + 3 * 4096 * 11008 + 2 * 4096));
}

TEST(Memory, OfAModelAllRanksTogetherHoldEachParameterOnce) {
  MakeRequest request{.model = load_model("mixtral-8x7b"),
                      .parallelism = {.pp = 4, .dp = 8, .ep = 8},
                      .vocabulary_multiple = 1};
  std::int64_t sum = 0;
  for (const auto& stage : memory_of(request)) sum += stage.at("parameters") / 2;
  const Model& model = request.model;
  const std::int64_t experts = 32 * 8 * 3 * model.hidden * model.experts.intermediate;
  EXPECT_EQ(sum, parameters(model) - experts + experts / 8);
}

TEST(Memory, TheCacheOfKeysAndValues) {
  MakeRequest request{.model = load_model("llama-3-70b"),
                      .parallelism = {.tp = 8},
                      .phase = Phase::decode,
                      .micro_batch = 64,
                      .context = 4096};
  // A head of keys and one of values of 128 in 80 layers.
  EXPECT_EQ(memory_of(request)[0].at("kv cache"), 64LL * 4096 * 2 * 128 * 2 * 80);
  request.type = DataType::fp8_e4m3;
  EXPECT_NEAR(static_cast<double>(memory_of(request)[0].at("parameters")), 9.1 * kGiga,
              0.2 * kGiga);
  // Latents are the same on all ranks of tp: 576 numbers (arXiv:2412.19437).
  request = {.model = load_model("deepseek-v3"),
             .parallelism = {.tp = 8},
             .phase = Phase::decode,
             .micro_batch = 1,
             .context = 1};
  EXPECT_EQ(memory_of(request)[0].at("kv cache"), 61 * 576 * 2);
}

TEST(SearchSpace, EveryFactorisationIsThereWithAReasonOrItsMemory) {
  MakeRequest request{.model = load_model("llama-3-8b"),
                      .parallelism = {.zero = 1, .sequence_parallel = true},
                      .global_batch = 64,
                      .recompute = Recompute::full};
  const std::vector<Candidate> candidates = search_space(request, 16, 80LL << 30);
  // Divisors (tp, pp) of 16: 1 + 2 + 3 + 4 + 5.
  EXPECT_EQ(candidates.size(), 15U);
  std::int64_t fits = 0;
  for (const Candidate& one : candidates) {
    const Parallelism& by = one.parallelism;
    EXPECT_EQ(by.ranks(), 16);
    EXPECT_EQ(by.zero, 1);
    if (one.refused.empty()) {
      ++fits;
      EXPECT_LE(one.memory, 80LL << 30);
      MakeRequest of_candidate = request;
      of_candidate.parallelism = by;
      EXPECT_NO_THROW(make_workload(of_candidate));
    }
    if (by.tp == 16) {
      EXPECT_EQ(one.refused, "8 heads of keys and values cannot be divided by 16");
    }
  }
  EXPECT_GT(fits, 6);
}

TEST(SearchSpace, WhatDoesNotFitSaysWhy) {
  const MakeRequest request{.model = load_model("llama-3-70b"), .global_batch = 8};
  for (const Candidate& one : search_space(request, 8, 80LL << 30)) {
    if (one.parallelism.dp != 8) continue;
    EXPECT_EQ(one.refused.substr(0, 6), "needs ");
    EXPECT_NE(one.refused.find("of 80.0 GiB, most of it for optimizer"), std::string::npos)
        << one.refused;
    EXPECT_GT(one.memory, 80LL << 30);
  }
}

TEST(SearchSpace, ExpertsAddTheirParallelism) {
  const MakeRequest request{.model = load_model("mixtral-8x7b"), .global_batch = 64};
  std::vector<int> found;
  for (const Candidate& one : search_space(request, 8, 1LL << 50)) {
    if (one.parallelism.tp == 1 && one.parallelism.pp == 1) found.push_back(one.parallelism.ep);
  }
  EXPECT_EQ(found, (std::vector<int>{1, 2, 4, 8}));
}

}  // namespace
}  // namespace hemiola::workload
