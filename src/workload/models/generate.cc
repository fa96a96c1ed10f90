#include "workload/models/generate.h"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <utility>

#include "workload/models/generate_groups.h"
#include "workload/models/generate_optimizer.h"
#include "workload/models/generate_trace.h"
#include "workload/models/memory.h"

namespace hemiola::workload {
namespace {

constexpr std::int64_t kBucketParameters = 40'000'000;        ///< of Megatron-LM
constexpr std::int64_t kBucketParametersOfARank = 1'000'000;  ///< for each data-parallel rank

/// What is the same for all stages.
struct StageCommon {
  const MakeRequest& request;
  const RankShape& shape;
  const Streams& streams;
  const Families& families;
  PassSteps dense, mixture, embedding, head;
  ParameterGathers::Unit dense_unit, mixture_unit, embedding_unit, head_unit;
  // Of messages between stages.
  std::int64_t boundary_bytes = 0;
  std::uint32_t send_name = 0, receive_name = 0;
};

/// A part of a pass whose parameters are gathered together.
struct GatheredPart {
  const PassSteps* steps = nullptr;
  const ParameterGathers::Unit* unit = nullptr;
};

class StageWriter {
 public:
  StageWriter(WorkloadBuilder& builder, const StageCommon& common, int stage)
      : builder_(builder),
        common_(common),
        request_(common.request),
        stage_(stage),
        writer_(trace_, common.streams, request_.host_time),
        buckets_(builder, common.shape, common.streams, rule(false), rule(true)),
        gathers_(common.streams, request_.prefetch) {
    for (int chunk = 0; chunk < request_.chunks; ++chunk) parts_.push_back(parts_of(chunk));
  }

  Trace write() {
    const bool trains = request_.phase == Phase::train;
    const Pipeline pipeline = pipeline_of(request_);
    const std::vector<Pass> passes =
        trains ? passes_of(pipeline, stage_) : forward_passes_of(pipeline);
    plan_gathers(passes);
    reserve(passes);
    const OptimizerSteps optimizer(builder_, request_, common_.shape, common_.streams,
                                   common_.families, stage_);
    if (trains) optimizer.begin(writer_);
    for (const Pass& pass : passes) write_pass(pass, pipeline.micro_batches);
    if (trains) {
      if (is_reduced_once()) buckets_.flush(writer_);
      buckets_.wait(writer_);
      optimizer.end(writer_, buckets_);
    }
    return std::move(trace_);
  }

 private:
  // Gradients of a micro batch are summed on the rank until the last one, or leave at once.
  bool is_reduced_once() const { return request_.parallelism.zero < 2; }
  bool is_fully_sharded() const { return request_.parallelism.zero == 3; }

  BucketRule rule(bool experts) const {
    const bool scatters = request_.parallelism.zero > 0;
    return {.kind = scatters ? Collective::reduce_scatter : Collective::all_reduce,
            .family = experts ? common_.families.expert_dp : common_.families.dp,
            .ranks = experts ? common_.shape.expert_data_ranks : common_.shape.data_ranks,
            .name = builder_.name(fmt::format("{}gradients {}", experts ? "experts' " : "",
                                              scatters ? "reduce-scatter" : "all-reduce")),
            .replicas = common_.families.replicas,
            .name_of_replicas = builder_.name("replicas' gradients all-reduce")};
  }

  std::vector<GatheredPart> parts_of(int chunk) const {
    const std::int64_t first = first_layer(request_, chunk, stage_);
    const std::int64_t count = layer_count_of(request_, chunk, stage_);
    std::vector<GatheredPart> parts;
    if (holds_embedding(chunk, stage_))
      parts.push_back({&common_.embedding, &common_.embedding_unit});
    for (std::int64_t layer = first; layer < first + count; ++layer)
      if (request_.model.is_mixture_layer(layer))
        parts.push_back({&common_.mixture, &common_.mixture_unit});
      else
        parts.push_back({&common_.dense, &common_.dense_unit});
    if (holds_head(request_, chunk, stage_)) parts.push_back({&common_.head, &common_.head_unit});
    return parts;
  }

  const std::vector<GatheredPart>& parts(const Pass& pass) const {
    return parts_[index(pass.chunk)];
  }

  bool gathers(const Pass& pass) const {
    if (is_fully_sharded()) return pass.kind != PassKind::weight_gradient;
    return request_.overlap_parameters && request_.parallelism.zero > 0 &&
           pass.kind == PassKind::forward && pass.micro_batch == 0;
  }

  void plan_gathers(const std::vector<Pass>& passes) {
    for (const Pass& pass : passes) {
      if (!gathers(pass)) continue;
      const std::vector<GatheredPart>& of_pass = parts(pass);
      if (pass.kind == PassKind::forward)
        for (const GatheredPart& part : of_pass) gathers_.plan(*part.unit);
      else
        for (auto part = of_pass.rbegin(); part != of_pass.rend(); ++part)
          gathers_.plan(*part->unit);
    }
  }

  /// All memory at once: a copy of a long trace costs more than writing it.
  void reserve(const std::vector<Pass>& passes) {
    std::size_t nodes = 64;
    for (const Pass& pass : passes) {
      for (const GatheredPart& part : parts(pass))
        nodes += 2 + (pass.kind == PassKind::forward ? part.steps->forward.size()
                                                     : part.steps->backward.size());
    }
    trace_.nodes.reserve(nodes);
    trace_.dependencies.reserve(nodes / 2);
  }

  void write_pass(const Pass& pass, std::int64_t micro_batches) {
    const bool gathered = gathers(pass);
    if (pass.kind == PassKind::forward) {
      receive(pass);
      for (const GatheredPart& part : parts(pass)) {
        if (gathered) gathers_.use(writer_);
        writer_.run(part.steps->forward, StepPart::all, nullptr);
      }
      send(pass);
      return;
    }
    if (pass.kind != PassKind::weight_gradient) receive(pass);
    const bool last = pass.micro_batch + 1 == micro_batches;
    GradientBuckets* buckets = last || !is_reduced_once() ? &buckets_ : nullptr;
    configure_buckets(pass.chunk);
    const std::vector<GatheredPart>& of_pass = parts(pass);
    for (auto part = of_pass.rbegin(); part != of_pass.rend(); ++part) {
      if (gathered) gathers_.use(writer_);
      writer_.run(part->steps->backward, step_part(pass.kind), buckets);
      if (is_fully_sharded() && pass.kind != PassKind::input_gradient && request_.overlap_gradients)
        buckets_.flush(writer_);
    }
    if (pass.kind != PassKind::weight_gradient) send(pass);
    if (buckets != nullptr && pass.kind != PassKind::input_gradient) end_of_gradients();
  }

  static StepPart step_part(PassKind kind) {
    if (kind == PassKind::input_gradient) return StepPart::inputs;
    return kind == PassKind::weight_gradient ? StepPart::weights : StepPart::all;
  }

  /// After a backward pass whose gradients are communicated.
  void end_of_gradients() {
    if (is_reduced_once()) {
      if (request_.overlap_gradients) buckets_.flush(writer_);
      return;
    }
    buckets_.flush(writer_);
    if (!request_.overlap_gradients) buckets_.wait(writer_);
  }

  /// Megatron-LM makes buckets on the first stage only: communication of the others is hidden by
  /// the stages' order.
  void configure_buckets(int chunk) {
    const bool overlaps = request_.overlap_gradients;
    std::int64_t least =
        padded(request_.gradient_bucket, common_.shape.gradient) / common_.shape.gradient;
    if (least == 0 && overlaps && stage_ == 0 && chunk == 0)
      least = std::max(kBucketParameters, kBucketParametersOfARank * common_.shape.data_ranks);
    if (is_fully_sharded()) least = std::numeric_limits<std::int64_t>::max();
    buckets_.configure(least, !overlaps);
  }

  /// The message between this stage and the one whose chunk is `direction` steps further on.
  std::int32_t message(int direction, bool gradient) const {
    const int stages = request_.parallelism.pp;
    const int other = stage_ + direction;
    const bool wraps = other < 0 || other >= stages;
    const int lower = direction > 0 ? stage_ : other;
    const std::int32_t family = wraps            ? common_.families.wrap_pairs
                                : lower % 2 == 0 ? common_.families.even_pairs
                                                 : common_.families.odd_pairs;
    // Pairs are in the order of the layers, activations go along with it.
    return builder_.message(
        {.family = family, .from_first = !gradient, .bytes = common_.boundary_bytes});
  }

  bool begins_model(int chunk) const { return holds_embedding(chunk, stage_); }
  bool ends_model(int chunk) const { return holds_head(request_, chunk, stage_); }

  void receive(const Pass& pass) {
    const bool forward = pass.kind == PassKind::forward;
    if (forward ? begins_model(pass.chunk) : ends_model(pass.chunk)) return;
    writer_.wait_for(writer_.begin(NodeKind::receive, common_.streams.pp_receive,
                                   common_.receive_name, message(forward ? -1 : 1, !forward),
                                   After::nothing));
  }
  void send(const Pass& pass) {
    const bool forward = pass.kind == PassKind::forward;
    if (forward ? ends_model(pass.chunk) : begins_model(pass.chunk)) return;
    writer_.begin(NodeKind::send, common_.streams.pp_send, common_.send_name,
                  message(forward ? 1 : -1, !forward));
  }

  WorkloadBuilder& builder_;
  const StageCommon& common_;
  const MakeRequest& request_;
  int stage_;
  Trace trace_;
  TraceWriter writer_;
  GradientBuckets buckets_;
  ParameterGathers gathers_;
  std::vector<std::vector<GatheredPart>> parts_;  ///< by chunk
};

ParameterGathers::Unit unit_of(WorkloadBuilder& builder, const StageCommon& common,
                               const ParameterCount& count) {
  ParameterGathers::Unit unit{.name = builder.name("parameters all-gather")};
  const auto add = [&](std::int64_t elements, std::int32_t family, int ranks) {
    if (family < 0 || elements == 0) return;
    unit.works.push_back(
        builder.collective({.kind = Collective::all_gather,
                            .family = family,
                            .bytes = padded(elements, ranks) * common.shape.element,
                            .type = common.shape.stored}));
  };
  add(count.dense, common.families.dp, common.shape.data_ranks);
  add(count.expert, common.families.expert_dp, common.shape.expert_data_ranks);
  return unit;
}

void fill_common(WorkloadBuilder& builder, StageCommon& common) {
  const Model& model = common.request.model;
  const Parallelism& by = common.request.parallelism;
  StepWriter steps(builder, common.request, common.shape, common.streams, common.families);
  const bool has_dense = !model.is_mixture() || model.experts.first_dense_layers > 0;
  const bool has_mixture = model.is_mixture() && model.experts.first_dense_layers < model.layers;
  const bool own_table = by.pp > 1;
  if (has_dense) common.dense = layer_steps(steps, false);
  if (has_mixture) common.mixture = layer_steps(steps, true);
  common.embedding = embedding_steps(steps);
  common.head = head_steps(steps, own_table);
  common.boundary_bytes = common.shape.local_elements() * common.shape.element;
  common.send_name = builder.name("send");
  common.receive_name = builder.name("receive");
  if (by.zero == 0) return;
  const RankShape& shape = common.shape;
  common.dense_unit = unit_of(builder, common, layer_count(model, shape, false));
  common.mixture_unit = unit_of(builder, common, layer_count(model, shape, true));
  common.embedding_unit = unit_of(builder, common, embedding_count(model, shape));
  common.head_unit = unit_of(builder, common, head_count(model, shape, true));
}

std::string name_of_job(const MakeRequest& request) {
  const Parallelism& by = request.parallelism;
  std::string name = fmt::format("{} {} tp{} pp{} dp{}", request.model.name, name_of(request.phase),
                                 by.tp, by.pp, by.dp);
  if (by.cp > 1) name += fmt::format(" cp{} {}", by.cp, name_of(request.context_parallel));
  if (by.ep > 1) name += fmt::format(" ep{}", by.ep);
  if (by.zero > 0) name += fmt::format(" zero{}", by.zero);
  if (by.shard > 0) name += fmt::format(" shard{}", by.shard);
  if (by.sequence_parallel) name += " sp";
  return name;
}

ModelFacts facts_of(const MakeRequest& request) {
  const std::int64_t tokens_of_sequence = request.phase == Phase::decode ? 1 : request.sequence;
  return {.model = request.model.name,
          .phase = std::string(name_of(request.phase)),
          .tokens = request.global_batch * tokens_of_sequence,
          .flop = model_flop(request),
          .type = request.type,
          .memory = memory_of(request)};
}

}  // namespace

Workload make_workload(const MakeRequest& given) {
  const MakeRequest request = resolve(given);
  const RankShape shape = shape_of(request);
  WorkloadBuilder builder(name_of_job(request), static_cast<int>(request.parallelism.ranks()));
  const Streams streams = add_streams(builder, request);
  const Families families = add_families(builder, request);
  StageCommon common{.request = request, .shape = shape, .streams = streams, .families = families};
  fill_common(builder, common);
  for (int stage = 0; stage < request.parallelism.pp; ++stage) {
    RankClass one;
    one.name = fmt::format("stage {}", stage);
    one.trace = std::make_shared<const Trace>(StageWriter(builder, common, stage).write());
    one.ranks = ranks_of_stage(request.parallelism, stage);
    builder.workload().classes.push_back(std::move(one));
  }
  builder.workload().facts = facts_of(request);
  builder.workload().notices = request.model.notices;
  return builder.take();
}

}  // namespace hemiola::workload
