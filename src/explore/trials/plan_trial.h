// Plans of templates simulated: made, lowered, bound and timed; whole, or a part of them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/data_type.h"
#include "core/monitor.h"
#include "core/time.h"
#include "core/units.h"
#include "explore/measured.h"
#include "plan/plan.h"
#include "sim/result/options.h"
#include "sim/result/result.h"
#include "sim/result/trace.h"
#include "study/laboratory/experiment.h"

namespace hemiola::explore {

/// Calls `task` for 0 .. count-1 in so many threads. The first failure (by index) is thrown again,
/// once all have ended.
void for_each(int threads, std::size_t count, const std::function<void(std::size_t)>& task);

/// Failure where none is given.
machine::SharedMachine machine_to_explore(study::Laboratory& laboratory,
                                          const study::MachineChoice& choice);

/// A template with its parameters, those of the lowering among them.
struct TemplatePlan {
  std::string name;
  study::Settings parameters;
};

/// Visits of requests to resources that the line engine would simulate, about.
std::int64_t visits_by_line(const sim::Result& by_fluid);

/// All of it is thread-safe.
class PlanTrial {
 public:
  /// Of the options launch, warmup and iterations are asked. `stop` of the monitor ends it.
  PlanTrial(study::Laboratory& laboratory, const sim::Options& options, DataType type,
            machine::SharedMachine machine, const Monitor* monitor)
      : laboratory_(laboratory),
        options_(options),
        type_(type),
        machine_(std::move(machine)),
        monitor_(monitor),
        measured_(std::make_shared<Known>()) {}

  /// The same on another machine.
  PlanTrial on(machine::SharedMachine machine) const {
    return {laboratory_, options_, type_, std::move(machine), monitor_};
  }
  /// A time that no simulation is below, without one. Failure where the plan cannot be run.
  Time bound(const TemplatePlan& plan);
  /// `hops`: `line_hops` is asked for, which costs a fifth more, and the program is kept, because
  /// whoever asks how much work it would be goes on to confirm().
  Measured simulate(const TemplatePlan& plan, bool hops = true);
  Confirmed confirm(const TemplatePlan& plan);
  /// The same by a program that was made of the plan elsewhere, say that of a file.
  Measured simulate(const TemplatePlan& plan, program::Program program);
  Confirmed confirm(const TemplatePlan& plan, program::Program program);
  /// Its own lowering proposed with it.
  plan::Plan plan_of(const TemplatePlan& plan);
  /// `changed` lowered as the plan is, by fluid; kernels are told to `trace`.
  sim::Result run(const TemplatePlan& plan, plan::Plan changed, sim::TraceSink* trace);

 private:
  /// What plans without hops took, by their text with the lowering: templates have parameters that
  /// change nothing beside others.
  struct Known {
    std::mutex mutex;
    std::map<std::string, Measured> by_plan;
  };

  study::Experiment experiment_of(const TemplatePlan& plan) const;
  /// The program bound as the laboratory would, but known to nobody else.
  program::Bound bound_once(const study::Experiment& of, program::Program program) const;
  sim::Result run(const study::Experiment& experiment);
  Confirmed confirmed(study::Experiment experiment);

  study::Laboratory& laboratory_;
  sim::Options options_;
  DataType type_;
  machine::SharedMachine machine_;
  const Monitor* monitor_;
  std::shared_ptr<Known> measured_;
};

}  // namespace hemiola::explore
