// The shape of a transformer: what its matrix products, its parameters and its communication follow
// from. docs/models.md is the manual and has the formulas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::workload {

enum class Norm : std::uint8_t {
  rms,   ///< a weight
  layer  ///< a weight and a bias
};
enum class Positions : std::uint8_t {
  rotary,   ///< queries and keys are rotated in each layer
  learned,  ///< a table of `sequence` x `hidden` is added to the embedding
  none
};
enum class Biases : std::uint8_t {
  none,
  qkv,     ///< of queries, keys and values (Qwen2)
  output,  ///< of all products but queries, keys and values (GPT-Neo)
  all      ///< of all products but the logits (GPT)
};

/// Layers whose MLP is divided into experts, of which a router takes a few for each token.
struct Experts {
  std::int64_t count = 0;         ///< without the shared ones; 0: none, every MLP is dense
  std::int64_t per_token = 0;     ///< experts that the router takes
  std::int64_t shared = 0;        ///< experts that every token takes, computed as one
  std::int64_t intermediate = 0;  ///< of one expert
  std::int64_t first_dense_layers = 0;
  bool router_bias = false;  ///< one number for each expert, which balances them (DeepSeek-V3)
};

/// Multi-head latent attention (DeepSeek-V2): keys and values of all heads come out of one latent
/// vector for each token. `Model::head_dim` is not looked at.
struct LatentAttention {
  std::int64_t kv_rank = 0;     ///< 0: none, usual attention
  std::int64_t query_rank = 0;  ///< 0: queries are projected at once
  std::int64_t plain_dim = 0;   ///< of a head of queries and keys, without the rotated part
  std::int64_t rope_dim = 0;    ///< the rotated part, which all heads of the keys share
  std::int64_t value_dim = 0;
};

/// A plain struct: a model that has no file is made from its numbers. The defaults are those of
/// GPT in Megatron-LM apart from the four sizes without one; complete() fills in what follows.
struct Model {
  std::string name;
  std::string source;  ///< of the numbers
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;      ///< 0: `heads`
  std::int64_t head_dim = 0;      ///< 0: `hidden / heads`
  std::int64_t intermediate = 0;  ///< of the MLP; 0: 4 x `hidden`
  bool gated = false;             ///< SwiGLU: gate and up are two matrices; or else GELU
  std::int64_t vocabulary = 0;
  bool tied_embeddings = true;  ///< the logits' matrix is the embedding
  std::int64_t sequence = 0;  ///< that a request takes if it names none; rows of learned positions
  Norm norm = Norm::layer;
  bool query_key_norm = false;  ///< of each head of queries and keys (Qwen3)
  Positions positions = Positions::learned;
  Biases biases = Biases::all;
  bool dropout = true;  ///< of embedding, probabilities, attention and MLP; in training only
  Experts experts{};
  LatentAttention latent{};
  std::vector<Diagnostic> notices{};  ///< what a reader left out or took for granted

  bool is_mixture() const { return experts.count > 0; }
  bool is_latent() const { return latent.kv_rank > 0; }
  /// Whether the MLP of a layer is experts.
  bool is_mixture_layer(std::int64_t layer) const {
    return is_mixture() && layer >= experts.first_dense_layers;
  }
};

/// The model with its defaults filled in. Failure for sizes that are missing, negative or
/// absurd, and for what contradicts itself (heads that are no multiple of kv_heads, more experts
/// per token than experts).
Model complete(Model model, const SourceLocation& where = {});

/// Parameters of complete models, as published: without padding of the vocabulary.
std::int64_t parameters(const Model& model);

/// Names of the models that are built in, without aliases, sorted.
std::vector<std::string> shipped_models();

/// A model that is built in, by name or alias, or a file: of our schema (docs/models.md), or a
/// config.json of Hugging Face, recognised by `model_type` or `architectures`. The model is
/// complete. Failure with file and line for a name and file that are not there, keys that are
/// unknown, stand twice or are missing, values of the wrong kind, and a `model_type` that is not
/// read.
Model load_model(const std::string& name_or_file);
/// The content of such a file.
Model parse_model(std::string_view text, const std::string& file);

}  // namespace hemiola::workload
