// What is computed in an iteration, against closed forms.
#include <gtest/gtest.h>

#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

using generated::flop_of;

bool is_product(const Node&, const Compute& compute) {
  return compute.kind == Compute::Kind::product;
}
bool is_attention(const Node&, const Compute& compute) {
  return compute.kind == Compute::Kind::attention;
}

MakeRequest training(const std::string& name, Parallelism parallelism) {
  return {.model = load_model(name),
          .parallelism = parallelism,
          .global_batch = std::int64_t{parallelism.dp} * parallelism.pp * 2,
          .sequence = 2048,
          .vocabulary_multiple = 1};
}

/// Scores and context of all tokens, each of which looks at half of the sequence: 4 flop for each
/// dimension of each head; backward once more 2.5 times.
double attention_flop(const MakeRequest& request) {
  const Model& model = request.model;
  const double dims = model.is_latent()
                          ? static_cast<double>(model.latent.plain_dim + model.latent.rope_dim +
                                                model.latent.value_dim) /
                                2
                          : static_cast<double>(model.head_dim);
  return 3.5 * 4 * static_cast<double>(model.layers * model.heads) * dims *
         static_cast<double>(request.sequence) * static_cast<double>(request.sequence) / 2 *
         static_cast<double>(request.global_batch);
}

/// Flop of products and of attention as a share of the closed forms, which follow from model_flop.
void expect_flop(const MakeRequest& request, double tolerance) {
  const Workload workload = make_workload(request);
  const double attention = attention_flop(request);
  EXPECT_NEAR(flop_of(workload, is_attention) / attention, 1, 1e-9) << workload.name;
  const double products = model_flop(request) - attention / 3.5 * 3;
  EXPECT_NEAR(flop_of(workload, is_product) / products, 1, tolerance) << workload.name;
}

TEST(GeneratedFlop, OfDenseModelsProductsAreSixTimesMatricesTimesTokens) {
  expect_flop(training("llama-3-8b", {}), 1e-12);
  expect_flop(training("llama-3-8b", {.tp = 8, .pp = 4, .dp = 2}), 1e-12);
  expect_flop(training("llama-3-70b", {.tp = 4, .pp = 2, .cp = 4, .sequence_parallel = true}),
              1e-12);
  // 50257 tokens of vocabulary do not divide by 8.
  expect_flop(training("gpt-3-175b", {.tp = 8, .pp = 8}), 1e-4);
  expect_flop(training("qwen2-72b", {.tp = 8, .zero = 3}), 1e-12);
  MakeRequest request = training("llama-3-8b", {.tp = 2, .pp = 4});
  request.schedule = Schedule::zero_bubble;
  expect_flop(request, 1e-12);
  request.schedule = Schedule::interleaved;
  request.chunks = 4;
  expect_flop(request, 1e-12);
}

TEST(GeneratedFlop, OfMixturesTheExpertsThatTokensAreSentToCount) {
  expect_flop(training("mixtral-8x7b", {.dp = 8, .ep = 8}), 1e-12);
  expect_flop(training("mixtral-8x7b", {.tp = 2, .dp = 8, .ep = 8, .sequence_parallel = true}),
              1e-12);
  expect_flop(training("qwen3-235b", {.tp = 4, .dp = 8, .ep = 8, .sequence_parallel = true}),
              1e-12);
  // Without it every rank of tp has a router for all tokens.
  expect_flop(training("qwen3-235b", {.tp = 4, .dp = 8, .ep = 8}), 0.01);
  MakeRequest request = training("deepseek-v3", {.pp = 8, .dp = 32, .ep = 32});
  request.stage_layers = {8, 8, 8, 8, 8, 8, 8, 5};
  expect_flop(request, 1e-12);
  // Latents are made on every rank of tp for all tokens, unless sequences are divided.
  request.parallelism = {.tp = 2, .pp = 8, .dp = 32, .ep = 32, .sequence_parallel = true};
  expect_flop(request, 1e-12);
  request.parallelism.sequence_parallel = false;
  expect_flop(request, 0.05);
}

TEST(GeneratedFlop, ModelFlopAreSixTimesParametersTimesTokens) {
  const MakeRequest request = training("llama-3-70b", {});
  const Model& model = request.model;
  const auto matrices =
      static_cast<double>(parameters(model) - model.vocabulary * model.hidden - 161 * model.hidden);
  const double tokens = 2 * 2048;
  // 12 L H Q T for each token (arXiv:2204.02311, appendix B), of which causal attention needs half.
  const double attention = 12.0 * 80 * 64 * 128 * 2048 * tokens / 2;
  EXPECT_NEAR(model_flop(request) / (6 * matrices * tokens + attention), 1, 1e-12);
  MakeRequest whole = request;
  whole.causal = false;
  EXPECT_NEAR(model_flop(whole) / (6 * matrices * tokens + 2 * attention), 1, 1e-12);
}

TEST(GeneratedFlop, FullRecomputationComputesForwardOnceMore) {
  MakeRequest request = training("llama-3-8b", {.tp = 2});
  const double forward_of_head =
      2.0 * static_cast<double>(request.model.vocabulary * request.model.hidden) * 2 * 2048;
  const double once = flop_of(make_workload(request), is_product);
  request.recompute = Recompute::full;
  const Workload workload = make_workload(request);
  EXPECT_NEAR(flop_of(workload, is_product) / (once + once / 3 - forward_of_head), 1, 1e-12);
  EXPECT_NEAR(flop_of(workload, is_attention) / (attention_flop(request) * 4.5 / 3.5), 1, 1e-12);
  // It is no work of the model.
  EXPECT_EQ(workload.facts->flop, model_flop(training("llama-3-8b", {.tp = 2})));
  request.recompute = Recompute::selective;
  const Workload selective = make_workload(request);
  EXPECT_EQ(flop_of(selective, is_product), once);
  EXPECT_NEAR(flop_of(selective, is_attention) / (attention_flop(request) * 4.5 / 3.5), 1, 1e-12);
}

TEST(GeneratedFlop, UnfusedAttentionComputesTheWholeMatrixOfScores) {
  MakeRequest request = training("megatron-gpt-22b", {.tp = 8});
  const double fused = flop_of(make_workload(request), is_product);
  request.attention = AttentionKernel::unfused;
  const Workload workload = make_workload(request);
  EXPECT_EQ(flop_of(workload, is_attention), 0);
  // Twice what a causal kernel does; and backward twice forward, not 2.5 times.
  EXPECT_NEAR((flop_of(workload, is_product) - fused) / (attention_flop(request) / 3.5 * 3 * 2), 1,
              1e-12);
}

TEST(GeneratedFlop, DecodeMultipliesEachMatrixWithOneTokenOfEachSequence) {
  MakeRequest request{.model = load_model("llama-3-70b"),
                      .parallelism = {.tp = 8},
                      .phase = Phase::decode,
                      .micro_batch = 64,
                      .context = 4096,
                      .vocabulary_multiple = 1};
  const Workload workload = make_workload(request);
  const double attention = 4.0 * 80 * 64 * 128 * 4096 * 64;
  EXPECT_NEAR(flop_of(workload, is_attention) / attention, 1, 1e-12);
  EXPECT_NEAR(flop_of(workload, is_product) / (model_flop(request) - attention), 1, 1e-12);
  EXPECT_EQ(workload.facts->tokens, 64);

  request.model = load_model("deepseek-v3");
  request.parallelism = {.tp = 8};
  const Workload latent = make_workload(request);
  EXPECT_NEAR(flop_of(latent, is_attention) / (2.0 * 61 * 128 * (2 * 512 + 64) * 4096 * 64), 1,
              1e-12);
}

TEST(GeneratedFlop, PrefillComputesLogitsOfLastTokensOnly) {
  const MakeRequest request{.model = load_model("llama-3-8b"),
                            .parallelism = {.tp = 4, .sequence_parallel = true},
                            .phase = Phase::prefill,
                            .micro_batch = 2,
                            .sequence = 4096,
                            .vocabulary_multiple = 1};
  const Workload workload = make_workload(request);
  const double all = flop_of(workload, is_product) + flop_of(workload, is_attention);
  EXPECT_NEAR(all / model_flop(request), 1, 1e-12);
  EXPECT_EQ(workload.facts->tokens, 2 * 4096);
}

}  // namespace
}  // namespace hemiola::workload
