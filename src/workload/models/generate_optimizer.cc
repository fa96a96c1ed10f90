#include "workload/models/generate_optimizer.h"

#include <algorithm>

namespace hemiola::workload {
namespace {

// Adam with decoupled weight decay, for each parameter: two moving averages (3 + 4), their
// corrections (2), root, sum and quotient (3), decay and step (4).
constexpr std::int64_t kAdamFlop = 16;
constexpr std::int64_t kNormBytes = 4;  ///< float32

}  // namespace

OptimizerSteps::OptimizerSteps(WorkloadBuilder& builder, const MakeRequest& request,
                               const RankShape& shape, const Streams& streams,
                               const Families& families, int stage)
    : builder_(builder),
      request_(request),
      shape_(shape),
      streams_(streams),
      families_(families),
      stage_(stage),
      count_(stage_count(request, shape, stage)) {
  const int zero = request.parallelism.zero;
  const std::int64_t whole = count_.dense + count_.expert;
  const std::int64_t share = share_of(count_, shape);
  kept_ = zero >= 2 ? share : whole;
  stepped_ = zero >= 1 ? share : whole;
}

void OptimizerSteps::kernel(TraceWriter& writer, std::string_view name, std::int64_t read,
                            std::int64_t written, std::int64_t flop) const {
  writer.kernel(builder_.name(name),
                builder_.compute(
                    {.type = DataType::float32, .flop = flop, .read = read, .written = written}));
}

void OptimizerSteps::exposed(TraceWriter& writer, std::string_view name, std::uint16_t stream,
                             const CollectiveCall& call) const {
  writer.wait_for(
      writer.begin(NodeKind::collective, stream, builder_.name(name), builder_.collective(call)));
}

void OptimizerSteps::begin(TraceWriter& writer) const {
  kernel(writer, "zero gradients", 0, kept_ * shape_.gradient, 0);
}

void OptimizerSteps::end(TraceWriter& writer, const GradientBuckets& buckets) const {
  sum_shared_gradients(writer);
  clip(writer);
  step(writer);
  give_out(writer, buckets);
}

/// As finalize_model_grads of Megatron-LM.
void OptimizerSteps::sum_shared_gradients(TraceWriter& writer) const {
  const std::int64_t divisor = request_.parallelism.zero >= 2 ? shape_.data_ranks : 1;
  if (shape_.sequence_parallel)
    exposed(writer, "tp shared gradients all-reduce", streams_.tp,
            {.kind = Collective::all_reduce,
             .family = families_.tp,
             .bytes = padded(count_.replicated, divisor) / divisor * shape_.gradient,
             .type = shape_.summed});
  const int last = request_.parallelism.pp - 1;
  if (families_.embedding >= 0 && (stage_ == 0 || stage_ == last))
    exposed(
        writer, "embedding gradients all-reduce", streams_.dp,
        {.kind = Collective::all_reduce,
         .family = families_.embedding,
         .bytes = padded(shape_.vocabulary * shape_.hidden, divisor) / divisor * shape_.gradient,
         .type = shape_.summed});
}

void OptimizerSteps::clip(TraceWriter& writer) const {
  const std::int64_t bytes = stepped_ * shape_.gradient;
  // Losses of float16 are scaled: gradients are scaled back and looked through for infinities.
  if (shape_.stored == DataType::float16)
    kernel(writer, "unscale gradients", bytes, bytes, stepped_);
  if (!request_.clip_gradients) return;
  kernel(writer, "gradient norm", bytes, kNormBytes, 2 * stepped_);
  if (families_.model >= 0)
    exposed(writer, "gradient norm all-reduce", streams_.dp,
            {.kind = Collective::all_reduce,
             .family = families_.model,
             .bytes = kNormBytes,
             .type = DataType::float32});
  kernel(writer, "clip gradients", bytes, bytes, stepped_);
}

void OptimizerSteps::step(TraceWriter& writer) const {
  // A float32 model has no copy of the parameters beside the parameters.
  const std::int64_t states = request_.optimizer_bytes;
  const bool has_copy = shape_.stored != DataType::float32;
  const std::int64_t read = states + shape_.gradient + (has_copy ? 0 : shape_.element);
  kernel(writer, "optimizer", stepped_ * read, stepped_ * (states + shape_.element),
         kAdamFlop * stepped_);
}

void OptimizerSteps::give_out(TraceWriter& writer, const GradientBuckets& buckets) const {
  const int zero = request_.parallelism.zero;
  if (zero == 0 || zero == 3 || request_.overlap_parameters) return;
  // Buckets are filled from the last layer on; the first is needed first.
  for (const bool experts : {false, true}) {
    const std::int32_t family = experts ? families_.expert_dp : families_.dp;
    const std::int64_t whole = experts ? count_.expert : count_.dense;
    if (family < 0 || whole == 0) continue;
    const std::int64_t ranks = experts ? shape_.expert_data_ranks : shape_.data_ranks;
    // ZeRO 2 has sent the same buckets for every micro batch.
    std::vector<std::int64_t> sizes;
    std::int64_t left = whole;
    for (const std::int64_t size : buckets.sizes(experts)) {
      if (left <= 0) break;
      sizes.push_back(padded(std::min(size, left), ranks));
      left -= size;
    }
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
      writer.begin(NodeKind::collective, streams_.dp, builder_.name("parameters all-gather"),
                   builder_.collective({.kind = Collective::all_gather,
                                        .family = family,
                                        .bytes = *size * shape_.element,
                                        .type = shape_.stored}));
  }
}

}  // namespace hemiola::workload
