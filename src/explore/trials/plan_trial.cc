#include "explore/trials/plan_trial.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "explore/trials/isolated.h"
#include "plan/plan_json.h"
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
  for (int i = 1; i < threads && index(i) < count; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  for (const std::exception_ptr& failure : failures)
    if (failure != nullptr) std::rethrow_exception(failure);
}

machine::SharedMachine machine_to_explore(study::Laboratory& laboratory,
                                          const study::MachineChoice& choice) {
  machine::SharedMachine machine = laboratory.machine(choice);
  if (machine == nullptr)
    throw Failure("no machine is given", SourceLocation{.file = "--machine"},
                  "for example --machine mi300x-8");
  return machine;
}

study::Experiment PlanTrial::experiment_of(const TemplatePlan& plan) const {
  study::Experiment experiment{.subject = plan.name,
                               .parameters = plan.parameters,
                               .type = type_,
                               .check = false,
                               .options = options_};
  experiment.machine.given = machine_;
  experiment.options.engine = sim::Engine::fluid;
  experiment.options.threads = 1;
  return experiment;
}

// The laboratory would keep it, and programs of schedules take tens of MB each.
program::Bound PlanTrial::bound_once(const study::Experiment& of, program::Program program) const {
  const auto shared = std::make_shared<const program::Program>(std::move(program));
  const DataType type = shared->fixed_type.value_or(of.type);
  return program::bind(shared, machine_, {study::default_size(*shared, type), type, of.op});
}

sim::Result PlanTrial::run(const study::Experiment& experiment) {
  Monitor monitor{.stop = monitor_ != nullptr ? monitor_->stop : nullptr};
  const study::Watch watch{.monitor = &monitor};
  const program::Bound bound = laboratory_.prepare(experiment, watch);
  return laboratory_.simulate(bound, experiment.options, watch);
}

Time PlanTrial::bound(const TemplatePlan& plan) {
  const study::Experiment experiment = experiment_of(plan);
  Monitor monitor{.stop = monitor_ != nullptr ? monitor_->stop : nullptr};
  return sim::lower_bound(laboratory_.prepare(experiment, {.monitor = &monitor}),
                          experiment.options)
      .time();
}

std::int64_t visits_by_line(const sim::Result& by_fluid) {
  // Beside links a request visits its unit, the network on chip, an L2 slice and memory: 4.3 to 4.8
  // in products, all-gathers and fused kernels on dgx-h100 and mi300x-8.
  constexpr std::int64_t kInGpu = 5;
  const auto count = [&](const char* name) {
    const auto found = by_fluid.counters.find(name);
    return found == by_fluid.counters.end() ? 0 : found->second;
  };
  return by_fluid.line_hops + kInGpu * (count("requests.loads") + count("requests.stores"));
}

/// All that a run says of a plan but the times of its kernels.
static Measured measured_by(const sim::Result& result, const plan::Plan& plan) {
  Measured measured{.buffers = buffers(plan), .extra_traffic = extra_traffic(plan)};
  measured.fluid = result.time;
  measured.line_hops = visits_by_line(result);
  if (!result.attribution.empty())
    measured.attribution = result.attribution[sim::latest_rank(result)];
  return measured;
}

Measured PlanTrial::simulate(const TemplatePlan& of, bool hops) {
  Measured measured;
  try {
    const plan::Plan plan = plan_of(of);
    const std::string text = hops ? "" : plan::write_plan(plan);
    if (!hops) {
      const std::lock_guard lock(measured_->mutex);
      if (const auto known = measured_->by_plan.find(text); known != measured_->by_plan.end())
        return known->second;
    }
    KernelTimes times(plan);
    // By name, so that the laboratory has the program for confirm(): making it is the dear part.
    study::Experiment experiment = experiment_of(of);
    if (!hops)
      experiment.subject = bound_once(
          experiment, program::load(of.name, laboratory_.load_options(experiment, machine_)));
    experiment.options.trace = &times;
    experiment.options.counts = hops;
    measured = measured_by(run(experiment), plan);
    measured.computing = times.computing();
    measured.moving = times.moving();
    if (!hops) {
      const std::lock_guard lock(measured_->mutex);
      measured_->by_plan.emplace(text, measured);
    }
  } catch (const Failure& failure) {
    if (failure.code() == ExitCode::internal) throw;
    measured.refused = failure.what();
  }
  return measured;
}

Measured PlanTrial::simulate(const TemplatePlan& of, program::Program program) {
  study::Experiment experiment = experiment_of(of);
  experiment.subject = bound_once(experiment, std::move(program));
  return measured_by(run(experiment), plan_of(of));
}

Confirmed PlanTrial::confirm(const TemplatePlan& plan) {
  return confirmed(experiment_of(plan));
}

Confirmed PlanTrial::confirm(const TemplatePlan& plan, program::Program program) {
  study::Experiment experiment = experiment_of(plan);
  experiment.subject = bound_once(experiment, std::move(program));
  return confirmed(std::move(experiment));
}

Confirmed PlanTrial::confirmed(study::Experiment experiment) {
  experiment.options.engine = sim::Engine::sampled;
  const sim::Result result = run(experiment);
  Confirmed confirmed{result.time, result.sampled.error};
  if (!result.attribution.empty())
    confirmed.attribution = result.attribution[sim::latest_rank(result)];
  return confirmed;
}

plan::Plan PlanTrial::plan_of(const TemplatePlan& plan) {
  const study::Experiment experiment = experiment_of(plan);
  auto made = program::plan_of_built_in(std::get<std::string>(experiment.subject),
                                        laboratory_.load_options(experiment, machine_));
  made->plan.lowering = std::move(made->lowering);
  return std::move(made->plan);
}

sim::Result PlanTrial::run(const TemplatePlan& of, plan::Plan changed, sim::TraceSink* trace) {
  study::Experiment experiment = experiment_of(of);
  const bool computes = std::ranges::any_of(
      changed.codes, [](const plan::Code& code) { return !code.computes.empty(); });
  experiment.parameters = lowering_of(experiment.parameters, computes);
  changed.lowering.clear();
  experiment.subject =
      bound_once(experiment, program::lower_plan(changed, experiment.parameters, machine_.get()));
  experiment.options.trace = trace;
  experiment.options.counts = false;
  return run(experiment);
}

}  // namespace hemiola::explore
