// The search: every schedule bounded, the promising ones simulated, the best of them confirmed, and
// what each loses.
#pragma once

#include <cstdint>
#include <functional>

#include "explore/exploration.h"
#include "explore/space/schedule.h"
#include "plan/plan.h"
#include "study/laboratory/experiment.h"

namespace hemiola::explore {

struct ExploreWatch {
  study::Watch watch{};
  std::function<void(std::int64_t done, std::int64_t all)> on_progress{};
};

/// Deterministic: the same for any number of threads. Failure: sizes that do not divide, machines
/// that do not fit, a collective that the library does not have; Interrupted.
Exploration explore(study::Laboratory& laboratory, const Request& request,
                    const ExploreWatch& watch = {});

/// The plan of a schedule, with the lowering that was simulated, for `run`, `check` and `compile`.
plan::Plan plan_of(study::Laboratory& laboratory, const Request& request, const Schedule& schedule);

}  // namespace hemiola::explore
