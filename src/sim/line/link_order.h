// In which order the line engine's links take their turns in a round, and how long a round may last
// for that (docs/line_engine.md).
#pragma once

#include <cstdint>
#include <vector>

#include "machine/machine.h"
#include "sim/model/fabric.h"

namespace hemiola::sim {

struct LinkOrder {
  std::vector<std::vector<std::int32_t>> levels;  ///< links by turn; own ones are in none
  bool begins_at_gpus = false;                    ///< the first level leads away from GPUs
  std::vector<std::int64_t> offset;  ///< fs, by link: when its window begins in a round
  std::int64_t window = 0;           ///< fs: how long a round may last as far as links go
  std::int64_t at_gpu = 0;           ///< fs: the first end of a link at a GPU
};

struct LinkOrderRequest {
  const machine::Machine& machine;
  const Fabric& fabric;
  std::int64_t out = 0;  ///< fs: from a CU, at 0, to the first link
  bool nics = false;     ///< whether somebody needs them
  /// By link: it has one input, that of its GPU's port, and needs no turn.
  std::vector<bool> own;
  bool answers = false;  ///< at the end of a way GPUs send because something has come (replay)
};

/// Links come in the order in which a request meets them: away from GPUs, then back to them.
LinkOrder order_links(const LinkOrderRequest& request);

}  // namespace hemiola::sim
