// The fluid engine: transfers are flows that share bandwidth max-min fairly, for screening.
// docs/fluid.md says what it models and what it leaves out.
#pragma once

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/result/options.h"
#include "sim/result/result.h"

namespace hemiola::sim {

/// Times are estimated; with Options::counts, links and counters are counted (count.h). Failure: a
/// parameter that it does not model, or a wait that cannot end.
Result run_fluid(const machine::Machine& machine, const program::Bound& program,
                 const Options& options);

}  // namespace hemiola::sim
