#include "workload/models/model.h"

#include <fmt/format.h>

namespace hemiola::workload {
namespace {

constexpr std::int64_t kMostLayers = 100'000;
constexpr std::int64_t kLargest = std::int64_t{1} << 24;  ///< of a width

class Completer {
 public:
  Completer(Model& model, const SourceLocation& where) : model_(model), where_(where) {}

  void run() {
    require("layers", model_.layers, 1, kMostLayers);
    require("hidden", model_.hidden, 1, kLargest);
    require("heads", model_.heads, 1, kLargest);
    require("vocabulary", model_.vocabulary, 1, kLargest);
    require("sequence", model_.sequence, 1, std::int64_t{1} << 32);
    if (model_.kv_heads == 0) model_.kv_heads = model_.heads;
    complete_head_dim();
    if (model_.intermediate == 0) model_.intermediate = 4 * model_.hidden;
    require("kv_heads", model_.kv_heads, 1, kLargest);
    require("head_dim", model_.head_dim, 1, kLargest);
    require("intermediate", model_.intermediate, 1, kLargest);
    if (model_.heads % model_.kv_heads != 0)
      fail(fmt::format("{} heads are no multiple of {} kv_heads", model_.heads, model_.kv_heads));
    complete_experts();
    complete_latent();
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    throw Failure(
        fmt::format("model '{}': {}", model_.name.empty() ? "(no name)" : model_.name, message),
        where_, hint);
  }
  void require(const char* what, std::int64_t value, std::int64_t least, std::int64_t most) const {
    if (value < least || value > most)
      fail(fmt::format("{} is {}, which must be from {} to {}", what, value, least, most));
  }

  void complete_head_dim() {
    if (model_.head_dim != 0) return;
    if (model_.is_latent()) {
      model_.head_dim = model_.latent.plain_dim + model_.latent.rope_dim;
      return;
    }
    if (model_.hidden % model_.heads != 0)
      fail(fmt::format("hidden {} is no multiple of {} heads", model_.hidden, model_.heads),
           "name head_dim");
    model_.head_dim = model_.hidden / model_.heads;
  }

  void complete_experts() const {
    const Experts& experts = model_.experts;
    require("experts.count", experts.count, 0, kLargest);
    if (!model_.is_mixture()) return;
    require("experts.per_token", experts.per_token, 1, experts.count);
    require("experts.intermediate", experts.intermediate, 1, kLargest);
    require("experts.shared", experts.shared, 0, kLargest);
    require("experts.first_dense_layers", experts.first_dense_layers, 0, model_.layers);
  }

  void complete_latent() const {
    const LatentAttention& latent = model_.latent;
    require("latent_attention.kv_rank", latent.kv_rank, 0, kLargest);
    if (!model_.is_latent()) return;
    require("latent_attention.query_rank", latent.query_rank, 0, kLargest);
    require("latent_attention.plain_dim", latent.plain_dim, 1, kLargest);
    require("latent_attention.rope_dim", latent.rope_dim, 0, kLargest);
    require("latent_attention.value_dim", latent.value_dim, 1, kLargest);
    if (model_.kv_heads != model_.heads) fail("latent attention has as many kv_heads as heads");
    if (model_.biases == Biases::qkv || model_.biases == Biases::all)
      fail("latent attention has no biases of queries, keys and values");
  }

  Model& model_;
  const SourceLocation& where_;
};

std::int64_t norm_size(const Model& model, std::int64_t width) {
  return model.norm == Norm::layer ? 2 * width : width;
}

std::int64_t latent_attention_parameters(const Model& model) {
  const LatentAttention& a = model.latent;
  const std::int64_t query = a.plain_dim + a.rope_dim;
  std::int64_t sum = 0;
  if (a.query_rank == 0)
    sum += model.hidden * model.heads * query;
  else
    sum += model.hidden * a.query_rank + norm_size(model, a.query_rank) +
           a.query_rank * model.heads * query;
  sum += model.hidden * (a.kv_rank + a.rope_dim) + norm_size(model, a.kv_rank);
  sum += a.kv_rank * model.heads * (a.plain_dim + a.value_dim);
  return sum + model.heads * a.value_dim * model.hidden;
}

std::int64_t attention_parameters(const Model& model) {
  const bool output_bias = model.biases == Biases::all || model.biases == Biases::output;
  const std::int64_t bias_of_output = output_bias ? model.hidden : 0;
  if (model.is_latent()) return latent_attention_parameters(model) + bias_of_output;
  const std::int64_t qkv = (model.heads + 2 * model.kv_heads) * model.head_dim;
  const bool qkv_bias = model.biases == Biases::all || model.biases == Biases::qkv;
  std::int64_t sum = model.hidden * qkv + (qkv_bias ? qkv : 0);
  if (model.query_key_norm) sum += 2 * norm_size(model, model.head_dim);
  return sum + model.heads * model.head_dim * model.hidden + bias_of_output;
}

std::int64_t mlp_parameters(const Model& model, std::int64_t intermediate) {
  const std::int64_t up = model.gated ? 2 * intermediate : intermediate;
  const bool bias = model.biases == Biases::all || model.biases == Biases::output;
  return model.hidden * (up + intermediate) + (bias ? up + model.hidden : 0);
}

std::int64_t layer_parameters(const Model& model, bool mixture) {
  std::int64_t sum = attention_parameters(model) + 2 * norm_size(model, model.hidden);
  if (!mixture) return sum + mlp_parameters(model, model.intermediate);
  const Experts& all = model.experts;
  sum += model.hidden * all.count + (all.router_bias ? all.count : 0);
  sum += all.count * mlp_parameters(model, all.intermediate);
  if (all.shared > 0) sum += mlp_parameters(model, all.shared * all.intermediate);
  return sum;
}

}  // namespace

Model complete(Model model, const SourceLocation& where) {
  Completer(model, where).run();
  return model;
}

std::int64_t parameters(const Model& model) {
  const std::int64_t dense = model.is_mixture() ? model.experts.first_dense_layers : model.layers;
  const std::int64_t table = model.vocabulary * model.hidden;
  std::int64_t sum = dense * layer_parameters(model, false);
  sum += (model.layers - dense) * layer_parameters(model, true);
  sum += model.tied_embeddings ? table : 2 * table;
  if (model.positions == Positions::learned) sum += model.sequence * model.hidden;
  return sum + norm_size(model, model.hidden);
}

}  // namespace hemiola::workload
