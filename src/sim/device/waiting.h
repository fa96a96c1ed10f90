// What waits for flags: at wavefronts, and at the slices that monitor flags for them
// (docs/replay.md, "Waiting").
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "program/semantics/primitive.h"
#include "sim/model/request.h"
#include "sim/result/trace.h"
#include "sim/support/line_map.h"

namespace hemiola::sim {

/// A wavefront's wait for a flag below its target; for attribution only.
struct Watch {
  std::int32_t wave;
  std::int32_t index;  ///< in Wave::watched
};
struct SemaphoreState {
  std::int64_t value = 0;
  std::vector<Watch> watches;
  std::vector<std::int32_t> queues{};  ///< copy queues that wait for it
};
struct PacketLine {
  std::int64_t flag = 0;   ///< stored last
  std::uint64_t mask = 0;  ///< granules that hold it
  std::vector<std::pair<std::int64_t, std::uint64_t>>
      others{};                         ///< older flags that granules still hold
  std::vector<std::int32_t> watches{};  ///< loads that found less than they need
  std::uint64_t granules(std::int64_t of) const {
    if (of == flag) return mask;
    for (const auto& [other, held] : others)
      if (other == of) return held;
    return 0;
  }
};

/// One of the flags that a wavefront waits for; those of one line stand together, and the first one
/// stands for the line.
struct Watched {
  program::SemaphoreId id;
  std::int64_t target;
  bool consume, swap;
  bool satisfied = false;
  bool expected = false;  ///< it stands in SemaphoreState::watches: the target has not been reached
  std::int32_t first = 0;  ///< of its line
  std::int64_t first_poll = -1;
  Cause cause{};
  SpanId cause_span = 0;  ///< of a trace
  // Of the line.
  std::int32_t end = 0;      ///< behind its last flag
  std::int32_t missing = 0;  ///< of its flags that no look has found satisfied
  bool news = true;          ///< a look may find more than the last one
  // ... with monitors and SyncMon only.
  bool asleep = false;   ///< nothing is under way until a wake-up comes
  bool woken = false;    ///< one came before it slept
  bool refused = false;  ///< the table had no room
};

/// A wait that a slice monitors: an entry of its table, or of the log.
struct Watcher {
  std::int32_t wave = -1;
  std::int32_t first = 0;    ///< Watched of the line
  std::int32_t wait = 0;     ///< the wavefront's how-manieth
  std::int32_t updates = 0;  ///< of flags that it waits for, since it is here
  std::int32_t route = 0;    ///< of the request that brought it
  std::int16_t source = 0, target = 0, cu = 0, slice = 0;
  bool any = false;     ///< any write to the line wakes it; else its flags have to be there
  bool logged = false;  ///< it stands in the log in memory
};

/// Where a workgroup's state is.
enum class Place : std::uint8_t { resident, leaving, out, returning };

/// What looks after waits at a GPU: its slices, or the memory controller.
struct Monitors {
  LineMap<std::vector<Watcher>> watchers{};  ///< by line of flags, in the order of coming
  std::vector<std::int32_t> used{};          ///< entries of the tables, by slice
  std::int32_t log_entries = 0;              ///< written so far
  std::int32_t log = 0;                      ///< number of the log
};

}  // namespace hemiola::sim
