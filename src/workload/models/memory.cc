#include "workload/models/memory.h"

#include <algorithm>
#include <numeric>

#include "workload/models/generate_shape.h"

namespace hemiola::workload {
namespace {

constexpr std::int64_t kSoftmaxBytes = 4;  ///< of a logit, a router's score, a row's sum

/// What is kept of a layer, in bytes; each line is a tensor that the backward pass reads.
class LayerActivations {
 public:
  LayerActivations(const MakeRequest& request, const RankShape& shape)
      : request_(request), model_(request.model), shape_(shape) {}

  std::int64_t attention(bool with_core) const {
    std::int64_t bytes = 2 * local();  // inputs of the norm and of the projections
    if (model_.is_latent()) {
      // Latents before and after their norms.
      bytes +=
          2 * element(shape_.local_tokens * (model_.latent.query_rank + model_.latent.kv_rank));
      bytes += element(shape_.local_tokens * model_.latent.rope_dim);
    }
    const std::int64_t queries_keys =
        shape_.tokens * (shape_.heads + shape_.kv_heads) * shape_.query_dim;
    bytes += element(queries_keys + shape_.tokens * shape_.kv_heads * shape_.value_dim);
    if (model_.query_key_norm) bytes += element(queries_keys);
    if (with_core) bytes += core();
    bytes += element(shape_.tokens * shape_.heads * shape_.value_dim);  // input of the output
    return bytes + mask();
  }

  std::int64_t mlp(bool mixture) const {
    std::int64_t bytes = 2 * local();  // inputs of the norm and of the first product
    if (!mixture) return bytes + hidden(shape_.tokens, shape_.intermediate) + mask();
    const std::int64_t chosen = shape_.local_tokens * model_.experts.per_token;
    bytes += shape_.local_tokens * model_.experts.count * kSoftmaxBytes;
    bytes += element(shape_.expert_rows * shape_.hidden);  // inputs of the experts
    bytes += hidden(shape_.expert_rows, shape_.expert_intermediate);
    bytes += element(chosen * shape_.hidden);  // outputs, for gradients of the probabilities
    bytes += hidden(shape_.tokens, shape_.shared_intermediate);
    return bytes + mask();
  }

  /// The input of a layer.
  std::int64_t local() const { return element(shape_.local_elements()); }

 private:
  std::int64_t element(std::int64_t count) const { return count * shape_.element; }
  std::int64_t mask() const { return model_.dropout ? shape_.local_elements() : 0; }
  /// Inputs of the activation and of the second product.
  std::int64_t hidden(std::int64_t rows, std::int64_t intermediate) const {
    return element(rows * (model_.gated ? 3 : 2) * intermediate);
  }
  std::int64_t core() const {
    if (request_.attention == AttentionKernel::flash)
      return shape_.tokens * shape_.heads * kSoftmaxBytes;
    const std::int64_t scores = shape_.sequences * shape_.heads * shape_.queries * shape_.keys;
    // Softmax; dropout keeps its mask and what is left.
    return element(scores) + (model_.dropout ? scores + element(scores) : 0);
  }

  const MakeRequest& request_;
  const Model& model_;
  const RankShape& shape_;
};

std::int64_t kept_of_layer(const MakeRequest& request, const RankShape& shape, bool mixture) {
  const LayerActivations layer(request, shape);
  if (request.recompute == Recompute::full) return layer.local();
  return layer.attention(request.recompute == Recompute::none) + layer.mlp(mixture);
}

class StageMemory {
 public:
  StageMemory(const MakeRequest& request, const RankShape& shape, int stage)
      : request_(request), model_(request.model), shape_(shape), stage_(stage) {}

  std::map<std::string, std::int64_t> bytes() const {
    std::map<std::string, std::int64_t> all = states();
    if (request_.phase == Phase::train) {
      all["activations"] = training_activations();
      if (request_.parallelism.zero == 3) all["gathered parameters"] = gathered();
    } else {
      all["activations"] = inference_activations();
      all["kv cache"] = kv_cache();
    }
    std::erase_if(all, [](const auto& item) { return item.second == 0; });
    return all;
  }

 private:
  std::int64_t layers_of(int chunk, bool mixture) const {
    const std::int64_t first = first_layer(request_, chunk, stage_);
    const std::int64_t end = first + layer_count_of(request_, chunk, stage_);
    std::int64_t count = 0;
    for (std::int64_t layer = first; layer < end; ++layer)
      count += model_.is_mixture_layer(layer) == mixture ? 1 : 0;
    return count;
  }

  std::map<std::string, std::int64_t> states() const {
    const ParameterCount count = stage_count(request_, shape_, stage_);
    const int zero = request_.parallelism.zero;
    const std::int64_t whole = count.dense + count.expert;
    const std::int64_t share = share_of(count, shape_);
    if (request_.phase != Phase::train) {
      // Layers lie in memory in the type of their products.
      std::int64_t ends = 0;
      if (holds_embedding(0, stage_)) ends += embedding_count(model_, shape_).dense;
      if (holds_head(request_, 0, stage_))
        ends += head_count(model_, shape_, request_.parallelism.pp > 1).dense;
      return {{"parameters", (whole - ends) * size_of(request_.type) + ends * shape_.element}};
    }
    return {{"parameters", (zero >= 3 ? share : whole) * shape_.element},
            {"gradients", (zero >= 2 ? share : whole) * shape_.gradient},
            {"optimizer", (zero >= 1 ? share : whole) * request_.optimizer_bytes}};
  }

  std::int64_t kept_of_chunk(int chunk) const {
    std::int64_t bytes = 0;
    for (const bool mixture : {false, true})
      bytes += layers_of(chunk, mixture) * kept_of_layer(request_, shape_, mixture);
    if (holds_embedding(chunk, stage_) && model_.dropout) bytes += shape_.local_elements();
    if (holds_head(request_, chunk, stage_))
      bytes += 2 * shape_.local_elements() * shape_.element +
               shape_.logit_rows * shape_.vocabulary * kSoftmaxBytes;
    return bytes;
  }

  std::int64_t training_activations() const {
    std::vector<std::int64_t> kept;
    for (int chunk = 0; chunk < request_.chunks; ++chunk) kept.push_back(kept_of_chunk(chunk));
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (const Pass& pass : passes_of(pipeline_of(request_), stage_)) {
      const std::int64_t bytes = kept[index(pass.chunk)];
      if (pass.kind == PassKind::forward) most = std::max(most, now += bytes);
      if (pass.kind == PassKind::backward || pass.kind == PassKind::weight_gradient) now -= bytes;
    }
    return most + computed_again();
  }

  /// What recomputation brings back for one layer at a time.
  std::int64_t computed_again() const {
    if (request_.recompute == Recompute::none) return 0;
    const LayerActivations layer(request_, shape_);
    std::int64_t most = 0;
    for (const bool mixture : {false, true}) {
      bool is_there = false;
      for (int chunk = 0; chunk < request_.chunks; ++chunk)
        is_there = is_there || layers_of(chunk, mixture) > 0;
      if (!is_there) continue;
      const std::int64_t whole = layer.attention(true) + layer.mlp(mixture);
      most = std::max(most, whole - kept_of_layer(request_, shape_, mixture));
    }
    return most;
  }

  std::int64_t gathered() const {
    ParameterCount largest;
    const auto consider = [&](const ParameterCount& count) {
      if (count.dense + count.expert > largest.dense + largest.expert) largest = count;
    };
    for (int chunk = 0; chunk < request_.chunks; ++chunk) {
      for (const bool mixture : {false, true})
        if (layers_of(chunk, mixture) > 0) consider(layer_count(model_, shape_, mixture));
      if (holds_embedding(chunk, stage_)) consider(embedding_count(model_, shape_));
      if (holds_head(request_, chunk, stage_)) consider(head_count(model_, shape_, true));
    }
    return (request_.prefetch + 1) * (largest.dense + largest.expert) * shape_.element;
  }

  /// What a layer needs while it runs: its input and output, and its widest product; logits.
  std::int64_t inference_activations() const {
    const std::int64_t up = model_.gated ? 3 : 2;
    const std::int64_t attention =
        shape_.tokens * ((shape_.heads + shape_.kv_heads) * shape_.query_dim +
                         (shape_.heads + shape_.kv_heads) * shape_.value_dim);
    std::int64_t widest = attention;
    if (layers_of(0, false) > 0)
      widest = std::max(widest, shape_.tokens * up * shape_.intermediate);
    if (layers_of(0, true) > 0)
      widest = std::max(widest,
                        shape_.expert_rows * (up * shape_.expert_intermediate + 2 * shape_.hidden));
    std::int64_t elements = 2 * shape_.tokens * shape_.hidden + widest;
    if (holds_head(request_, 0, stage_))
      elements += shape_.logit_rows * shape_.vocabulary * shape_.tp;
    return elements * shape_.element;
  }

  std::int64_t kv_cache() const {
    const std::int64_t of_token = model_.is_latent()
                                      ? model_.latent.kv_rank + model_.latent.rope_dim
                                      : shape_.kv_heads * (shape_.query_dim + shape_.value_dim);
    const std::int64_t tokens = request_.phase == Phase::decode ? shape_.keys : shape_.queries;
    const std::int64_t sequences = pipeline_of(request_).micro_batches * shape_.sequences;
    return sequences * tokens * of_token * (layers_of(0, false) + layers_of(0, true)) *
           shape_.element;
  }

  const MakeRequest& request_;
  const Model& model_;
  const RankShape& shape_;
  int stage_;
};

}  // namespace

std::vector<std::map<std::string, std::int64_t>> memory_of(const MakeRequest& given) {
  const MakeRequest request = resolve(given);
  const RankShape shape = shape_of(request);
  std::vector<std::map<std::string, std::int64_t>> stages;
  for (int stage = 0; stage < request.parallelism.pp; ++stage)
    stages.push_back(StageMemory(request, shape, stage).bytes());
  return stages;
}

std::int64_t activation_bytes(const MakeRequest& given, bool mixture_layer) {
  const MakeRequest request = resolve(given);
  return kept_of_layer(request, shape_of(request), mixture_layer);
}

std::int64_t sum_of(const std::map<std::string, std::int64_t>& memory) {
  return std::accumulate(memory.begin(), memory.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& one) { return sum + one.second; });
}

}  // namespace hemiola::workload
