// Several copies of one node behind a network of switches.
#pragma once

#include "machine/machine.h"

namespace hemiola::machine {

/// `count` copies of `node`, NIC i of each on leaf switch i (rail-optimised), every leaf on every
/// spine with as many links up as down. The links' class follows the NIC attribute `network`
/// (ib-edr, ib-hdr, ib-ndr, roce-400). Ranks run node by node. One copy stays as it is. Throws
/// Failure for a node without NICs.
Machine scale_out(Machine node, int count);

}  // namespace hemiola::machine
