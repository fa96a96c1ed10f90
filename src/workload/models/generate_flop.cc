// The flop of a model, as model flop utilisation counts them: docs/models.md.
#include "workload/models/generate_shape.h"

namespace hemiola::workload {
namespace {

double real(std::int64_t number) {
  return static_cast<double>(number);
}

/// Elements of the matrices that a token is multiplied with in a layer's attention.
double attention_matrices(const Model& model) {
  const double hidden = real(model.hidden);
  const double heads = real(model.heads);
  if (!model.is_latent())
    return hidden * real(model.head_dim) * (2 * heads + 2 * real(model.kv_heads));
  const LatentAttention& a = model.latent;
  const double query = heads * real(a.plain_dim + a.rope_dim);
  double sum = a.query_rank > 0 ? real(a.query_rank) * (hidden + query) : hidden * query;
  sum += hidden * real(a.kv_rank + a.rope_dim);
  sum += real(a.kv_rank) * heads * real(a.plain_dim + a.value_dim);
  return sum + heads * real(a.value_dim) * hidden;
}

double mlp_matrices(const Model& model, bool mixture) {
  const double factor = model.gated ? 3 : 2;
  if (!mixture) return factor * real(model.hidden) * real(model.intermediate);
  const Experts& experts = model.experts;
  return real(model.hidden) * real(experts.count) + factor * real(model.hidden) *
                                                        real(experts.intermediate) *
                                                        real(experts.per_token + experts.shared);
}

/// Of one token that looks at `keys` others: both products, in all layers.
double attention_flop(const MakeRequest& request, double keys) {
  const Model& model = request.model;
  double dims = 2 * real(model.head_dim);
  if (model.is_latent()) {
    const LatentAttention& a = model.latent;
    dims = request.phase == Phase::decode ? real(2 * a.kv_rank + a.rope_dim)
                                          : real(a.plain_dim + a.rope_dim + a.value_dim);
  }
  return 2 * real(model.layers) * real(model.heads) * dims * keys;
}

}  // namespace

double model_flop(const MakeRequest& given) {
  const MakeRequest request = resolve(given);
  const Model& model = request.model;
  const double dense = real(model.is_mixture() ? model.experts.first_dense_layers : model.layers);
  const double layers = real(model.layers);
  const double matrices = layers * attention_matrices(model) + dense * mlp_matrices(model, false) +
                          (layers - dense) * mlp_matrices(model, true);
  const double table = real(model.vocabulary) * real(model.hidden);
  const double sequences = real(request.global_batch);
  if (request.phase == Phase::decode)
    return sequences * (2 * (matrices + table) + attention_flop(request, real(request.context)));
  const double tokens = sequences * real(request.sequence);
  const double keys = real(request.sequence) / (request.causal ? 2 : 1);
  const double passes = request.phase == Phase::train ? 3 : 1;
  const double logits = request.phase == Phase::train ? tokens : sequences;
  return passes *
         (2 * matrices * tokens + 2 * table * logits + tokens * attention_flop(request, keys));
}

}  // namespace hemiola::workload
