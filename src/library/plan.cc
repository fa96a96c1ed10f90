#include "hemiola/plan.h"

#include <utility>

#include "core/monitor.h"
#include "core/text.h"
#include "library/implementations.h"
#include "library/named.h"
#include "plan/plan_json.h"
#include "plan/shape.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "study/laboratory/experiment.h"

namespace hemiola {
namespace {

std::shared_ptr<const Plan::Implementation> wrapped(plan::Plan inner) {
  return std::make_shared<const Plan::Implementation>(
      Plan::Implementation{std::make_shared<const plan::Plan>(std::move(inner))});
}

}  // namespace

Plan Plan::make(const std::string& name, int ranks, const Settings& parameters,
                const std::optional<Machine>& machine, const std::atomic<bool>* stop) {
  study::Laboratory laboratory;  // of those that choose by simulation
  return made(laboratory, name, ranks, parameters, machine, stop);
}

Plan made(study::Laboratory& laboratory, const std::string& name, int ranks,
          const Settings& parameters, const std::optional<Machine>& machine,
          const std::atomic<bool>* stop) {
  const machine::SharedMachine inner = machine ? machine->implementation().machine : nullptr;
  study::Experiment asked;
  asked.machine.given = inner;
  asked.subject = name;
  asked.parameters = parameters;
  const program::LoadOptions load = laboratory.load_options(asked, inner, stop);
  Monitor monitor;
  monitor.stop = stop;
  return Plan(wrapped(plan::make(name, ranks, load.parameters, inner.get(),
                                 program::judge_of_plans(load, {}), &monitor, laboratory.parts())));
}

std::vector<PlanTemplate> Plan::templates() {
  std::vector<PlanTemplate> all;
  for (const plan::TemplateInfo& info : plan::templates()) {
    PlanTemplate one{info.name, info.collective, info.description, {}, info.needs_machine};
    for (const plan::ParameterInfo& parameter : info.parameters)
      one.parameters.push_back(
          {parameter.name, parameter.default_value, parameter.choices, parameter.description});
    all.push_back(std::move(one));
  }
  return all;
}

Plan Plan::load(const std::string& file) {
  return from_json(read_file(file), file);
}

Plan Plan::from_json(const std::string& text, const std::string& file) {
  return Plan(wrapped(plan::read_plan(text, file)));
}

std::string Plan::to_json() const {
  return plan::write_plan(*self_->plan);
}

Plan Plan::shaped(const std::vector<std::int64_t>& shape, DataType type, int axis) const {
  return Plan(wrapped(plan::shaped(*self_->plan, shape, type, index(axis))));
}

const std::string& Plan::name() const {
  return self_->plan->name;
}
Collective Plan::collective() const {
  return self_->plan->collective;
}
int Plan::ranks() const {
  return self_->plan->ranks;
}
bool Plan::of_elements() const {
  return self_->plan->of_elements();
}
std::int64_t Plan::chunks_per_size() const {
  return self_->plan->chunks_per_size;
}

std::int64_t Plan::transfers() const {
  return plan::count_transfers(*self_->plan);
}

}  // namespace hemiola
