// What frames an iteration of training: gradients set to zero, gradients that other ranks hold
// too, clipping, the optimizer's step, parameters given out.
#pragma once

#include "workload/models/generate_trace.h"

namespace hemiola::workload {

class OptimizerSteps {
 public:
  OptimizerSteps(WorkloadBuilder& builder, const MakeRequest& request, const RankShape& shape,
                 const Streams& streams, const Families& families, int stage);

  void begin(TraceWriter& writer) const;
  /// After all gradients of data-parallel ranks are summed.
  void end(TraceWriter& writer, const GradientBuckets& buckets) const;

 private:
  void kernel(TraceWriter& writer, std::string_view name, std::int64_t read, std::int64_t written,
              std::int64_t flop) const;
  void exposed(TraceWriter& writer, std::string_view name, std::uint16_t stream,
               const CollectiveCall& call) const;
  void sum_shared_gradients(TraceWriter& writer) const;
  void clip(TraceWriter& writer) const;
  void step(TraceWriter& writer) const;
  void give_out(TraceWriter& writer, const GradientBuckets& buckets) const;

  WorkloadBuilder& builder_;
  const MakeRequest& request_;
  const RankShape& shape_;
  const Streams& streams_;
  const Families& families_;
  int stage_;
  ParameterCount count_;
  std::int64_t kept_ = 0;     ///< gradients that the rank holds between passes
  std::int64_t stepped_ = 0;  ///< parameters whose optimizer state the rank holds
};

}  // namespace hemiola::workload
