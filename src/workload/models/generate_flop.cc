// The flop of a model, as model flop utilisation counts them: docs/models.md.
#include "workload/models/generate_shape.h"

namespace hemiola::workload {
namespace {

double real(std::int64_t number) {
  return static_cast<double>(number);
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
  const MakeRequest whole = on_one_rank(model);
  const RankShape shape = shape_of(whole);
  const std::int64_t dense = model.is_mixture() ? model.experts.first_dense_layers : model.layers;
  const double matrices =
      real(dense) * real(layer_count(model, shape, false).multiplied) +
      real(model.layers - dense) * real(layer_count(model, shape, true).multiplied);
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
