// Timelines of what an exploration found, for its page.
#pragma once

#include <string>
#include <utility>

#include "cli/cli.h"
#include "core/data_type.h"
#include "plan/plan.h"
#include "report/run_timeline.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

/// One cold run by the engine fluid, launched as the options say.
report::RunTimeline::Panels timeline_of_plan(Session& session, const study::MachineChoice& machine,
                                             plan::Plan plan, DataType type, sim::Launch launch);
/// The same of the text of a job.
report::RunTimeline::Panels timeline_of_job(Session& session, const study::MachineChoice& machine,
                                            const std::string& text, sim::Launch launch);

/// Those of the fastest schedule of `found`, if there is one, and of serial.
template <typename Request, typename Found>
std::pair<report::RunTimeline::Panels, report::RunTimeline::Panels> timelines_of(
    Session& session, const Request& request, const Found& found, DataType type) {
  const sim::Launch launch = request.options.launch;
  report::RunTimeline::Panels best;
  if (const auto* winner = found.winner())
    best = timeline_of_plan(session, request.machine,
                            plan_of(session.laboratory, request, winner->schedule), type, launch);
  return {std::move(best), timeline_of_job(session, request.machine, found.serial.job, launch)};
}

}  // namespace hemiola::cli
