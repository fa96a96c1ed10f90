// Attention of a layer: projections, rotation, the core in both kinds, latent attention.
#include "workload/models/generate_steps.h"

namespace hemiola::workload {
namespace {

// Flop for each element: a rotation multiplies twice and adds; a softmax scales, masks, takes the
// maximum, subtracts, exponentiates, sums and divides; dropout multiplies and scales.
constexpr std::int64_t kRotaryFlop = 3;
constexpr std::int64_t kSoftmaxFlop = 7;
constexpr std::int64_t kFloat = 4;      ///< bytes
constexpr std::int64_t kMergeFlop = 3;  ///< scales two results and adds them

/// Of what a causal piece of a ring would read and write if it were whole: it has half of the
/// queries or half of the keys.
struct Share {
  std::int64_t part, whole;
  std::int64_t of(std::int64_t count) const { return count / whole * part; }
};
constexpr Share kRingShare{3, 4};

/// Sizes and kernels of the attention of one layer.
class Attention {
 public:
  explicit Attention(StepWriter& writer)
      : writer_(writer), model_(writer.model), shape_(writer.shape) {}

  void forward(Steps& out);
  void backward(Steps& out);

 private:
  bool is_training() const { return writer_.request.phase == Phase::train; }
  bool is_unfused() const { return writer_.request.attention == AttentionKernel::unfused; }
  /// In decode latent attention works on the latents themselves: the matrices that expand keys and
  /// values are multiplied to queries and outputs instead (DeepSeek-V2, arXiv:2405.04434, 2.1.2).
  bool is_absorbed() const { return model_.is_latent() && writer_.request.phase == Phase::decode; }

  Linear output() const {
    return {.name = "attention output",
            .rows = shape_.tokens,
            .inputs = shape_.heads * shape_.value_dim,
            .outputs = shape_.hidden,
            .bias = model_.biases == Biases::all || model_.biases == Biases::output};
  }
  Linear qkv() const {
    return {.name = "qkv",
            .rows = shape_.tokens,
            .inputs = shape_.hidden,
            .outputs = (shape_.heads + 2 * shape_.kv_heads) * shape_.query_dim,
            .bias = model_.biases == Biases::all || model_.biases == Biases::qkv};
  }
  // The matrices that make latents are whole on every rank of tp, which each see their tokens.
  Linear query_down() const {
    return {.name = "query down",
            .rows = shape_.local_tokens,
            .inputs = shape_.hidden,
            .outputs = model_.latent.query_rank};
  }
  Linear query_up() const {
    const std::int64_t rank = model_.latent.query_rank;
    return {.name = "query up",
            .rows = shape_.tokens,
            .inputs = rank > 0 ? rank : shape_.hidden,
            .outputs = shape_.heads * shape_.query_dim};
  }
  Linear kv_down() const {
    return {.name = "kv down",
            .rows = shape_.local_tokens,
            .inputs = shape_.hidden,
            .outputs = model_.latent.kv_rank + model_.latent.rope_dim};
  }
  Linear kv_up() const {
    return {.name = "kv up",
            .rows = shape_.tokens,
            .inputs = model_.latent.kv_rank,
            .outputs = shape_.heads * (model_.latent.plain_dim + model_.latent.value_dim)};
  }

  void project(Steps& out);
  void project_latent(Steps& out);
  void project_backward(Steps& out);
  void project_latent_backward(Steps& out);
  std::int64_t rotated_heads() const;
  void rotate(Steps& out, bool backward);
  void normalise(Steps& out, bool backward);
  void keep(Steps& out);
  void absorb(Steps& out, std::string_view name, std::int64_t inputs, std::int64_t outputs);

  void gather_keys(Steps& out, bool summed);
  void core(Steps& out);
  bool is_ring() const { return writer_.families.ring >= 0; }
  Compute flash_core(bool backward, std::int64_t keys) const;
  void flash(Steps& out, bool backward);
  void ring(Steps& out, bool backward);
  void ring_sum(Steps& out, bool backward);
  void unfused(Steps& out);
  void unfused_backward(Steps& out);
  void batched(Steps& out, std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k);

  std::int64_t query_elements() const { return shape_.tokens * shape_.heads * shape_.query_dim; }
  std::int64_t output_elements() const { return shape_.tokens * shape_.heads * shape_.value_dim; }
  /// Keys and values of so many tokens of each sequence.
  std::int64_t kv_elements(std::int64_t tokens) const {
    return shape_.sequences * tokens * shape_.kv_heads * (shape_.query_dim + shape_.value_dim);
  }
  /// Of each row of the scores the logarithm of its sum.
  std::int64_t sum_bytes() const { return kFloat * shape_.tokens * shape_.heads; }
  std::int64_t score_elements() const {
    return shape_.sequences * shape_.heads * shape_.queries * shape_.keys;
  }

  /// All ranks of tp rotate the same key.
  std::int64_t rotated_key_bytes() const {
    return writer_.bytes_of(shape_.tokens * model_.latent.rope_dim);
  }

  StepWriter& writer_;
  const Model& model_;
  const RankShape& shape_;
};

std::int64_t Attention::rotated_heads() const {
  // Latent attention has one rotated key for all heads.
  return shape_.heads + (model_.is_latent() ? 1 : shape_.kv_heads);
}

void Attention::rotate(Steps& out, bool backward) {
  if (model_.positions != Positions::rotary) return;
  const std::int64_t dim = model_.is_latent() ? model_.latent.rope_dim : shape_.query_dim;
  const std::int64_t elements = shape_.tokens * rotated_heads() * dim;
  writer_.move(out, backward ? "rotary backward" : "rotary", writer_.bytes_of(elements),
               writer_.bytes_of(elements), kRotaryFlop * elements);
}

void Attention::normalise(Steps& out, bool backward) {
  if (!model_.query_key_norm) return;
  const std::int64_t rows = shape_.tokens * rotated_heads();
  if (!backward) {
    writer_.norm_forward(out, "query key norm", rows, shape_.query_dim);
    return;
  }
  writer_.norm_backward(out, "query key norm", rows, shape_.query_dim);
  out.back().ready *= 2;  // queries and keys have a weight each
}

void Attention::project(Steps& out) {
  writer_.column_forward(out, qkv());
  normalise(out, false);
  rotate(out, false);
}

void Attention::project_backward(Steps& out) {
  rotate(out, true);
  normalise(out, true);
  writer_.column_backward(out, qkv());
}

void Attention::project_latent(Steps& out) {
  const LatentAttention& latent = model_.latent;
  if (latent.query_rank > 0) {
    writer_.forward(out, query_down());
    writer_.norm_forward(out, "query latent norm", shape_.local_tokens, latent.query_rank);
  }
  writer_.column_forward(out, query_up());
  writer_.forward(out, kv_down());
  writer_.norm_forward(out, "kv latent norm", shape_.local_tokens, latent.kv_rank);
  if (shape_.sequence_parallel)
    writer_.tp(out, StepRole::exposed, Collective::all_gather, rotated_key_bytes());
  if (is_absorbed())
    absorb(out, "query absorbed", latent.plain_dim, latent.kv_rank);
  else
    writer_.column_forward(out, kv_up());
  rotate(out, false);
}

void Attention::project_latent_backward(Steps& out) {
  const LatentAttention& latent = model_.latent;
  rotate(out, true);
  writer_.column_backward(out, kv_up());
  writer_.norm_backward(out, "kv latent norm", shape_.local_tokens, latent.kv_rank);
  writer_.tp(out, StepRole::exposed, shape_.tp_sum(), rotated_key_bytes());
  writer_.gradients(out, kv_down());
  writer_.column_backward(out, query_up());
  if (latent.query_rank == 0) return;
  writer_.norm_backward(out, "query latent norm", shape_.local_tokens, latent.query_rank);
  writer_.gradients(out, query_down());
}

void Attention::absorb(Steps& out, std::string_view name, std::int64_t inputs,
                       std::int64_t outputs) {
  writer_.product(out, name,
                  {.m = shape_.tokens,
                   .n = outputs,
                   .k = inputs,
                   .batch = shape_.heads,
                   .type = shape_.stored});
}

/// Inference puts keys and values, or latents, into the cache.
void Attention::keep(Steps& out) {
  if (is_training()) return;
  const std::int64_t bytes = writer_.bytes_of(
      model_.is_latent() ? shape_.tokens * (model_.latent.kv_rank + model_.latent.rope_dim)
                         : kv_elements(shape_.queries));
  writer_.move(out, "kv cache", bytes, bytes);
}

/// Keys and values of the whole sequence on every rank of cp; backward their gradients' sums.
void Attention::gather_keys(Steps& out, bool summed) {
  if (writer_.families.cp < 0) return;
  const Collective kind = summed ? Collective::reduce_scatter : Collective::all_gather;
  writer_.communicate(out, StepRole::exposed, "cp " + std::string(name_of(kind)),
                      writer_.streams.cp,
                      {.kind = kind,
                       .family = writer_.families.cp,
                       .bytes = writer_.bytes_of(kv_elements(shape_.keys)),
                       .type = shape_.stored});
}

/// Attention to so many keys of each sequence.
Compute Attention::flash_core(bool backward, std::int64_t keys) const {
  Compute core{.kind = Compute::Kind::attention,
               .batch = shape_.sequences,
               .heads = shape_.heads,
               .kv_heads = shape_.kv_heads,
               .queries = shape_.queries,
               .keys = keys,
               // Both products together: their mean.
               .head_dim = (shape_.query_dim + shape_.value_dim) / 2,
               .causal = writer_.request.causal && writer_.request.phase != Phase::decode,
               .backward = backward,
               .type = shape_.stored};
  std::int64_t dims = shape_.query_dim + shape_.value_dim;
  std::int64_t queries = writer_.bytes_of(query_elements());
  std::int64_t outputs = writer_.bytes_of(output_elements());
  std::int64_t kv = writer_.bytes_of(kv_elements(keys));
  if (is_absorbed()) {
    const LatentAttention& latent = model_.latent;
    core.kv_heads = 1;
    dims = 2 * latent.kv_rank + latent.rope_dim;
    core.head_dim = dims / 2;
    queries = writer_.bytes_of(shape_.tokens * shape_.heads * (latent.kv_rank + latent.rope_dim));
    outputs = writer_.bytes_of(shape_.tokens * shape_.heads * latent.kv_rank);
    kv = writer_.bytes_of(shape_.sequences * keys * (latent.kv_rank + latent.rope_dim));
  }
  const std::int64_t sums = sum_bytes();
  core.flop = 2 * shape_.tokens * shape_.heads * keys * dims / (core.causal ? 2 : 1);
  core.read = queries + kv;
  core.written = outputs + sums;
  if (backward) {
    core.flop = core.flop / 2 * 5;
    core.read = queries + kv + 2 * outputs + sums;
    core.written = queries + kv;
  }
  return core;
}

void Attention::flash(Steps& out, bool backward) {
  writer_.attention(out, backward ? "attention backward" : "attention",
                    flash_core(backward, shape_.keys));
}

/// Ring attention (arXiv:2310.01889), as Transformer Engine does it. Each rank begins with keys and
/// values of its own and passes on what it has got, beside the attention to it. The causal sequence
/// is cut into twice as many parts as there are ranks, and rank i has part i and the i-th from
/// behind: so the first piece is causal, and each of the others is half of all pairs, on every rank
/// and in every step. Backward, keys and values go round the other way, beginning with those that
/// came last, and gradients of them follow one step behind, to which each rank adds its own: so
/// they end where they belong.
void Attention::ring(Steps& out, bool backward) {
  const auto last = writer_.request.parallelism.cp - 1;
  const std::int64_t block = writer_.bytes_of(kv_elements(shape_.queries));
  const Compute first = flash_core(backward, shape_.queries);
  Compute other = first;
  if (first.causal) {
    // Half of the keys, or half of the queries: as often the one as the other.
    other.causal = false;
    other.keys = shape_.queries / 2;
    other.read = kRingShare.of(first.read);
    other.written = kRingShare.of(first.written);
  }
  for (int piece = 0; piece <= last; ++piece) {
    std::int64_t sent = piece < last ? block : 0;
    if (backward && piece > 0) sent += block;
    if (sent > 0) writer_.exchange(out, sent, !backward);
    writer_.attention(out, backward ? "attention backward" : "attention",
                      piece == 0 ? first : other);
    // Gradients that are added to have to be there; keys and values of the next piece, too.
    if (backward) StepWriter::join(out);
    if (piece > 0) ring_sum(out, backward);
    if (!backward) StepWriter::join(out);
  }
}

/// The result of a piece is added to that of the pieces before.
void Attention::ring_sum(Steps& out, bool backward) {
  const bool causal = writer_.request.causal;
  const std::int64_t elements =
      backward ? query_elements() + kv_elements(shape_.queries) : output_elements();
  const std::int64_t bytes = writer_.bytes_of(elements) + (backward ? 0 : sum_bytes());
  const std::int64_t written = causal ? kRingShare.of(bytes) : bytes;
  // Forward both are scaled by what their rows sum to.
  const std::int64_t flop = (backward ? 1 : kMergeFlop) * elements;
  writer_.move(out, backward ? "attention gradients sum" : "attention merge", 2 * written, written,
               causal ? kRingShare.of(flop) : flop);
}

void Attention::batched(Steps& out, std::string_view name, std::int64_t m, std::int64_t n,
                        std::int64_t k) {
  writer_.product(
      out, name,
      {.m = m, .n = n, .k = k, .batch = shape_.sequences * shape_.heads, .type = shape_.stored});
}

void Attention::unfused(Steps& out) {
  const std::int64_t scores = score_elements();
  const std::int64_t bytes = writer_.bytes_of(scores);
  batched(out, "scores", shape_.queries, shape_.keys, shape_.query_dim);
  if (writer_.request.fused_softmax) {
    writer_.move(out, "scale mask softmax", bytes, bytes, kSoftmaxFlop * scores);
  } else {
    writer_.move(out, "scale", bytes, bytes, scores);
    writer_.move(out, "mask", bytes + shape_.queries * shape_.keys, bytes, scores);
    writer_.move(out, "softmax", bytes, bytes, (kSoftmaxFlop - 2) * scores);
  }
  if (model_.dropout && is_training())
    writer_.move(out, "attention dropout", bytes, bytes + scores, kDropoutFlop * scores);
  batched(out, "context", shape_.queries, shape_.value_dim, shape_.keys);
  // Heads of a token are put side by side.
  writer_.move(out, "context transposed", writer_.bytes_of(output_elements()),
               writer_.bytes_of(output_elements()));
}

void Attention::unfused_backward(Steps& out) {
  const std::int64_t scores = score_elements();
  const std::int64_t bytes = writer_.bytes_of(scores);
  writer_.move(out, "context transposed backward", writer_.bytes_of(output_elements()),
               writer_.bytes_of(output_elements()));
  batched(out, "probabilities gradient", shape_.queries, shape_.keys, shape_.value_dim);
  batched(out, "values gradient", shape_.keys, shape_.value_dim, shape_.queries);
  if (model_.dropout)
    writer_.move(out, "attention dropout backward", bytes + scores, bytes, kDropoutFlop * scores);
  // The gradient, and the probabilities that were kept.
  writer_.move(out,
               writer_.request.fused_softmax ? "scale mask softmax backward" : "softmax backward",
               2 * bytes, bytes, kSoftmaxFlop * scores);
  if (!writer_.request.fused_softmax) {
    writer_.move(out, "mask backward", bytes + shape_.queries * shape_.keys, bytes, scores);
    writer_.move(out, "scale backward", bytes, bytes, scores);
  }
  batched(out, "queries gradient", shape_.queries, shape_.query_dim, shape_.keys);
  batched(out, "keys gradient", shape_.keys, shape_.query_dim, shape_.queries);
}

void Attention::core(Steps& out) {
  if (is_ring())
    ring(out, false);
  else if (is_unfused() && !is_absorbed())
    unfused(out);
  else
    flash(out, false);
}

void Attention::forward(Steps& out) {
  writer_.norm_forward(out, "attention norm", shape_.local_tokens, shape_.hidden);
  if (model_.is_latent())
    project_latent(out);
  else
    project(out);
  keep(out);
  gather_keys(out, false);
  core(out);
  if (is_absorbed()) absorb(out, "values absorbed", model_.latent.kv_rank, shape_.value_dim);
  writer_.row_forward(out, output());
}

void Attention::backward(Steps& out) {
  writer_.row_backward(out, output());
  // Only the rank's own keys and values are kept from the forward pass.
  gather_keys(out, false);
  if (writer_.request.recompute == Recompute::selective) core(out);
  if (is_ring())
    ring(out, true);
  else if (is_unfused())
    unfused_backward(out);
  else
    flash(out, true);
  gather_keys(out, true);
  if (model_.is_latent())
    project_latent_backward(out);
  else
    project_backward(out);
  writer_.norm_backward(out, "attention norm", shape_.local_tokens, shape_.hidden);
}

}  // namespace

void attention_forward(StepWriter& writer, Steps& out) {
  Attention(writer).forward(out);
  writer.residual_forward(out, "attention residual");
}

void attention_backward(StepWriter& writer, Steps& out) {
  writer.residual_begin_backward(out);
  Attention(writer).backward(out);
  writer.residual_end_backward(out);
}

}  // namespace hemiola::workload
