// What texts of calls have in common: nodes in the order of the text, groups by their sizes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "workload/trace_reader.h"
#include "workload/workload.h"

namespace hemiola::workload::simai {

/// Longest time of a text, so that sums stay times: 1000 s. (Most bytes: kMostMemory.)
constexpr std::int64_t kMostNs = 1'000'000'000'000;
constexpr std::int64_t kMostRanks = 1 << 20;

/// A whole number from `least` to `most`, be it "5" or Python's "5.0". Failure at `where`.
std::int64_t read_number(std::string_view text, std::int64_t least, std::int64_t most,
                         const SourceLocation& where);

/// Failure for options of traces that such a text has no use for.
void refuse_trace_options(const TraceRequest& request);

/// Failure if no rank has anything to do.
void refuse_nothing(const Workload& workload);

/// `count` ranks from `first` on that do the same.
RankClass class_of(const std::string& name, std::shared_ptr<const Trace> trace, int first,
                   int count);

/// A node begins when the kernel before it, all that wait() has named, and its stream are over.
class CallTrace {
 public:
  CallTrace(WorkloadBuilder& builder, std::string file);

  /// A kernel that takes this time, or that of `work`; none if neither is said.
  void compute(std::string_view name, Time time, std::int32_t work = -1);
  /// A collective; the node that is over `then` after it. Nothing waits for it yet.
  std::uint32_t call(std::string_view name, const CollectiveCall& call, Time then = {});
  /// Of kind send or receive.
  std::uint32_t message(std::string_view name, NodeKind kind, const Message& message);
  /// What follows waits for the node.
  void wait(std::uint32_t node) { now_.push_back(node); }

  std::shared_ptr<const Trace> take() { return std::move(trace_); }

 private:
  std::uint32_t add(Node node, std::string_view name, std::vector<std::uint32_t> after);

  WorkloadBuilder& builder_;
  std::shared_ptr<Trace> trace_ = std::make_shared<Trace>();
  std::vector<std::uint32_t> now_;
};

}  // namespace hemiola::workload::simai
