// What is refused, with which words; and random requests, which are refused or can be run.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/testing/failure.h"
#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

using hemiola::test::message_of;

using generated::tiny_gpt;

std::string refusal(const MakeRequest& request) {
  return message_of([&] { make_workload(request); });
}

TEST(GenerateCheck, IllegalCombinationsNameTheLegalValues) {
  const Model llama = load_model("llama-3-70b");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.tp = 6}}),
            "--tp: error: 64 heads cannot be divided by 6\n"
            "  hint: one of 1, 2, 4, 8, 16, 32, 64");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.tp = 16}}),
            "--tp: error: 8 heads of keys and values cannot be divided by 16\n"
            "  hint: one of 1, 2, 4, 8");
  EXPECT_EQ(refusal({.model = load_model("llama-3-405b"), .parallelism = {.pp = 16}}),
            "--pp: error: 126 layers cannot be divided by 16 stages\n"
            "  hint: one of 1, 2, 3, 6, 7, 9, 14, 18, 21, 42, 63, 126; or stages with "
            "different numbers of layers");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.dp = 4}, .global_batch = 6}),
            "--global-batch: error: 6 sequences cannot be divided into micro batches of 1 on 4 "
            "data-parallel ranks\n  hint: a multiple of 4");
  EXPECT_EQ(refusal({.model = llama,
                     .parallelism = {.pp = 4},
                     .global_batch = 6,
                     .schedule = Schedule::interleaved,
                     .chunks = 2}),
            "--global-batch: error: the interleaved schedule cannot divide 6 micro batches into "
            "rounds of 4 stages\n  hint: a multiple of 4");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.pp = 4}, .chunks = 2}),
            "--chunks: error: 1f1b has one chunk of layers on each stage\n"
            "  hint: 1, or --pipeline interleaved");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.dp = 2, .ep = 2}}),
            "--ep: error: model 'llama-3-70b' has no experts\n  hint: 1");
  EXPECT_EQ(refusal({.model = load_model("mixtral-8x7b"), .parallelism = {.dp = 2, .ep = 8}}),
            "--ep: error: 2 data-parallel ranks cannot be divided by 8\n  hint: one of 1, 2");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.dp = 2, .zero = 4}}),
            "--zero: error: 4 is out of range\n  hint: 0 to 3");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.cp = 3}}),
            "--cp: error: a sequence of 8192 cannot be divided into two equal parts for each of 3 "
            "ranks\n  hint: one of 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048");
  EXPECT_EQ(
      refusal({.model = llama, .parallelism = {.dp = 4, .shard = 2}}),
      "--shard: error: nothing is divided among data-parallel ranks\n  hint: --zero 1, 2 or 3");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.dp = 4, .zero = 3, .shard = 3}}),
            "--shard: error: 4 data-parallel ranks cannot be divided by 3\n  hint: one of 1, 2, 4");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.dp = 2, .zero = 1}, .phase = Phase::decode}),
            "--zero: error: nothing of ZeRO is left in decode\n  hint: 0");
  EXPECT_EQ(refusal({.model = llama,
                     .parallelism = {.tp = 8, .sequence_parallel = true},
                     .phase = Phase::decode,
                     .micro_batch = 4}),
            "--sp: error: 4 tokens cannot be divided by 8 ranks\n"
            "  hint: without --sp, or a --tp that divides them");
  EXPECT_EQ(refusal({.model = load_model("gpt2"), .sequence = 2048}),
            "--sequence: error: 1024 positions were learned\n  hint: at most 1024");
  EXPECT_EQ(refusal({.model = llama, .type = DataType::int8}),
            "--dtype: error: no model is kept in int8\n"
            "  hint: bfloat16, float16, float32, fp8_e4m3 or fp8_e5m2");
  EXPECT_EQ(refusal({.model = llama, .stage_layers = {40, 40}}),
            "--stage-layers: error: 2 numbers of layers are given\n"
            "  hint: 1, one for each chunk of each stage");
  EXPECT_EQ(refusal({.model = llama, .parallelism = {.dp = 1 << 22, .cp = 2}}),
            "--dp: error: these are too many ranks\n  hint: at most 4194304");
  EXPECT_EQ(refusal({}), "error: model '(no name)': layers is 0, which must be from 1 to 100000");
}

TEST(GenerateCheck, InferenceRepeatsHeadsOfKeysAndValues) {
  const Model llama = load_model("llama-3-70b");
  const MakeRequest request{
      .model = llama, .parallelism = {.tp = 16}, .phase = Phase::decode, .micro_batch = 8};
  EXPECT_NO_THROW(make_workload(request));
  MakeRequest odd = request;
  odd.model.heads = 72;
  odd.model.kv_heads = 9;
  odd.model.intermediate = 72 * 100;
  odd.parallelism.tp = 12;
  EXPECT_EQ(refusal(odd),
            "--tp: error: 9 heads of keys and values cannot be divided by 12\n"
            "  hint: one of 1, 3, 9, or a multiple of the last, which repeats them");
}

TEST(GenerateCheck, StagesMayHaveDifferentNumbersOfLayers) {
  const MakeRequest request{.model = load_model("llama-3-405b"),
                            .parallelism = {.tp = 8, .pp = 4},
                            .stage_layers = {31, 32, 32, 31}};
  const Workload workload = make_workload(request);
  EXPECT_EQ(generated::nodes_named(workload, 0, "attention"), 31 * 4);
  EXPECT_EQ(generated::nodes_named(workload, 1, "attention"), 32 * 4);
}

TEST(GenerateCheck, UnevenStagesDifferByOneLayer) {
  MakeRequest request{.model = load_model("llama-3-405b"),
                      .parallelism = {.tp = 8, .pp = 16},
                      .uneven_stages = true};
  const Workload workload = make_workload(request);
  std::vector<std::int64_t> layers;
  for (int stage = 0; stage < 16; ++stage)
    layers.push_back(generated::nodes_named(workload, stage, "attention") / 16);
  // As Llama 3: a layer fewer on the first stage, and one fewer on the last.
  EXPECT_EQ(layers, (std::vector<std::int64_t>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7}));
  request.parallelism.pp = 127;
  EXPECT_EQ(refusal(request), "--pp: error: 127 is out of range\n  hint: 1 to 126");
}

template <class Value>
Value one_of(std::initializer_list<Value> values) {
  return *rc::gen::elementOf(std::vector<Value>(values));
}

Model random_model() {
  Model model = tiny_gpt(one_of({4, 7, 8, 12}));
  model.kv_heads = one_of({2, 4, 8});
  model.gated = one_of({false, true});
  model.tied_embeddings = one_of({false, true});
  model.norm = one_of({Norm::rms, Norm::layer});
  model.positions = one_of({Positions::rotary, Positions::learned, Positions::none});
  model.biases = one_of({Biases::none, Biases::qkv, Biases::output, Biases::all});
  model.dropout = one_of({false, true});
  model.query_key_norm = one_of({false, true});
  if (one_of({false, true}))
    model.experts = {.count = 8,
                     .per_token = one_of({1, 2, 4}),
                     .shared = one_of({0, 1}),
                     .intermediate = 32,
                     .first_dense_layers = one_of({0, 1, 3}),
                     .router_bias = one_of({false, true})};
  if (one_of({false, false, true})) {
    model.biases = Biases::none;
    model.query_key_norm = false;
    model.kv_heads = model.heads;
    model.latent = {.kv_rank = 16,
                    .query_rank = one_of({0, 24}),
                    .plain_dim = 8,
                    .rope_dim = 4,
                    .value_dim = 6};
  }
  return model;
}

MakeRequest random_request() {
  MakeRequest request{.model = random_model()};
  Parallelism& by = request.parallelism;
  by.tp = one_of({1, 2, 4});
  by.pp = one_of({1, 2, 4});
  by.dp = one_of({1, 2, 4});
  by.cp = one_of({1, 1, 2});
  by.ep = one_of({1, 2, 4});
  by.zero = *rc::gen::inRange(0, 4);
  by.sequence_parallel = one_of({false, true});
  request.phase = one_of({Phase::train, Phase::train, Phase::prefill, Phase::decode});
  request.micro_batch = one_of({1, 2, 4});
  request.global_batch = request.micro_batch * by.dp * *rc::gen::inRange(1, 9);
  request.uneven_stages = one_of({false, true});
  request.recompute = one_of({Recompute::none, Recompute::selective, Recompute::full});
  request.schedule = one_of({Schedule::gpipe, Schedule::one_forward_one_backward,
                             Schedule::interleaved, Schedule::zero_bubble});
  if (request.phase != Phase::train) {
    by.zero = 0;
    request.schedule = Schedule::gpipe;
  }
  if (request.schedule == Schedule::interleaved) {
    request.chunks = one_of({1, 2, 3});
    if (*rc::gen::inRange(0, 4) > 0) request.global_batch *= by.pp;
  }
  if (!request.model.is_mixture()) by.ep = 1;
  if (by.cp > 1)
    request.context_parallel = one_of({ContextParallel::gather, ContextParallel::ring});
  request.type =
      one_of({DataType::bfloat16, DataType::float16, DataType::float32, DataType::fp8_e4m3});
  request.gradient_bucket = one_of({0, 1, 5000});
  request.overlap_gradients = one_of({false, true});
  request.overlap_parameters = one_of({false, true});
  request.overlap_tensor_gradients = one_of({false, true});
  request.fused_gradient_sum = one_of({false, true});
  request.prefetch = one_of({0, 1, 3});
  request.attention = one_of({AttentionKernel::flash, AttentionKernel::unfused});
  request.fused_softmax = one_of({false, true});
  return request;
}

void expect_positive_works(const Workload& workload) {
  for (const CollectiveCall& call : workload.collectives) RC_ASSERT(call.bytes > 0);
  for (const Message& message : workload.messages) RC_ASSERT(message.bytes > 0);
  for (const Compute& compute : workload.computes) {
    RC_ASSERT(compute.flop >= 0);
    RC_ASSERT(compute.read + compute.written > 0);
    if (compute.kind == Compute::Kind::product)
      RC_ASSERT(compute.product.m > 0 && compute.product.n > 0 && compute.product.k > 0);
  }
}

/// Gradients that a rank reduces in an iteration, but for the padding of scattered ones.
void expect_gradients(const MakeRequest& request, const Workload& workload) {
  if (request.phase != Phase::train || request.parallelism.zero > 0) return;
  double all = 0;
  const double data = request.parallelism.dp * request.parallelism.cp;
  for (std::size_t stage = 0; stage < workload.classes.size(); ++stage) {
    const auto& memory = workload.facts->memory[stage];
    std::int64_t bytes = 0;
    std::int64_t experts = 0;
    for (const Node& node : workload.classes[stage].trace->nodes) {
      if (node.kind != NodeKind::collective) continue;
      const std::int64_t each = workload.collectives[static_cast<std::size_t>(node.work)].bytes;
      const std::string& name = workload.names[node.name];
      if (name == "gradients all-reduce") bytes += each;
      if (name == "experts' gradients all-reduce") experts += each;
    }
    all += static_cast<double>(bytes + experts);
    const bool has_experts = request.model.is_mixture();
    if (data > 1 && (!has_experts || data > request.parallelism.ep))
      RC_ASSERT(bytes + experts == memory.at("gradients"));
  }
  RC_ASSERT((all > 0) == (data > 1));
}

TEST(GenerateCheck, RandomRequestsAreRefusedOrRunToTheirEnd) {
  int legal = 0;
  EXPECT_TRUE(rc::check("requests", [&] {
    const MakeRequest request = random_request();
    try {
      check(request);
    } catch (const Failure& failure) {
      RC_ASSERT(failure.code() == ExitCode::bad_input);
      RC_ASSERT(!failure.diagnostics().items().front().hint.empty());
      return;
    }
    ++legal;
    const Workload workload = make_workload(request);  // passes check()
    expect_positive_works(workload);
    expect_gradients(request, workload);
    RC_ASSERT(workload.facts->flop > 0);
    const generated::Duration duration = [](const std::string&) { return 1; };
    const generated::Simulation simulation(workload, duration);
    RC_ASSERT(simulation.stuck() == "");
  }));
  EXPECT_GT(legal, 30);
}

}  // namespace
}  // namespace hemiola::workload
