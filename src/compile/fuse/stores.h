// Tiles that a plan pushes to a peer once they are made: the kernel stores them there itself,
// through a table of addresses, and the transfer is gone.
#pragma once

#include <string>
#include <vector>

#include "compile/fuse/fusion.h"
#include "compile/fuse/grids.h"
#include "plan/area.h"

namespace hemiola::compile {

/// Elements of the output of a rank's kernel that are stored into a tensor of a peer instead, where
/// rows are equally far apart.
struct TileStore {
  int rank = 0;
  std::int32_t tensor = 0;
  plan::Rect source;  ///< of `tensor`, which has none of it
  int peer = 0;
  std::int32_t target = 0;
  plan::Rect destination;
};

/// Takes such transfers out of the plan: pushes of what one compute makes, which nobody else reads.
/// Who waited for one waits for the tiles. Failure at `file`: there is none.
std::vector<TileStore> take_pushes(Grids& grids, const std::string& file);

/// Which of them the tiles of a wave are; null: none. Failure at `file`: some of them only.
const TileStore* store_of(const plan::Plan& plan, const Fusion& fusion,
                          const std::vector<TileStore>& stores, int rank, const FusedWave& wave,
                          const std::string& file);

}  // namespace hemiola::compile
