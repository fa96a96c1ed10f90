// The bound of a program for an engine that has its addresses and its fold already.
#pragma once

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/alike/fold.h"
#include "sim/model/addresses.h"
#include "sim/result/options.h"
#include "sim/result/result.h"

namespace hemiola::sim {

/// As sim::lower_bound() in simulate.h, which makes them itself.
LowerBound lower_bound(const machine::Machine& machine, const program::Bound& program,
                       const Options& options, const Addresses& addresses, const Fold& fold);

}  // namespace hemiola::sim
