// Folding: of ranks that behave alike, one is simulated.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/walk/rotation.h"
#include "sim/model/fabric.h"
#include "sim/result/options.h"

namespace hemiola::sim {

/// A rotation by `period` ranks maps program, addresses and all ways onto themselves. Ranks
/// 0 .. period - 1 are simulated: what goes to rank r arrives at rank r mod period, on the link
/// that stands for the one it would take, and there it meets what would come from the others.
struct Fold {
  int period = 0;                        ///< ranks that are simulated; all: nothing folds
  std::string reason;                    ///< why nothing folds; empty where it does
  std::vector<machine::LinkId> link_of;  ///< by link: which stands for it; empty: each for itself
};

/// Compares the ways of all pairs of ranks that the program names with those of the pairs a period
/// further: as many hops of the same classes, latencies and order tags, by the same ports.
Fold fold_of(Fabric& fabric, const program::Bound& program, const program::Rotation& rotation,
             const Options& options);

/// The same whatever `Options` ask for: of a program on all ranks of the machine.
Fold alike_ranks(Fabric& fabric, const program::Bound& program, const program::Rotation& rotation);

/// Whether ranks a period further have the same GPUs.
bool same_models(const machine::Machine& machine, int period, int ranks);

}  // namespace hemiola::sim
