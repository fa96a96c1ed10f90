// Which ranks stand for all in a simulation of some launches. Private to the costs.
#pragma once

#include <vector>

#include "machine/machine.h"
#include "workload/scheduler/costs.h"

namespace hemiola::workload {

/// Groups of a place whose launch is simulated for `rank`'s sake: the one that it is in, and those
/// that share a NIC or a link with that one. Indices in Place::groups; the rank's own first.
std::vector<std::size_t> representative_groups(const machine::Machine& machine, const Place& place,
                                               int rank);

}  // namespace hemiola::workload
