#include "explore/trials/trial.h"

namespace hemiola::explore {

Trial Trial::with_free_memory() const {
  machine::Machine machine = *machine_;
  for (machine::GpuModel& model : machine.models) {
    for (Rate* rate : {&model.l2_slice_rate, &model.gemm_l2_rate, &model.gemm_store_rate,
                       &model.msc_rate, &model.hbm_rate})
      *rate = Rate::ideal();
    model.hbm_turnaround = {0};
  }
  return {*this, machine::share(std::move(machine))};
}

void Trial::simulate(Candidate& candidate) {
  static_cast<Measured&>(candidate) = plans_.simulate(template_plan(candidate.schedule), false);
  if (candidate.refused.empty()) candidate.fluid = candidate.fluid + software_;
}

std::int64_t Trial::line_hops(const Candidate& candidate) {
  return plans_.simulate(template_plan(candidate.schedule)).line_hops;
}

void Trial::confirm(Candidate& candidate) {
  candidate.confirmed = plans_.confirm(template_plan(candidate.schedule)).time + software_;
}

plan::Plan plan_of(study::Laboratory& laboratory, const Request& request,
                   const Schedule& schedule) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  Operator op = request.op;
  op.ranks = machine->ranks();
  return Trial(laboratory, request, op, machine, nullptr).plan_of(schedule);
}

}  // namespace hemiola::explore
