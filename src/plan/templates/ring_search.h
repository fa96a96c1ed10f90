// Rings and trees over the direct links between the GPUs of a machine. Private to the layer.
#pragma once

#include <vector>

#include "plan/fabric.h"
#include "plan/templates/trees.h"

namespace hemiola::plan {

/// All ranks, each once; the next of the last is the first.
using Ring = std::vector<int>;

/// Rings that share no link (one direction of one lane), as many as the search finds: along links
/// between GPUs; where those do not connect all ranks, with the nodes one after the other, entered
/// and left by NICs of the same index (rails), one ring for each of them; in one node through
/// switches, 0, 1, 2, ... The search is randomised with a fixed seed and bounded in steps: it need
/// not find all rings of a large irregular graph.
std::vector<Ring> find_rings(const Fabric& fabric);

/// Two trees from the root over links between GPUs, sharing none where that can be, as low as that
/// allows; empty where such links do not connect all ranks.
std::vector<Tree> find_trees(const Fabric& fabric, int root);

/// Across nodes a binary tree of the ranks with the root's inner index, in every node a chain from
/// that one on (NCCL's trees); empty unless there are several nodes with equally many ranks, one
/// after the other.
Tree tree_over_nodes(const Fabric& fabric, int root);

}  // namespace hemiola::plan
