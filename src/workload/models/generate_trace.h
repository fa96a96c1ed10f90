// Nodes of one stage's trace: steps, what they wait for, gradients that leave when they are ready,
// parameters that arrive before they are needed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workload/models/generate_steps.h"

namespace hemiola::workload {

/// Which steps of a backward pass.
enum class StepPart : std::uint8_t { all, inputs, weights };

/// What communication waits for.
enum class After : std::uint8_t {
  all,      ///< kernels so far, and what the next one would wait for
  kernels,  ///< kernels so far
  nothing   ///< its stream only
};

class GradientBuckets;

/// Kernels are ordered by their stream, so dependencies lead between streams only.
class TraceWriter {
 public:
  TraceWriter(Trace& trace, const Streams& streams, Time host)
      : trace_(trace), streams_(streams), host_(host) {}

  void run(const Steps& steps, StepPart part, GradientBuckets* buckets);
  void kernel(std::uint32_t name, std::int32_t work);
  /// Communication that runs beside what follows.
  std::uint32_t begin(NodeKind kind, std::uint16_t stream, std::uint32_t name, std::int32_t work,
                      After after = After::all);
  /// The next kernel, and all that waits for kernels so far, waits for this node.
  void wait_for(std::uint32_t node) { pending_.push_back(node); }

 private:
  std::uint32_t add(NodeKind kind, std::uint16_t stream, std::uint32_t name, std::int32_t work,
                    std::span<const std::uint32_t> after);

  Trace& trace_;
  const Streams& streams_;
  Time host_;
  std::int64_t last_kernel_ = -1;
  std::vector<std::uint32_t> pending_;
  std::vector<std::uint32_t> begun_;
  std::vector<std::uint32_t> waits_;  ///< of the node that begins; kept for its memory
};

/// How gradients of a rank's parameters, dense ones or experts, are communicated.
struct BucketRule {
  Collective kind = Collective::all_reduce;  ///< or reduce_scatter
  std::int32_t family = -1;                  ///< -1: one rank has them all
  std::int64_t ranks = 1;
  std::uint32_t name = 0;  ///< of the workload's
  /// Of what reduce_scatter leaves: the sum over replicas that are divided alike. -1: there are
  /// none.
  std::int32_t replicas = -1;
  std::uint32_t name_of_replicas = 0;
};

/// Gathers gradients in the order in which they become final into buckets, which leave when they
/// are full.
class GradientBuckets {
 public:
  GradientBuckets(WorkloadBuilder& builder, const RankShape& shape, const Streams& streams,
                  const BucketRule& dense, const BucketRule& experts);

  /// `least`: elements; 0: all in one. `deferred`: no bucket leaves before flush().
  void configure(std::int64_t least, bool deferred) {
    least_ = least;
    deferred_ = deferred;
  }
  void ready(TraceWriter& writer, const Step& step);
  /// The buckets that are not full, too.
  void flush(TraceWriter& writer);
  /// Everything after waits for what has left.
  void wait(TraceWriter& writer);

  /// Buckets that have left, in elements with padding, of dense parameters and of experts.
  const std::vector<std::int64_t>& sizes(bool experts) const { return all_[experts ? 1 : 0].sizes; }

 private:
  struct Kind {
    BucketRule rule;
    std::int64_t filled = 0;
    std::vector<std::int64_t> full;  ///< not sent yet
    std::vector<std::int64_t> sizes;
  };
  void close(Kind& kind);
  void send(TraceWriter& writer, Kind& kind);

  WorkloadBuilder& builder_;
  const RankShape& shape_;
  const Streams& streams_;
  Kind all_[2];
  std::int64_t least_ = 0;
  bool deferred_ = false;
  std::int64_t last_ = -1;  ///< node
};

/// Parameters that are divided among ranks, in the order in which passes use them: a use is a node
/// for each of `works`, which is launched so many uses ahead.
class ParameterGathers {
 public:
  struct Unit {
    std::uint32_t name = 0;
    std::vector<std::int32_t> works;
  };
  ParameterGathers(const Streams& streams, int ahead) : streams_(streams), ahead_(ahead) {}

  void plan(const Unit& unit) { uses_.push_back(&unit); }
  bool is_empty() const { return uses_.empty(); }
  /// Before the next planned use.
  void use(TraceWriter& writer);

 private:
  const Streams& streams_;
  int ahead_;
  std::vector<const Unit*> uses_;
  std::vector<std::vector<std::uint32_t>> nodes_;  ///< of the uses that were launched
  std::size_t next_ = 0;
};

}  // namespace hemiola::workload
