// A schedule's products without its communication, and its communication without its products: what
// each costs alone, on which losses stand.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "core/units.h"
#include "plan/plan.h"
#include "sim/result/trace.h"

namespace hemiola::explore {

/// Without transfers: streams stay, empty, and nothing waits for them. The computes as they were,
/// in their order. Postconditions go, as nobody keeps them.
plan::Plan only_computes(const plan::Plan& plan);
/// Without computes: transfers wait for other transfers only.
plan::Plan only_transfers(const plan::Plan& plan);

/// What a rank moves inside its own memory beside the communication itself: copies to and from
/// scratch, and results that are read again to be added to. Reads and writes, of rank 0.
Bytes extra_traffic(const plan::Plan& plan);
/// Memory of rank 0 that the caller did not ask for.
Bytes buffers(const plan::Plan& plan);

/// How long kernels of the rank that computes most (the first of them) ran, by whether they
/// compute.
class KernelTimes : public sim::TraceSink {
 public:
  explicit KernelTimes(const plan::Plan& plan);

  int rank() const { return rank_; }

  /// During which at least one launch of a compute ran.
  Time computing() const { return together(computes_); }
  /// During which the kernel that communicates ran, or a copy engine was at work.
  Time moving() const { return together(moves_); }

  void stream(int rank, int stream, std::string_view name, Time begin, Time end) override;
  void workgroup(int, int, int, Time, Time) override {}
  void operation(int, int, std::string_view, Time, Time, const sim::FlowEnds&) override {}
  void link(int, std::int64_t, int, Time, Time) override {}
  void engine(int rank, std::string_view, std::string_view, Time begin, Time end,
              const sim::FlowEnds&) override;
  void request(int, std::string_view, std::string_view, Time, Time) override {}
  bool wants_requests(Time) const override { return false; }

 private:
  using Spans = std::vector<std::pair<Time, Time>>;
  static Time together(Spans spans);

  int rank_ = 0;
  std::string plan_;
  std::set<std::string, std::less<>> names_;
  Spans computes_, moves_;
};

}  // namespace hemiola::explore
