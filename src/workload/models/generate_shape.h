// What one rank holds and computes of a model: sizes that follow from a request, before any node.
#pragma once

#include <cstdint>

#include "workload/models/generate.h"

namespace hemiola::workload {

/// A legal request whose model is complete and whose defaults are filled in.
MakeRequest resolve(MakeRequest request);
/// MakeRequest::micro_batch, or what 0 stands for. Of a request that may not have been checked.
std::int64_t micro_batch_of(const MakeRequest& request);

/// Element types: what lies in memory, what products multiply, what gradients are summed in.
DataType stored_type(const MakeRequest& request);
DataType gradient_type(const MakeRequest& request);

struct RankShape {
  DataType stored = DataType::bfloat16;
  DataType multiplied = DataType::bfloat16;  ///< operands of the products of layers
  DataType summed = DataType::float32;       ///< gradients
  std::int64_t element = 2;                  ///< bytes of `stored`
  std::int64_t gradient = 4;                 ///< bytes of `summed`

  std::int64_t sequences = 1;  ///< of a micro batch
  std::int64_t queries = 0;    ///< of each sequence on this rank
  std::int64_t keys = 0;       ///< that these look at
  std::int64_t tokens = 0;     ///< of a micro batch on this rank
  /// Tokens of norms and residuals: divided by tp with sequence parallelism.
  std::int64_t local_tokens = 0;
  std::int64_t logit_rows = 0;  ///< tokens whose logits are computed

  std::int64_t hidden = 0;
  std::int64_t heads = 0;         ///< of this rank, as all below
  std::int64_t kv_heads = 0;      ///< of latent attention: `heads`
  std::int64_t query_dim = 0;     ///< of a head of queries and keys
  std::int64_t value_dim = 0;     ///< of a head of values
  std::int64_t intermediate = 0;  ///< of dense layers
  std::int64_t vocabulary = 0;    ///< with padding
  std::int64_t experts = 0;
  std::int64_t expert_intermediate = 0;
  std::int64_t shared_intermediate = 0;  ///< of the shared experts together; 0: none
  /// Tokens that this rank's experts work on for a micro batch if all experts are equally popular.
  std::int64_t expert_rows = 0;
  /// How many experts of the rank have work, and for how many tokens each.
  std::int64_t busy_experts = 0;
  std::int64_t rows_of_expert = 0;

  int tp = 1;
  // Ranks among which ZeRO divides parameters, gradients or optimizer states.
  int data_ranks = 1;         ///< DP x CP, or Parallelism::shard
  int expert_data_ranks = 1;  ///< of an expert's: DP x CP / EP, or Parallelism::shard
  bool sequence_parallel = false;

  std::int64_t local_elements() const { return local_tokens * hidden; }
  /// How ranks of tp sum up what each has a part of.
  Collective tp_sum() const {
    return sequence_parallel ? Collective::reduce_scatter : Collective::all_reduce;
  }
};
RankShape shape_of(const MakeRequest& request);

/// Parameters that one rank holds before ZeRO divides them.
struct ParameterCount {
  std::int64_t dense = 0;   ///< the same on all DP x CP ranks
  std::int64_t expert = 0;  ///< the same on DP x CP / EP ranks
  /// Of `dense`, what all tp ranks hold alike: their gradients are summed over tp if each sees a
  /// share of the tokens.
  std::int64_t replicated = 0;
  std::int64_t multiplied = 0;  ///< of a layer: elements of matrices that a token goes through

  ParameterCount& operator+=(const ParameterCount& other) {
    dense += other.dense;
    expert += other.expert;
    replicated += other.replicated;
    multiplied += other.multiplied;
    return *this;
  }
};
/// With the table of positions, which is replicated.
ParameterCount embedding_count(const Model& model, const RankShape& shape);
ParameterCount layer_count(const Model& model, const RankShape& shape, bool mixture);
/// Final norm and logits; with tied embeddings the table again, if `own_table`.
ParameterCount head_count(const Model& model, const RankShape& shape, bool own_table);

/// Elements of what is divided among `ranks`: padded so that each gets the same number.
constexpr std::int64_t padded(std::int64_t count, std::int64_t ranks) {
  return (count + ranks - 1) / ranks * ranks;
}

/// What a rank has of them where all that hold the same divide them.
std::int64_t share_of(const ParameterCount& count, const RankShape& shape);
/// All of a complete model on one rank, its vocabulary not padded.
MakeRequest on_one_rank(Model model);

/// Layers of each chunk of each stage, at [chunk x PP + stage].
std::vector<std::int64_t> layers_of_stages(const MakeRequest& request);
std::int64_t layer_count_of(const MakeRequest& request, int chunk, int stage);
/// Layers before the chunk's first one.
std::int64_t first_layer(const MakeRequest& request, int chunk, int stage);

/// Where the embedding is, and where the logits are.
inline bool holds_embedding(int chunk, int stage) {
  return chunk == 0 && stage == 0;
}
inline bool holds_head(const MakeRequest& request, int chunk, int stage) {
  return chunk == request.chunks - 1 && stage == request.parallelism.pp - 1;
}
/// Parameters of a rank of a stage.
ParameterCount stage_count(const MakeRequest& request, const RankShape& shape, int stage);
/// The pipeline of a resolved request.
Pipeline pipeline_of(const MakeRequest& request);

}  // namespace hemiola::workload
