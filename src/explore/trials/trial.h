// One schedule simulated: its plan made, lowered, bound and timed. Private to the layer.
#pragma once

#include <utility>

#include "explore/exploration.h"
#include "explore/trials/plan_trial.h"

namespace hemiola::explore {

class Trial {
 public:
  /// `stop` of the monitor ends it.
  Trial(study::Laboratory& laboratory, const Request& request, const Operator& op,
        machine::SharedMachine machine, const Monitor* monitor)
      : op_(op),
        software_(request.software),
        machine_(machine),
        plans_(laboratory, request.options, op.type, machine, monitor) {}

  /// The same schedules where L2 and memory give and take any number of bytes at once.
  Trial with_free_memory() const;

  /// Its fluid time (with Request::software), attribution, buffers and traffic (but no line_hops),
  /// or why it is refused. Thread-safe for different candidates, as all others are.
  void simulate(Candidate& candidate);
  /// Visits of requests to resources that the line engine would simulate.
  std::int64_t line_hops(const Candidate& candidate);
  /// By the engine sampled; the same.
  void confirm(Candidate& candidate);

  plan::Plan plan_of(const Schedule& schedule) { return plans_.plan_of(template_plan(schedule)); }
  /// A plan of this schedule's, changed, by fluid; kernels are told to `trace`.
  sim::Result run(const Schedule& schedule, plan::Plan plan, sim::TraceSink* trace) {
    return plans_.run(template_plan(schedule), std::move(plan), trace);
  }

 private:
  /// The schedules of `like`, simulated on another machine.
  Trial(const Trial& like, machine::SharedMachine machine)
      : op_(like.op_),
        software_(like.software_),
        machine_(like.machine_),
        plans_(like.plans_.on(std::move(machine))) {}
  TemplatePlan template_plan(const Schedule& schedule) const {
    return {template_of(op_, schedule), parameters_of(op_, schedule, *machine_)};
  }

  const Operator& op_;
  Time software_;
  machine::SharedMachine machine_;
  PlanTrial plans_;
};

}  // namespace hemiola::explore
