// What a program takes over from whoever runs it: the FIFOs of connections,
// and who posts.
#pragma once

#include <cstdint>
#include <string>

#include "hemiola/units.h"

namespace hemiola::program {

/// FIFO geometry of connections.
struct Fifo {
  std::int64_t slots = 8;
  Bytes step{512 << 10};  ///< data bytes of one slot
  /// Operations that do not fill a slot are cut into so many slices, of a 32nd of a slot at least.
  std::int32_t slices = 1;
  /// > 0: an operation on several chunks takes them in calls, of as many as fit into so many data
  /// bytes, and each call takes `slices` slots, whether bytes fill them or not (MSCCL's
  /// interpreter). 0: the operation is one call, and takes the slots that its bytes fill.
  Bytes call{};
  /// Data bytes of a call of an operation on chunks of `chunk` bytes; 0: it is one call.
  std::int64_t call_bytes(std::int64_t chunk) const;
  /// Data bytes of a slice of a call of `bytes` bytes, of elements of `element` bytes.
  std::int64_t slice_bytes(std::int64_t bytes, std::int64_t element) const;
  /// Slots without flags are in the sender's memory, and the receiver loads them, where load and
  /// store reach it (NCCL's P2P read mode).
  bool pulls = false;
};

struct ExecutedBy {
  std::string name = "hemiola";  ///< of the executor
  bool assumed = false;          ///< nobody has said so
  bool threads_post = false;     ///< Executor::threads_post
  bool operator==(const ExecutedBy&) const = default;
};

}  // namespace hemiola::program
