// Arbitration policies: who is served next where control and data wait for one output.
//
// A policy is one function, pick_NAME, in a file of its own or in arbitration.cc, and one line in
// machine/devices/arbitration_list.h (docs/extending.md shows one being added). `fifo` needs none:
// its outputs have a single queue.
#pragma once

#include <cstdint>

#include "machine/devices/arbitration.h"

namespace hemiola::sim {

enum class Traffic : std::uint8_t {
  control,  ///< requests, acknowledgements and flags
  data      ///< everything with a payload
};

/// What a policy sees of one of the two queues. Each is first in, first out.
struct WaitingQueue {
  std::int64_t requests = 0;  ///< at least 1
  std::int64_t since = 0;     ///< fs: when its head arrived
};

/// Called when the output is free and both queues have a head; the rest needs no choice. `memory`
/// is the policy's own, one for each output and 0 at the start. Must depend on nothing else: the
/// same input has to give the same bytes out.
using PickFunction = Traffic (*)(const WaitingQueue& control, const WaitingQueue& data,
                                 std::int64_t& memory);

/// The function of a policy; null for fifo.
PickFunction pick_function(machine::Arbitration arbitration);

#define HEMIOLA_ARBITRATION(name) \
  Traffic pick_##name(const WaitingQueue& control, const WaitingQueue& data, std::int64_t& memory);
#include "machine/devices/arbitration_list.h"
#undef HEMIOLA_ARBITRATION

}  // namespace hemiola::sim
