// The flop of a model, as model flop utilisation counts them: docs/models.md.
#include "workload/generate_shape.h"

namespace hemiola::workload {
namespace {

double of(std::int64_t number) {
  return static_cast<double>(number);
}

/// Elements of the matrices that a token is multiplied with in a layer's attention.
double attention_matrices(const Model& model) {
  const double hidden = of(model.hidden);
  const double heads = of(model.heads);
  if (!model.is_latent()) return hidden * of(model.head_dim) * (2 * heads + 2 * of(model.kv_heads));
  const LatentAttention& a = model.latent;
  const double query = heads * of(a.plain_dim + a.rope_dim);
  double sum = a.query_rank > 0 ? of(a.query_rank) * (hidden + query) : hidden * query;
  sum += hidden * of(a.kv_rank + a.rope_dim);
  sum += of(a.kv_rank) * heads * of(a.plain_dim + a.value_dim);
  return sum + heads * of(a.value_dim) * hidden;
}

double mlp_matrices(const Model& model, bool mixture) {
  const double factor = model.gated ? 3 : 2;
  if (!mixture) return factor * of(model.hidden) * of(model.intermediate);
  const Experts& experts = model.experts;
  return of(model.hidden) * of(experts.count) + factor * of(model.hidden) *
                                                    of(experts.intermediate) *
                                                    of(experts.per_token + experts.shared);
}

/// Of one token that looks at `keys` others: both products, in all layers.
double attention_flop(const MakeRequest& request, double keys) {
  const Model& model = request.model;
  double dims = 2 * of(model.head_dim);
  if (model.is_latent()) {
    const LatentAttention& a = model.latent;
    dims = request.phase == Phase::decode ? of(2 * a.kv_rank + a.rope_dim)
                                          : of(a.plain_dim + a.rope_dim + a.value_dim);
  }
  return 2 * of(model.layers) * of(model.heads) * dims * keys;
}

}  // namespace

double model_flop(const MakeRequest& given) {
  const MakeRequest request = resolve(given);
  const Model& model = request.model;
  const double dense = of(model.is_mixture() ? model.experts.first_dense_layers : model.layers);
  const double layers = of(model.layers);
  const double matrices = layers * attention_matrices(model) + dense * mlp_matrices(model, false) +
                          (layers - dense) * mlp_matrices(model, true);
  const double table = of(model.vocabulary) * of(model.hidden);
  const double sequences = of(request.global_batch);
  if (request.phase == Phase::decode)
    return sequences * (2 * (matrices + table) + attention_flop(request, of(request.context)));
  const double tokens = sequences * of(request.sequence);
  const double keys = of(request.sequence) / (request.causal ? 2 : 1);
  const double passes = request.phase == Phase::train ? 3 : 1;
  const double logits = request.phase == Phase::train ? tokens : sequences;
  return passes *
         (2 * matrices * tokens + 2 * table * logits + tokens * attention_flop(request, keys));
}

}  // namespace hemiola::workload
