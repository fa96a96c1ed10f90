// How an iteration is timed, as people say it: words of the command line and of the library.
#pragma once

#include <string>
#include <string_view>

#include "hemiola/workload.h"
#include "workload/iteration/iteration.h"

namespace hemiola::workload {

/// Costs and schedule of `request`, from usual_costs(phase) on. Failure: its place is "detail" or
/// the like behind `prefix` ("--" on the command line).
void apply(const IterationOptions& options, std::string_view phase, const std::string& prefix,
           IterationRequest& request);

}  // namespace hemiola::workload
