// The entrance of the simulator.
#pragma once

#include "program/bind/bound.h"
#include "sim/result/options.h"
#include "sim/result/result.h"

namespace hemiola::sim {

/// Runs a program on the machine that it is bound to. Throws Failure with ExitCode::deadlock for a
/// wait that cannot end (with its cycle or missing signal), ExitCode::internal for a time below the
/// bound; Interrupted when the monitor asks for it. `line_hops`, times and counters are the same
/// for every run with the same input.
Result simulate(const program::Bound& program, const Options& options = {});

/// A time that no engine can be below (simulate() puts it into the result).
LowerBound lower_bound(const program::Bound& program, const Options& options = {});

}  // namespace hemiola::sim
