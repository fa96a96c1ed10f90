#include "workload/models/generate_trace.h"

#include <algorithm>
#include <utility>

namespace hemiola::workload {

std::uint32_t TraceWriter::add(NodeKind kind, std::uint16_t stream, std::uint32_t name,
                               std::int32_t work, std::span<const std::uint32_t> after) {
  return trace_.add({.id = trace_.nodes.size(),
                     .name = name,
                     .kind = kind,
                     .stream = stream,
                     .work = work,
                     .host = host_},
                    after);
}

void TraceWriter::kernel(std::uint32_t name, std::int32_t work) {
  last_kernel_ = add(NodeKind::compute, streams_.compute, name, work, pending_);
  pending_.clear();
}

std::uint32_t TraceWriter::begin(NodeKind kind, std::uint16_t stream, std::uint32_t name,
                                 std::int32_t work, After after) {
  waits_.clear();
  if (after != After::nothing && last_kernel_ >= 0)
    waits_.push_back(static_cast<std::uint32_t>(last_kernel_));
  if (after == After::all) waits_.insert(waits_.end(), pending_.begin(), pending_.end());
  return add(kind, stream, name, work, waits_);
}

void TraceWriter::run(const Steps& steps, StepPart part, GradientBuckets* buckets) {
  for (const Step& step : steps) {
    if (step.role == StepRole::join) {
      pending_.insert(pending_.end(), begun_.begin(), begun_.end());
      begun_.clear();
      continue;
    }
    if (part != StepPart::all && step.of_weight != (part == StepPart::weights)) continue;
    switch (step.role) {
      case StepRole::kernel:
        kernel(step.name, step.work);
        break;
      case StepRole::exposed: {
        const std::uint32_t node = begin(step.kind, step.stream, step.name, step.work);
        pending_.assign(1, node);
        break;
      }
      case StepRole::begin:
        begun_.push_back(begin(step.kind, step.stream, step.name, step.work));
        break;
      case StepRole::join:
        break;
    }
    if (buckets != nullptr) buckets->ready(*this, step);
  }
}

GradientBuckets::GradientBuckets(WorkloadBuilder& builder, const RankShape& shape,
                                 const Streams& streams, const BucketRule& dense,
                                 const BucketRule& experts)
    : builder_(builder), shape_(shape), streams_(streams) {
  all_[0].rule = dense;
  all_[1].rule = experts;
}

void GradientBuckets::ready(TraceWriter& writer, const Step& step) {
  const std::int64_t elements[2] = {step.ready, step.ready_experts};
  for (int i = 0; i < 2; ++i) {
    Kind& kind = all_[i];
    kind.filled += elements[i];
    if (elements[i] == 0 || least_ == 0 || kind.filled < least_) continue;
    close(kind);
    if (!deferred_) send(writer, kind);
  }
}

void GradientBuckets::close(Kind& kind) {
  if (kind.filled > 0) kind.full.push_back(kind.filled);
  kind.filled = 0;
}

void GradientBuckets::send(TraceWriter& writer, Kind& kind) {
  for (const std::int64_t elements : kind.full) {
    const BucketRule& rule = kind.rule;
    // Scattered gradients are padded, so that every rank gets the same number.
    const std::int64_t sent =
        rule.kind == Collective::all_reduce ? elements : padded(elements, rule.ranks);
    kind.sizes.push_back(padded(elements, rule.ranks));
    const auto sum_replicas = [&] {
      if (rule.replicas < 0) return;
      const std::int32_t call =
          builder_.collective({.kind = Collective::all_reduce,
                               .family = rule.replicas,
                               .bytes = padded(elements, rule.ranks) / rule.ranks * shape_.gradient,
                               .type = shape_.summed});
      last_ = writer.begin(NodeKind::collective, streams_.dp, rule.name_of_replicas, call);
    };
    if (rule.family < 0) {
      sum_replicas();
      continue;
    }
    const std::int32_t call = builder_.collective({.kind = rule.kind,
                                                   .family = rule.family,
                                                   .bytes = sent * shape_.gradient,
                                                   .type = shape_.summed});
    last_ = writer.begin(NodeKind::collective, streams_.dp, rule.name, call);
    sum_replicas();
  }
  kind.full.clear();
}

void GradientBuckets::flush(TraceWriter& writer) {
  for (Kind& kind : all_) {
    close(kind);
    send(writer, kind);
  }
}

void GradientBuckets::wait(TraceWriter& writer) {
  // The stream is in order: the last one is enough.
  if (last_ >= 0) writer.wait_for(static_cast<std::uint32_t>(last_));
  last_ = -1;
}

void ParameterGathers::use(TraceWriter& writer) {
  const std::size_t until = std::min(uses_.size(), next_ + index(ahead_) + 1);
  while (nodes_.size() < until) {
    const Unit& unit = *uses_[nodes_.size()];
    std::vector<std::uint32_t> nodes;
    for (const std::int32_t work : unit.works)
      nodes.push_back(
          writer.begin(NodeKind::collective, streams_.dp_gather, unit.name, work, After::kernels));
    nodes_.push_back(std::move(nodes));
  }
  for (const std::uint32_t node : nodes_[next_]) writer.wait_for(node);
  ++next_;
}

}  // namespace hemiola::workload
