#include "workload/models/generate_shape.h"

#include <algorithm>
#include <utility>

namespace hemiola::workload {
namespace {

bool is_fp8(DataType type) {
  return type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2;
}

/// Matrices are divided by tp, or whole on all its ranks.
ParameterCount matrix(std::int64_t elements, bool is_whole = false) {
  return {.dense = elements, .replicated = is_whole ? elements : 0, .multiplied = elements};
}
/// What is added, or scales: biases, and weights of norms.
ParameterCount added(std::int64_t elements, bool is_whole = true) {
  return {.dense = elements, .replicated = is_whole ? elements : 0};
}
ParameterCount norm(const Model& model, std::int64_t width) {
  return added(model.norm == Norm::layer ? 2 * width : width);
}

bool has_output_bias(const Model& model) {
  return model.biases == Biases::all || model.biases == Biases::output;
}

/// Of an MLP: biases of the second product are on every rank.
ParameterCount mlp_count(const Model& model, std::int64_t hidden, std::int64_t intermediate) {
  const std::int64_t up = model.gated ? 2 * intermediate : intermediate;
  ParameterCount count = matrix(hidden * (up + intermediate));
  if (has_output_bias(model)) (count += added(up, false)) += added(hidden);
  return count;
}

ParameterCount attention_count(const Model& model, const RankShape& shape) {
  ParameterCount count;
  if (model.is_latent()) {
    const LatentAttention& a = model.latent;
    const std::int64_t inputs = a.query_rank > 0 ? a.query_rank : shape.hidden;
    if (a.query_rank > 0)
      (count += matrix(shape.hidden * a.query_rank, true)) += norm(model, a.query_rank);
    count += matrix(inputs * shape.heads * shape.query_dim);
    (count += matrix(shape.hidden * (a.kv_rank + a.rope_dim), true)) += norm(model, a.kv_rank);
    count += matrix(a.kv_rank * shape.heads * (a.plain_dim + a.value_dim));
  } else {
    const std::int64_t width = (shape.heads + 2 * shape.kv_heads) * shape.query_dim;
    count += matrix(shape.hidden * width);
    if (model.biases == Biases::all || model.biases == Biases::qkv) count += added(width, false);
    if (model.query_key_norm) count += norm(model, 2 * shape.query_dim);
  }
  count += matrix(shape.heads * shape.value_dim * shape.hidden);
  if (has_output_bias(model)) count += added(shape.hidden);
  return count;
}

}  // namespace

std::int64_t micro_batch_of(const MakeRequest& request) {
  if (request.micro_batch != 0) return request.micro_batch;
  const Parallelism& by = request.parallelism;
  if (request.phase == Phase::train || by.dp < 1 || by.pp < 1) return 1;
  if (request.global_batch % by.dp != 0) return 1;
  const std::int64_t replica = request.global_batch / by.dp;
  return std::max<std::int64_t>(1, replica % by.pp == 0 ? replica / by.pp : replica);
}

MakeRequest resolve(MakeRequest request) {
  check(request);
  request.model = complete(std::move(request.model));
  Parallelism& by = request.parallelism;
  if (by.tp == 1) by.sequence_parallel = false;
  if (request.sequence == 0) request.sequence = request.model.sequence;
  if (request.context == 0) request.context = request.model.sequence;
  request.micro_batch = micro_batch_of(request);
  if (request.global_batch == 0)
    request.global_batch = std::int64_t{by.dp} * by.pp * request.micro_batch;
  if (request.phase != Phase::train) request.recompute = Recompute::none;
  return request;
}

DataType stored_type(const MakeRequest& request) {
  return is_fp8(request.type) ? DataType::bfloat16 : request.type;
}

DataType gradient_type(const MakeRequest& request) {
  if (request.gradient_type) return *request.gradient_type;
  const DataType stored = stored_type(request);
  return stored == DataType::bfloat16 ? DataType::float32 : stored;
}

RankShape shape_of(const MakeRequest& request) {
  const Model& model = request.model;
  const Parallelism& by = request.parallelism;
  RankShape shape;
  shape.stored = stored_type(request);
  shape.multiplied = request.type;
  shape.summed = gradient_type(request);
  shape.element = size_of(shape.stored);
  shape.gradient = size_of(shape.summed);

  const bool decode = request.phase == Phase::decode;
  shape.sequences = request.micro_batch;
  shape.queries = decode ? 1 : request.sequence / by.cp;
  shape.keys = decode ? request.context : request.sequence;
  shape.tokens = shape.sequences * shape.queries;
  shape.sequence_parallel = by.sequence_parallel && by.tp > 1;
  shape.local_tokens = shape.sequence_parallel ? shape.tokens / by.tp : shape.tokens;
  shape.logit_rows = request.phase == Phase::train ? shape.tokens : shape.sequences;

  shape.hidden = model.hidden;
  shape.heads = model.heads / by.tp;
  shape.kv_heads =
      model.is_latent() ? shape.heads : std::max<std::int64_t>(1, model.kv_heads / by.tp);
  const LatentAttention& latent = model.latent;
  shape.query_dim = model.is_latent() ? latent.plain_dim + latent.rope_dim : model.head_dim;
  shape.value_dim = model.is_latent() ? latent.value_dim : model.head_dim;
  shape.intermediate = model.intermediate / by.tp;
  shape.vocabulary = padded(model.vocabulary, request.vocabulary_multiple * by.tp) / by.tp;

  shape.tp = by.tp;
  shape.data_ranks = by.shard > 0 ? by.shard : by.dp * by.cp;
  shape.expert_data_ranks = shape.data_ranks / by.ep;
  if (!model.is_mixture()) return shape;
  const Experts& experts = model.experts;
  shape.experts = experts.count / by.ep;
  shape.expert_intermediate = experts.intermediate / by.tp;
  shape.shared_intermediate = experts.shared * experts.intermediate / by.tp;
  shape.expert_rows = shape.tokens * experts.per_token;
  shape.busy_experts = std::min(shape.experts, shape.expert_rows);
  shape.rows_of_expert = (shape.expert_rows + shape.busy_experts - 1) / shape.busy_experts;
  return shape;
}

ParameterCount embedding_count(const Model& model, const RankShape& shape) {
  ParameterCount count{.dense = shape.vocabulary * shape.hidden};
  if (model.positions == Positions::learned) count += added(model.sequence * shape.hidden);
  return count;
}

ParameterCount layer_count(const Model& model, const RankShape& shape, bool mixture) {
  ParameterCount count = attention_count(model, shape);
  count += norm(model, 2 * shape.hidden);
  if (!mixture) return count += mlp_count(model, shape.hidden, shape.intermediate);
  count += matrix(shape.hidden * model.experts.count, true);
  if (model.experts.router_bias) count += added(model.experts.count);
  if (shape.shared_intermediate > 0)
    count += mlp_count(model, shape.hidden, shape.shared_intermediate);
  const ParameterCount expert = mlp_count(model, shape.hidden, shape.expert_intermediate);
  return count += {.expert = shape.experts * expert.dense,
                   .multiplied = model.experts.per_token * expert.multiplied};
}

ParameterCount head_count(const Model& model, const RankShape& shape, bool own_table) {
  ParameterCount count = norm(model, shape.hidden);
  if (own_table || !model.tied_embeddings) count += {.dense = shape.vocabulary * shape.hidden};
  return count;
}

std::int64_t share_of(const ParameterCount& count, const RankShape& shape) {
  return padded(count.dense, shape.data_ranks) / shape.data_ranks +
         padded(count.expert, shape.expert_data_ranks) / shape.expert_data_ranks;
}

MakeRequest on_one_rank(Model model) {
  const std::int64_t sequence = model.sequence;
  return {
      .model = std::move(model), .micro_batch = 1, .sequence = sequence, .vocabulary_multiple = 1};
}

std::int64_t parameters(const Model& model) {
  const MakeRequest request = on_one_rank(model);
  const ParameterCount count = stage_count(request, shape_of(request), 0);
  return count.dense + count.expert;
}

std::vector<std::int64_t> layers_of_stages(const MakeRequest& request) {
  if (!request.stage_layers.empty()) return request.stage_layers;
  const auto parts = index(std::int64_t{request.parallelism.pp} * request.chunks);
  const auto count = static_cast<std::int64_t>(parts);
  std::vector<std::int64_t> layers(parts, request.model.layers / count);
  // The last part gets its one before the first: there the pipeline fills and empties.
  for (std::int64_t i = 0; i < request.model.layers % count; ++i) ++layers[index((i + 1) % count)];
  return layers;
}

std::int64_t layer_count_of(const MakeRequest& request, int chunk, int stage) {
  const int part = chunk * request.parallelism.pp + stage;
  return layers_of_stages(request)[index(part)];
}

std::int64_t first_layer(const MakeRequest& request, int chunk, int stage) {
  const std::vector<std::int64_t> layers = layers_of_stages(request);
  std::int64_t before = 0;
  for (int part = 0; part < chunk * request.parallelism.pp + stage; ++part)
    before += layers[index(part)];
  return before;
}

ParameterCount stage_count(const MakeRequest& request, const RankShape& shape, int stage) {
  const Model& model = request.model;
  ParameterCount count;
  for (int chunk = 0; chunk < request.chunks; ++chunk) {
    const std::int64_t first = first_layer(request, chunk, stage);
    const std::int64_t end = first + layer_count_of(request, chunk, stage);
    for (std::int64_t layer = first; layer < end; ++layer)
      count += layer_count(model, shape, model.is_mixture_layer(layer));
    if (holds_embedding(chunk, stage)) count += embedding_count(model, shape);
    if (holds_head(request, chunk, stage))
      count += head_count(model, shape, request.parallelism.pp > 1);
  }
  return count;
}

Pipeline pipeline_of(const MakeRequest& request) {
  return {.schedule = request.schedule,
          .stages = request.parallelism.pp,
          .chunks = request.chunks,
          .micro_batches = request.global_batch / (request.micro_batch * request.parallelism.dp)};
}

}  // namespace hemiola::workload
