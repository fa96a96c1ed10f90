#include "sim/device/tracing.h"

#include <string>

#include "sim/device/wavefronts.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
SpanId Tracing::span_of(Wave& wave) {
  if (!device_.tracing()) return 0;
  SpanId& span = wavefronts_.step_of(wave)->flow.span;
  if (span == 0) span = ++spans_;
  return span;
}

// What came last counts, of all that its wavefronts had to wait for.
void Tracing::released(Wave& wave, SpanId by, std::int64_t at) {
  if (!device_.tracing() || by == 0) return;
  FlowEnds& flow = wavefronts_.step_of(wave)->flow;
  if (flow.released_by != 0 && at < flow.released_at.fs) return;
  flow.released_by = by;
  flow.released_at = {at};
}

// What takes no time is shown only where others hang on it.
void Tracing::show_step(const Workgroup& group, const Step& step, std::int64_t now) const {
  if (step.begin < 0 || (now == step.begin && step.flow.span == 0)) return;
  const program::Op& op = device_.op_of(group, step.primitive);
  const std::string_view kind = program::name_of(step.primitive.kind);
  std::string name(program::name_of(op.kind));
  if (kind != name) name += ": " + std::string(kind);
  device_.options.trace->operation(group.rank, group.index, name, {step.begin}, {now}, step.flow);
}

void Tracing::show_stream(int rank, std::int32_t stream, std::string_view name, std::int64_t begin,
                          std::int64_t end) const {
  if (device_.tracing() && end > begin)
    device_.options.trace->stream(rank, stream, name, {begin}, {end});
}

void Tracing::show_request(const Request& request, Reason reason, std::int64_t arrival,
                           std::int64_t departure) const {
  if (!device_.options.trace->wants_requests({arrival})) return;
  device_.options.trace->request(request.source, name_of(reason), "request", {arrival},
                                 {departure});
}

}  // namespace hemiola::sim
