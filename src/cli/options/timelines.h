// Timelines of what an exploration found, for its page.
#pragma once

#include <string>

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

}  // namespace hemiola::cli
