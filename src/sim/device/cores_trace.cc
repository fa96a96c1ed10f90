// Cores: what a trace writer is told of streams, operations, and who released whom.

#include <string>

#include "sim/device/cores.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
RequestSpans& Cores::spans_of(const Request& request) {
  const std::size_t at = index(request.detail);
  if (at >= request_spans_.size()) request_spans_.resize(at + 1);
  return request_spans_[at];
}

SpanId Cores::span_of(Wave& wave) {
  if (!tracing()) return 0;
  SpanId& span = step_of(wave)->flow.span;
  if (span == 0) span = ++spans_;
  return span;
}

// What came last counts, of all that its wavefronts had to wait for.
void Cores::released(Wave& wave, SpanId by, std::int64_t at) {
  if (!tracing() || by == 0) return;
  FlowEnds& flow = step_of(wave)->flow;
  if (flow.released_by != 0 && at < flow.released_at.fs) return;
  flow.released_by = by;
  flow.released_at = {at};
}

// What takes no time is shown only where others hang on it.
void Cores::show_step(const Workgroup& group, const Step& step, std::int64_t now) const {
  if (step.begin < 0 || (now == step.begin && step.flow.span == 0)) return;
  const program::Op& op = program_.bodies()[index(group.body)].ops[index(step.primitive.op)];
  const std::string_view kind = program::name_of(step.primitive.kind);
  std::string name(program::name_of(op.kind));
  if (kind != name) name += ": " + std::string(kind);
  options_.trace->operation(group.rank, group.index, name, {step.begin}, {now}, step.flow);
}

void Cores::show_stream(int rank, std::int32_t stream, std::string_view name, std::int64_t begin,
                        std::int64_t end) const {
  if (tracing() && end > begin) options_.trace->stream(rank, stream, name, {begin}, {end});
}

}  // namespace hemiola::sim
