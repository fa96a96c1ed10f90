#include "explore/trial.h"

#include <algorithm>
#include <utility>

#include "explore/isolated.h"
#include "program/built_in.h"

namespace hemiola::explore {
namespace {

/// Parameters of the lowering, among all of a schedule.
study::Settings lowering_of(const study::Settings& parameters, bool computes) {
  study::Settings lowering;
  for (const auto& setting : parameters) {
    // Without a kernel of products there is none that communication could be part of.
    const bool is_place = !computes && setting.second == "co-located";
    if ((setting.first == "realization" && !is_place) || setting.first == "workgroups" ||
        setting.first == "prelaunch" || (computes && setting.first == "compute_workgroups"))
      lowering.push_back(setting);
  }
  return lowering;
}

}  // namespace

void for_each(int threads, std::size_t count, const std::function<void(std::size_t)>& task) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        task(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads && static_cast<std::size_t>(i) < count; ++i)
    others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure != nullptr) std::rethrow_exception(failure);
  }
}

study::Experiment Trial::experiment_of(const Schedule& schedule) const {
  study::Experiment experiment{.subject = template_of(op_, schedule),
                               .parameters = parameters_of(op_, schedule, *machine_),
                               .type = op_.type,
                               .check = false,
                               .options = request_.options};
  experiment.machine.given = machine_;
  experiment.options.engine = sim::Engine::fluid;
  experiment.options.threads = 1;
  return experiment;
}

sim::Result Trial::run(const study::Experiment& experiment) {
  Monitor monitor{.stop = monitor_ != nullptr ? monitor_->stop : nullptr};
  const study::Watch watch{.monitor = &monitor};
  const program::Bound bound = laboratory_.prepare(experiment, watch);
  return laboratory_.simulate(bound, experiment.options, watch);
}

void Trial::simulate(Candidate& candidate) {
  try {
    const plan::Plan plan = plan_of(candidate.schedule);
    candidate.buffers = buffers(plan);
    candidate.extra_traffic = extra_traffic(plan);
    KernelTimes times(plan);
    // By name, so that the laboratory has the program for confirm(): making it is the dear part.
    study::Experiment experiment = experiment_of(candidate.schedule);
    experiment.options.trace = &times;
    const sim::Result result = run(experiment);
    candidate.fluid = result.time;
    candidate.line_hops = result.line_hops;
    candidate.computing = times.computing();
    candidate.moving = times.moving();
    if (!result.attribution.empty())
      candidate.attribution = result.attribution[sim::latest_rank(result)];
  } catch (const Failure& failure) {
    if (failure.code() == ExitCode::internal) throw;
    candidate.refused = failure.what();
  }
}

void Trial::confirm(Candidate& candidate) {
  study::Experiment experiment = experiment_of(candidate.schedule);
  experiment.options.engine = sim::Engine::sampled;
  const sim::Result result = run(experiment);
  candidate.confirmed = result.time;
  candidate.confirmed_error = result.sampled.error;
}

plan::Plan Trial::plan_of(const Schedule& schedule) {
  const study::Experiment experiment = experiment_of(schedule);
  auto made = program::plan_of_built_in(std::get<std::string>(experiment.subject),
                                        laboratory_.load_options(experiment, machine_));
  made->plan.lowering = std::move(made->lowering);
  return std::move(made->plan);
}

sim::Result Trial::run(const Schedule& schedule, plan::Plan plan, sim::TraceSink* trace) {
  study::Experiment experiment = experiment_of(schedule);
  const bool computes = std::any_of(plan.codes.begin(), plan.codes.end(),
                                    [](const plan::Code& code) { return !code.computes.empty(); });
  experiment.parameters = lowering_of(experiment.parameters, computes);
  plan.lowering.clear();
  experiment.subject = std::make_shared<const plan::Plan>(std::move(plan));
  experiment.options.trace = trace;
  return run(experiment);
}

plan::Plan plan_of(study::Laboratory& laboratory, const Request& request,
                   const Schedule& schedule) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  Operator op = request.op;
  op.ranks = machine->ranks();
  return Trial(laboratory, request, op, machine, nullptr).plan_of(schedule);
}

}  // namespace hemiola::explore
