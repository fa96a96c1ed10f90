// What slices and memory of a GPU hold: tags of caches, flags, packets, messages that come.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sim/device/waiting.h"
#include "sim/model/engines.h"
#include "sim/model/l2.h"
#include "sim/model/tags.h"
#include "sim/support/line_map.h"

namespace hemiola::sim {

struct GpuState {
  L2 l2;
  Tags msc;
  std::uint32_t accepted = 0;  ///< requests that its slices have accepted
  std::vector<SemaphoreState> semaphores;
  LineMap<PacketLine> packets;
  /// Waits that slices, and waits that the memory controller looks after (uncached flags): what
  /// one of them does is never in the other's order.
  Monitors by_slices{}, by_memory{};
  LineMap<std::int64_t> flag_lines{};               ///< uncached: when each is free
  std::unordered_map<std::uint64_t, Flow> flows{};  ///< by (from, to): messages that come here
};

}  // namespace hemiola::sim
