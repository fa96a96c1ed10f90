// Who goes through primitives in the fluid engine: one agent for each class of workgroups, or of
// copy queues, that behave alike (alike/classes.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "program/walk/cursor.h"
#include "sim/alike/classes.h"
#include "sim/fluid/unit_shares.h"
#include "sim/fluid/ways.h"
#include "sim/model/engines.h"

namespace hemiola::sim::fluid {

/// A compute unit, of which resident workgroups take parts.
inline constexpr std::int64_t kRoomOfUnit = 1 << 20;

enum class Blocked : std::uint8_t {
  no,
  flow,     ///< of a move
  time,     ///< an event wakes it
  flags,    ///< semaphores
  packets,  ///< that nobody has begun to send, or not all of which are there
  room,     ///< until flows that it left behind are over
  flush,
  steps,  ///< a place for operands, or the end of all computes
  over
};

/// What does not change of an agent.
struct WalkerSpec {
  std::int32_t number = 0;  ///< of the class
  Agent agent{};
  std::int32_t rank_class = 0;
  std::int64_t members = 1, per_rank = 1;
  std::int64_t room = 0;  ///< of compute units, taken on each rank; kRoomOfUnit: one of them
  std::int64_t waves = 1, movers = 1, grain = 16, unroll = 1;
  UnitShare unit;
  std::int64_t most_sharing = 1;  ///< blocks that its compute unit has room for
  bool has_products = false;
  std::int32_t cu = 0;
  bool posts_apart = false, bare = false;
};

/// Where an agent is in its primitives.
struct Place {
  std::unique_ptr<program::Cursor> cursor;
  program::Primitive present;  ///< if `loaded`
  bool loaded = false;
  std::deque<program::Primitive> pending;  ///< parts of a barrier, or what was looked at ahead
  // A tile: a compute whose steps are taken together, present or pending.
  program::ComputeSteps tile;
  bool tiled = false;     ///< `tile` is the present or the pending compute
  std::size_t tiles = 0;  ///< before it, in this repetition
  int stage = 0;          ///< of the present primitive
  std::int64_t op_began = -1;
  std::int32_t last_op = -1;
  std::vector<std::int64_t> barrier_rounds;

  /// The next primitive is the present one; false at the end. `barrier_base`: number of the first
  /// semaphore of a barrier.
  bool fetch(const Agent& agent, std::int32_t barrier_base);
  const program::Primitive* peek(const Agent& agent);  ///< the one behind the present one

 private:
  bool next(const Agent& agent, program::Primitive& primitive);
};

/// The present move.
struct MoveState {
  program::Span recent;           ///< of own memory, which the last move read alone
  std::int64_t recent_bytes = 0;  ///< of it; 0: none, or something was acquired since
  enum class Again { no, in_l2, in_l1 } again = Again::no;  ///< the present move reads it again
  bool results_stay = false;  ///< it stores results, which the L2 takes
  std::int64_t batches = 1;
  std::int64_t leaves = 0, limit = 0;  ///< bytes for a flow that it does not wait for; its rate
  std::vector<std::int32_t> behind;    ///< such flows of all moves
};

struct Walker : WalkerSpec {
  Place place;
  Blocked blocked = Blocked::over;
  Moment at;  ///< how far it has got; not before the time of the run while it sleeps
  std::int64_t dispatched = 0;
  std::int64_t sharing = 1;  ///< blocks on its compute unit; of products, when a tile begins
  MoveState move;
  Latency batch{};           ///< of the loads of the present move, step or tile
  std::int64_t filling = 0;  ///< of a tile: before its first step, and behind its last operand
  bool draws_power = false;  ///< its present tile is one of those under way on the device
  std::int64_t code_ready = 0;
  bool fetched = false;  ///< its code
  Moment acknowledged;   ///< the last of its stores
  Moment poster;         ///< the wavefront that only signals
  // Copies of a queue: those of the present submission so far; whether there were some.
  std::vector<CopyLeg> legs;
  bool copied = false;
};

}  // namespace hemiola::sim::fluid
