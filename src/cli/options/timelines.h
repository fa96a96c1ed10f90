// Timelines of what an exploration found, for its page.
#pragma once

#include <utility>

#include "cli/cli.h"
#include "core/data_type.h"
#include "explore/exploration.h"
#include "plan/plan.h"
#include "report/run_timeline.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

/// One cold run by the engine fluid, launched as the options say.
report::RunTimeline::Panels timeline_of_plan(Session& session, const study::MachineChoice& machine,
                                             plan::Plan plan, DataType type, sim::Launch launch);
/// Those of the fastest schedule of `found`, if there is one, and of serial.
std::pair<report::RunTimeline::Panels, report::RunTimeline::Panels> timelines_of(
    Session& session, const explore::Request& request, const explore::Exploration& found);

}  // namespace hemiola::cli
