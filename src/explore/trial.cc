#include "explore/trial.h"

#include <utility>

namespace hemiola::explore {

void Trial::simulate(Candidate& candidate) {
  Measured measured = plans_.simulate(template_plan(candidate.schedule));
  candidate.fluid = measured.fluid;
  candidate.refused = std::move(measured.refused);
  candidate.attribution = measured.attribution;
  candidate.buffers = measured.buffers;
  candidate.extra_traffic = measured.extra_traffic;
  candidate.line_hops = measured.line_hops;
  candidate.computing = measured.computing;
  candidate.moving = measured.moving;
}

void Trial::confirm(Candidate& candidate) {
  const Confirmed confirmed = plans_.confirm(template_plan(candidate.schedule));
  candidate.confirmed = confirmed.time;
  candidate.confirmed_error = confirmed.error;
}

plan::Plan plan_of(study::Laboratory& laboratory, const Request& request,
                   const Schedule& schedule) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  Operator op = request.op;
  op.ranks = machine->ranks();
  return Trial(laboratory, request, op, machine, nullptr).plan_of(schedule);
}

}  // namespace hemiola::explore
