// Parameters that the fluid engine has no model of.
#pragma once

#include <string>

#include "machine/machine.h"

namespace hemiola::sim {

/// "gpu.sync.wait=backoff": the first parameter of the machine that changes times in the line
/// engine and would change nothing in fluid; empty: none. A machine with it is refused, since its
/// time would be that of another one. There are eight: gpu.sync.wait, gpu.sync.uncached,
/// gpu.l2.copies, gpu.l1.latency above that of the L2, gpu.noc.arbitration, link.*.arbitration,
/// link.*.credits, switch.queue.
std::string not_modelled_by_fluid(const machine::Machine& machine);

}  // namespace hemiola::sim
