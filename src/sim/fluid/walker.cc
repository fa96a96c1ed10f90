// What an agent goes through, one primitive after the other.

#include "sim/fluid/walker.h"

#include <iterator>
#include <utility>

#include "program/semantics/barrier.h"

namespace hemiola::sim::fluid {
namespace {

/// Tiles that differ in their place only are one flow, so many of them to a table that others wait
/// for the end of: enough for what runs beside them to see how their operands change.
constexpr std::int64_t kPiecesOfTable = 4;

}  // namespace

// The steps of a tile are one compute.
bool Place::next(const Agent& agent, program::Primitive& primitive) {
  if (agent.kernel < 0 || tiled) return cursor->next(primitive);
  const bool more = cursor->next(primitive, tile, kPiecesOfTable);
  tiled = tile.steps > 0;
  return more;
}

bool Place::fetch(const Agent& agent, std::int32_t barrier_base) {
  if (loaded) return true;
  loaded = true;
  if (!pending.empty()) {
    present = std::move(pending.front());
    pending.pop_front();
  } else if (!next(agent, present)) {
    return loaded = false;
  }
  if (present.kind == program::PrimitiveKind::barrier && agent.kernel >= 0) {
    auto parts = program::parts_of_barrier(present, agent.rank, barrier_base, barrier_rounds);
    present = std::move(parts.front());
    pending.assign(std::move_iterator(parts.begin() + 1), std::move_iterator(parts.end()));
  }
  return true;
}

const program::Primitive* Place::peek(const Agent& agent) {
  if (pending.empty()) {
    program::Primitive ahead;
    if (!next(agent, ahead)) return nullptr;
    pending.push_back(std::move(ahead));
  }
  return &pending.front();
}

}  // namespace hemiola::sim::fluid
