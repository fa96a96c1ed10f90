// Ways through a node for what enters it at one NIC and leaves it at another.
#pragma once

#include <vector>

#include "plan/fabric.h"

namespace hemiola::plan {

/// Where the machine is one node, or nodes of equally many ranks (that reach each other without a
/// NIC), one after the other: from each of the first node's `doors` a path over all ranks of that
/// node, in the order of `doors`. Where links join GPUs directly, the paths share them out: no
/// direction of a lane is in two paths where that can be, and each door ends as many paths as it
/// begins (for eight GPUs of which each has a link to every other: 8 paths, 56 directions of links,
/// each in one). Through switches a path is door, door + 1, ... Without doors: from each rank that
/// links join directly to others, else from rank 0. Empty: other machines.
///
/// RCCL lists such orders by hand: ROCm/rccl, src/graph/rome_models.cc.
std::vector<std::vector<int>> node_paths(const Fabric& fabric, std::vector<int> doors);

}  // namespace hemiola::plan
