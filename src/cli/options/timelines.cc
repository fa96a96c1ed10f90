#include "cli/options/timelines.h"

#include <memory>
#include <utility>

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

report::RunTimeline::Panels timeline_of_job(Session& session, const study::MachineChoice& machine,
                                            const std::string& text, sim::Launch launch) {
  report::RunTimeline timeline(*session.laboratory.machine(machine));
  study::JobRequest job{
      .machine = machine, .file = "serial", .text = text, .check = false, .alone = false};
  job.options.engine = sim::Engine::fluid;
  job.options.launch = launch;
  job.options.trace = &timeline;
  study::run_job(session.laboratory, job, {.monitor = &session.monitor});
  return timeline.panels();
}

}  // namespace hemiola::cli
