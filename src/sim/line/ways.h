// Ways between GPUs as the line engine knows them: links, and what comes behind each.
#pragma once

#include <cstdint>
#include <memory>

#include "sim/result/result.h"

namespace hemiola::sim {

/// A link on a way, and what comes behind it.
struct LinkHop {
  std::int32_t link = 0;
  std::uint32_t tag = 0;            ///< order tag of what arrives
  Reason reason = Reason::switch_;  ///< of the node at its end
  std::int64_t latency = 0;         ///< fs
  std::int64_t node_latency = 0;
};
/// A leg of the way between two GPUs.
struct WayLeg {
  const LinkHop* hops = nullptr;
  std::int16_t count = 0;                  ///< of them
  std::int16_t out_port = 0, in_port = 0;  ///< of the GPU it leaves, and of the other one
  std::int32_t to = 0;  ///< what stands for the GPU at its end; below 0: WayTable::at_switch_of()
};
/// There and back.
struct Way {
  WayLeg forward, back;
  std::unique_ptr<LinkHop[]> hops;  ///< of both
};

}  // namespace hemiola::sim
