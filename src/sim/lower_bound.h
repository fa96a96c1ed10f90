// The bound of a program for an engine that has its addresses and its fold already.
#pragma once

#include "sim/addresses.h"
#include "sim/fold.h"
#include "sim/simulate.h"

namespace hemiola::sim {

/// As sim::lower_bound() in simulate.h, which makes them itself.
LowerBound lower_bound(const machine::Machine& machine, const program::Bound& program,
                       const Options& options, const Addresses& addresses, const Fold& fold);

}  // namespace hemiola::sim
