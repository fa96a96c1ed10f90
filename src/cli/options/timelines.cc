#include "cli/options/timelines.h"

#include <memory>
#include <utility>

#include "explore/search/explorer.h"
#include "study/laboratory/job_run.h"

namespace hemiola::cli {

report::RunTimeline::Panels timeline_of_plan(Session& session, const study::MachineChoice& machine,
                                             plan::Plan plan, DataType type, sim::Launch launch) {
  report::RunTimeline timeline(*session.laboratory.machine(machine));
  study::Experiment experiment{.machine = machine,
                               .subject = std::make_shared<const plan::Plan>(std::move(plan)),
                               .type = type,
                               .check = false};
  experiment.options.engine = sim::Engine::fluid;
  experiment.options.launch = launch;
  experiment.options.trace = &timeline;
  session.laboratory.run(experiment, {.monitor = &session.monitor});
  return timeline.panels();
}

std::pair<report::RunTimeline::Panels, report::RunTimeline::Panels> timelines_of(
    Session& session, const explore::Request& request, const explore::Exploration& found) {
  const sim::Launch launch = request.options.launch;
  report::RunTimeline::Panels best;
  if (const auto* winner = found.winner())
    best = timeline_of_plan(session, request.machine,
                            plan_of(session.laboratory, request, winner->schedule), request.op.type,
                            launch);
  report::RunTimeline serial(*session.laboratory.machine(request.machine));
  study::JobRequest job{.machine = request.machine,
                        .file = "serial",
                        .text = found.serial.job,
                        .check = false,
                        .alone = false};
  job.options.engine = sim::Engine::fluid;
  job.options.launch = launch;
  job.options.trace = &serial;
  study::run_job(session.laboratory, job, {.monitor = &session.monitor});
  return {std::move(best), serial.panels()};
}

}  // namespace hemiola::cli
