// What is communicated in an iteration, against closed forms.
#include <gtest/gtest.h>

#include "workload/testing/models.h"

namespace hemiola::workload {
namespace {

using generated::bytes_called;
using generated::bytes_sent;
using generated::nodes_named;

constexpr std::int64_t kLayers = 8;
constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kTokens = 2 * 32;  ///< of a micro batch of two sequences
constexpr std::int64_t kHalf = 2;         ///< bytes of bfloat16

/// Four stages of two layers, four micro batches on each of two replicas; tp 2.
MakeRequest request_of_stages() {
  return {.model = generated::tiny_gpt(kLayers),
          .parallelism = {.tp = 2, .pp = 4, .dp = 2},
          .micro_batch = 2,
          .global_batch = 16,
          .clip_gradients = false,
          .vocabulary_multiple = 1};
}

/// 12 h^2 + 13 h of a GPT layer, of which a rank of tp holds its share of the matrices and of the
/// biases of qkv and up, and all of the norms and of the other biases.
std::int64_t parameters_of_rank(std::int64_t layers, std::int64_t tp) {
  return layers * (12 * kHidden * kHidden / tp + (3 + 4) * kHidden / tp + 6 * kHidden);
}

Model tiny_mixture() {
  Model model = generated::tiny_gpt(kLayers);
  model.biases = Biases::none;
  model.gated = true;
  model.experts = {.count = 8, .per_token = 2, .intermediate = 32};
  return model;
}

TEST(GeneratedBytes, FourSumsOverTensorRanksForEachLayerAndMicroBatch) {
  MakeRequest request = request_of_stages();
  for (const auto& [recompute, sums] :
       {std::pair{Recompute::none, 4}, {Recompute::selective, 4}, {Recompute::full, 6}}) {
    request.recompute = recompute;
    const Workload workload = make_workload(request);
    // Two layers, four micro batches.
    EXPECT_EQ(nodes_named(workload, 1, "tp all-reduce"), 2 * 4 * sums);
    EXPECT_EQ(bytes_called(workload, 1, "tp"),
              (std::map<Collective, std::int64_t>{
                  {Collective::all_reduce, 2 * 4 * sums * kTokens * kHidden * kHalf}}));
  }
}

TEST(GeneratedBytes, EndsOfTheModelSumTheEmbeddingAndTheLoss) {
  const Workload workload = make_workload(request_of_stages());
  const std::int64_t layers = 2 * 4 * 4 * kTokens * kHidden * kHalf;
  const std::int64_t once = 4 * kTokens * kHidden * kHalf;  // for each micro batch
  EXPECT_EQ(bytes_called(workload, 0, "tp")[Collective::all_reduce], layers + once);
  // The gradient of the logits' input; maximum, logit of the target and sum in float32.
  EXPECT_EQ(bytes_called(workload, 3, "tp")[Collective::all_reduce],
            layers + once + 4 * 3 * kTokens * 4);
}

TEST(GeneratedBytes, SequenceParallelismGathersAndScattersInstead) {
  MakeRequest request = request_of_stages();
  request.parallelism.sequence_parallel = true;
  std::map<Collective, std::int64_t> bytes = bytes_called(make_workload(request), 1, "tp");
  const std::int64_t each = 2 * 4 * kTokens * kHidden * kHalf;
  // Forward two, backward two of gradients and two of inputs of the column-parallel products.
  EXPECT_EQ(bytes[Collective::all_gather], 6 * each);
  EXPECT_EQ(bytes[Collective::reduce_scatter], 4 * each);
  // Once for an iteration: gradients of norms and of biases that every rank holds.
  EXPECT_EQ(bytes[Collective::all_reduce], 2 * 6 * kHidden * 4);
}

TEST(GeneratedBytes, StagesSendActivationsAndGradients) {
  MakeRequest request = request_of_stages();
  const std::int64_t message = kTokens * kHidden * kHalf;
  Workload workload = make_workload(request);
  EXPECT_EQ(bytes_sent(workload, 0), 4 * message);
  EXPECT_EQ(bytes_sent(workload, 1), 2 * 4 * message);
  EXPECT_EQ(bytes_sent(workload, 3), 4 * message);
  request.parallelism.sequence_parallel = true;
  EXPECT_EQ(bytes_sent(make_workload(request), 1), 2 * 4 * message / 2);
  request.schedule = Schedule::interleaved;
  request.chunks = 2;
  workload = make_workload(request);
  // The last stage sends activations of all chunks but the last, gradients of all.
  EXPECT_EQ(bytes_sent(workload, 1), 2 * 2 * 4 * message / 2);
  EXPECT_EQ(bytes_sent(workload, 3), (1 + 2) * 4 * message / 2);
}

TEST(GeneratedBytes, ReplicasSumTheGradientsOfTheirParametersOnce) {
  MakeRequest request = request_of_stages();
  for (const bool overlaps : {false, true}) {
    for (const std::int64_t bucket : {0, 1, 1000, 50'000}) {
      request.overlap_gradients = overlaps;
      request.gradient_bucket = bucket;
      EXPECT_EQ(bytes_called(make_workload(request), 1, "dp"),
                (std::map<Collective, std::int64_t>{
                    {Collective::all_reduce, parameters_of_rank(2, 2) * 4}}))
          << overlaps << " " << bucket;
    }
  }
  request.gradient_type = DataType::bfloat16;
  const Workload workload = make_workload(request);
  EXPECT_EQ(bytes_called(workload, 1, "dp")[Collective::all_reduce], parameters_of_rank(2, 2) * 2);
  // The first stage has half of 1000 x 64 embeddings and 32 positions.
  EXPECT_EQ(bytes_called(workload, 0, "dp")[Collective::all_reduce],
            (parameters_of_rank(2, 2) + 500 * kHidden + 32 * kHidden) * 2);
  EXPECT_EQ(bytes_called(workload, 3, "dp")[Collective::all_reduce],
            (parameters_of_rank(2, 2) + 500 * kHidden + 2 * kHidden) * 2);
}

TEST(GeneratedBytes, DividedOptimizersScatterGradientsAndGatherParameters) {
  MakeRequest request = request_of_stages();
  const std::int64_t parameters = parameters_of_rank(2, 2);
  for (const bool overlaps : {false, true}) {
    request.parallelism.zero = 1;
    request.overlap_parameters = overlaps;
    std::map<Collective, std::int64_t> bytes = bytes_called(make_workload(request), 1, "dp");
    EXPECT_EQ(bytes[Collective::reduce_scatter], parameters * 4);
    EXPECT_EQ(bytes[Collective::all_gather], parameters * 2);
    EXPECT_EQ(bytes.count(Collective::all_reduce), 0U);
    request.parallelism.zero = 2;
    bytes = bytes_called(make_workload(request), 1, "dp");
    EXPECT_EQ(bytes[Collective::reduce_scatter], 4 * parameters * 4);
    EXPECT_EQ(bytes[Collective::all_gather], parameters * 2);
  }
  // Ranks that do not divide the parameters get a padded share.
  request.parallelism.dp = 3;
  request.global_batch = 24;
  EXPECT_EQ(bytes_called(make_workload(request), 1, "dp")[Collective::all_gather] % (3 * 2), 0);
}

TEST(GeneratedBytes, ShardsAreSummedOverTheirReplicas) {
  MakeRequest request = request_of_stages();
  request.parallelism.dp = 8;
  request.global_batch = 64;  // four micro batches
  request.parallelism.shard = 4;
  const std::int64_t parameters = parameters_of_rank(2, 2);
  for (const int zero : {1, 3}) {
    request.parallelism.zero = zero;
    const std::int64_t times = zero == 3 ? 4 : 1;
    const Workload workload = make_workload(request);
    std::map<Collective, std::int64_t> shard = bytes_called(workload, 1, "shard");
    EXPECT_EQ(shard[Collective::reduce_scatter], times * parameters * 4);
    EXPECT_EQ(shard[Collective::all_gather], (zero == 3 ? 2 * 4 : 1) * parameters * 2);
    EXPECT_EQ(
        bytes_called(workload, 1, "replicas"),
        (std::map<Collective, std::int64_t>{{Collective::all_reduce, times * parameters / 4 * 4}}));
    EXPECT_EQ(bytes_called(workload, 1, "dp").size(), 0U);
    for (const GroupFamily& family : workload.families) {
      // tp 2: data-parallel ranks 0 to 3 of stage 0; 0 and 4 hold the same shard.
      if (family.name == "shard") {
        EXPECT_EQ(family.groups.front(), (std::vector<int>{0, 2, 4, 6}));
      }
      if (family.name == "replicas") {
        EXPECT_EQ(family.groups.front(), (std::vector<int>{0, 8}));
      }
    }
    // As much memory as with four replicas.
    MakeRequest four = request;
    four.parallelism.shard = 0;
    four.parallelism.dp = 4;
    four.global_batch = 32;
    EXPECT_EQ(workload.facts->memory, make_workload(four).facts->memory);
  }
  // All ranks in one shard: nothing is replicated.
  request.parallelism.shard = 8;
  EXPECT_EQ(bytes_called(make_workload(request), 1, "replicas").size(), 0U);
  EXPECT_GT(bytes_called(make_workload(request), 1, "dp").size(), 0U);
  // Each rank holds all: as without ZeRO, gradients are summed over everybody.
  request.parallelism.shard = 1;
  request.parallelism.zero = 1;
  EXPECT_EQ(bytes_called(make_workload(request), 1, "replicas")[Collective::all_reduce],
            parameters * 4);
}

TEST(GeneratedBytes, FullyShardedParametersAreGatheredForEveryPass) {
  MakeRequest request = request_of_stages();
  request.parallelism.zero = 3;
  for (const Schedule schedule : {Schedule::one_forward_one_backward, Schedule::zero_bubble}) {
    for (const bool overlaps : {false, true}) {
      request.schedule = schedule;
      request.overlap_gradients = overlaps;
      std::map<Collective, std::int64_t> bytes = bytes_called(make_workload(request), 1, "dp");
      const std::int64_t parameters = parameters_of_rank(2, 2);
      EXPECT_EQ(bytes[Collective::all_gather], 4 * 2 * parameters * 2);
      EXPECT_EQ(bytes[Collective::reduce_scatter], 4 * parameters * 4);
    }
  }
}

TEST(GeneratedBytes, TokensGoToTheirExpertsAndBack) {
  MakeRequest request{.model = tiny_mixture(),
                      .parallelism = {.dp = 4, .ep = 4},
                      .micro_batch = 2,
                      .global_batch = 16};
  // Two forward and two backward for each layer; two micro batches.
  const std::int64_t each = kLayers * 2 * kTokens * 2 * kHidden * kHalf;
  EXPECT_EQ(bytes_called(make_workload(request), 0, "dp")[Collective::all_to_all], 4 * each);
  request.recompute = Recompute::full;
  EXPECT_EQ(bytes_called(make_workload(request), 0, "dp")[Collective::all_to_all], 6 * each);

  request = {.model = tiny_mixture(),
             .parallelism = {.tp = 2, .dp = 4, .ep = 2, .sequence_parallel = true},
             .micro_batch = 2,
             .global_batch = 16};
  const Workload workload = make_workload(request);
  EXPECT_EQ(bytes_called(workload, 0, "ep")[Collective::all_to_all], 4 * each / 2);
  // An expert is on every second of four replicas: three matrices, of which tp takes half.
  EXPECT_EQ(bytes_called(workload, 0, "expert-dp")[Collective::all_reduce],
            kLayers * 4 * 3 * kHidden * 32 / 2 * 4);
}

TEST(GeneratedBytes, ContextRanksGatherKeysAndValues) {
  Model model = generated::tiny_gpt(kLayers);
  model.kv_heads = 2;
  const MakeRequest request{
      .model = model, .parallelism = {.cp = 2}, .micro_batch = 2, .global_batch = 6};
  std::map<Collective, std::int64_t> bytes = bytes_called(make_workload(request), 0, "cp");
  // Keys and values of two heads of 8 for all tokens; three micro batches.
  const std::int64_t each = 3 * kLayers * kTokens * 2 * 2 * 8 * kHalf;
  EXPECT_EQ(bytes[Collective::all_gather], 2 * each);
  EXPECT_EQ(bytes[Collective::reduce_scatter], each);
  // Context ranks hold the same parameters: their group is that of the gradients, too.
  EXPECT_GT(bytes[Collective::all_reduce], 0);
}

TEST(GeneratedBytes, TiedEmbeddingsOfDifferentStagesAreSummed) {
  MakeRequest request = request_of_stages();
  request.model.tied_embeddings = true;
  const Workload workload = make_workload(request);
  const std::int64_t table = 500 * kHidden * 4;
  EXPECT_EQ(bytes_called(workload, 0, "embedding")[Collective::all_reduce], table);
  EXPECT_EQ(bytes_called(workload, 3, "embedding")[Collective::all_reduce], table);
  EXPECT_TRUE(bytes_called(workload, 1, "embedding").empty());
  // On one stage there is one table, whose gradient is final with the embedding's.
  request.parallelism.pp = 1;
  EXPECT_EQ(bytes_called(make_workload(request), 0, "dp")[Collective::all_reduce],
            (parameters_of_rank(kLayers, 2) + 500 * kHidden + 32 * kHidden + 2 * kHidden) * 4);
}

}  // namespace
}  // namespace hemiola::workload
