// Which movement reads what which other wrote: data flow over the memory of all ranks. Private to
// lower/.
#pragma once

#include "program/lower/general.h"
#include "program/lower/history.h"

namespace hemiola::program::general {

/// `count` units that a source of `reader` has from a destination of `writer`. Of a plan of
/// elements units tell nothing but that there are some: rows that all movements treat alike count
/// once.
struct Reading {
  MovementId reader;
  std::size_t source = 0;
  std::int64_t at = 0;  ///< first of the units, in the order of the reader's place
  MovementId writer;
  std::size_t destination = 0;
  std::int64_t offset = 0;  ///< first of the units, in the order of the writer's place
  std::int64_t count = 0;
};

/// Two accesses to the same memory, one of them a store.
struct Conflict {
  MovementId earlier, later;
  bool loads_first = false;  ///< the earlier one only reads what the later one writes
  auto operator<=>(const Conflict&) const = default;
};

struct Flow {
  std::vector<Reading> readings;
  std::vector<Conflict> conflicts;  ///< sorted, each once; only between neighbours in time
};

/// All movements by level, so that each stands after all that it waits for.
std::vector<MovementId> in_order(const Movements& movements);

/// The flow of movements with levels. What is packed into packets (Place::packets) is read by
/// nobody else and has no conflicts.
Flow flow_of(const plan::Plan& plan, const Movements& movements);

using StreamOfRank = std::pair<int, std::int32_t>;     ///< of a rank
using KnownMoves = Known<StreamOfRank, std::int64_t>;  ///< by stream the index of the last movement

/// Packets of all ranks.
struct Packed {
  std::vector<std::int64_t> units;  ///< of each rank
  std::vector<Reading> readings;    ///< who polls for whose
};
/// What goes to another stream, through memory that only streams of its owner read, becomes
/// packets, each in a place of its own. Needs levels; of plans of chunks that do not compute.
Packed pack(const plan::Plan& plan, const LowerOptions& options, Movements& movements);

/// Leaves of all dependencies those that memory needs: not what others imply, nor what packets
/// carry. Needs levels; of plans that do not compute.
void prune(const plan::Plan& plan, const Packed& packed, Movements& movements);

/// Where ranks begin and end.
struct Ends {
  struct Start {
    int rank = 0;
    bool loads_only = false;  ///< what is overwritten there has only been read
  };
  /// Of the movements to or from memory of other ranks: those that may not have started.
  std::map<const Movement*, std::vector<Start>> starts;
  /// By rank: what others do to its memory, of which none of its streams knows that it is over.
  std::vector<std::vector<Movement::After>> last;
};
/// Needs levels, and dependencies as they will be waited for.
Ends ends_of(const plan::Plan& plan, const Movements& movements);

/// Tensors whose last values somebody sees: outputs, inputs (in place), and what a plan promises.
std::vector<bool> observed_tensors(const plan::Plan& plan);

}  // namespace hemiola::program::general
