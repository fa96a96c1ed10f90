// Trees over ranks, and what flows along them.
#pragma once

#include <cstdint>
#include <vector>

#include "hemiola/parts/build_plan.h"

namespace hemiola::plan {

/// By rank: the parent, or -1 at the root.
using Tree = std::vector<int>;

/// The in-order binary tree of NCCL (src/graph/trees.cc): 0 is the root with one child; odd numbers
/// are leaves, a number is as high as its lowest set bit.
Tree binary_tree(int ranks);
/// The same with rank (place + shift) mod ranks at every place.
Tree shifted_tree(const Tree& tree, int shift);
/// The rank at a place of a second tree that (almost) nobody is inner node of together with the
/// first one: mirrored, or shifted if the number of ranks is odd (trees.cc, ncclGetDtree).
int place_in_second_tree(int place, int ranks);

/// Which chunks of which tensors a flow moves.
struct Flow {
  std::int32_t input = 0, partial = 0, output = 0;
  std::int64_t first = 0, count = 1, stride = 1;  ///< chunks, moved one by one
};

/// Every chunk is reduced towards the root: a rank adds its children up in `partial`, the root's
/// sum is in `output`. Adds a stream. By chunk: the dependency on the last addition at the root.
std::vector<Dependency> reduce_along(RankByRank& code, const Tree& tree, const Flow& flow);

/// Every chunk goes from the root's `source` to the `output` of all others. Adds a stream for each
/// child that a rank has, so that children get their chunks at the same time. `complete`: by chunk,
/// what the root waits for; empty: nothing.
void broadcast_along(RankByRank& code, const Tree& tree, const Flow& flow, std::int32_t source,
                     const std::vector<Dependency>& complete);

}  // namespace hemiola::plan
