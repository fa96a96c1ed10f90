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
        plans_(laboratory, request.options, op.type, machine, monitor),
        plans_of_free_memory_(laboratory, request.options, op.type, with_free_memory(*machine),
                              monitor) {}

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
  /// The same where L2 and memory give and take any number of bytes at once.
  sim::Result run_with_free_memory(const Schedule& schedule, plan::Plan plan) {
    return plans_of_free_memory_.run(template_plan(schedule), std::move(plan), nullptr);
  }

 private:
  static machine::SharedMachine with_free_memory(machine::Machine machine);
  TemplatePlan template_plan(const Schedule& schedule) const {
    return {template_of(op_, schedule), parameters_of(op_, schedule, *machine_)};
  }

  const Operator& op_;
  Time software_;
  machine::SharedMachine machine_;
  PlanTrial plans_, plans_of_free_memory_;
};

}  // namespace hemiola::explore
