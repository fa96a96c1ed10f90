// One schedule simulated: its plan made, lowered, bound and timed. Private to the layer.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "explore/explorer.h"

namespace hemiola::explore {

/// Calls `task` for 0 .. count-1 in so many threads. The first failure (by index) is thrown again,
/// once all have ended.
void for_each(int threads, std::size_t count, const std::function<void(std::size_t)>& task);

class Trial {
 public:
  /// `stop` of the monitor ends it.
  Trial(study::Laboratory& laboratory, const Request& request, const Operator& op,
        machine::SharedMachine machine, const Monitor* monitor)
      : laboratory_(laboratory),
        request_(request),
        op_(op),
        machine_(std::move(machine)),
        monitor_(monitor) {}

  /// Its fluid time, attribution, buffers and traffic, or why it is refused. Thread-safe for
  /// different candidates, as all others are.
  void simulate(Candidate& candidate);
  /// By the engine sampled.
  void confirm(Candidate& candidate);

  plan::Plan plan_of(const Schedule& schedule);
  /// A plan of this schedule's, changed, by fluid; kernels are told to `trace`.
  sim::Result run(const Schedule& schedule, plan::Plan plan, sim::TraceSink* trace);

 private:
  study::Experiment experiment_of(const Schedule& schedule) const;
  sim::Result run(const study::Experiment& experiment);

  study::Laboratory& laboratory_;
  const Request& request_;
  const Operator& op_;
  machine::SharedMachine machine_;
  const Monitor* monitor_;
};

}  // namespace hemiola::explore
