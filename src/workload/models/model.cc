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

}  // namespace

Model complete(Model model, const SourceLocation& where) {
  Completer(model, where).run();
  return model;
}

}  // namespace hemiola::workload
