// Wavefronts and workgroups under way.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/time.h"
#include "program/semantics/occupancy.h"
#include "program/walk/cursor.h"
#include "sim/device/waiting.h"
#include "sim/result/latency_breakdown.h"
#include "sim/result/trace.h"
#include "sim/support/window.h"

namespace hemiola::sim {

/// What a wavefront is waiting for.
enum class Waiting : std::uint8_t {
  running,
  loads,
  stores,
  sync,
  poll,
  drain,
  flush,
  compute,
  stage,  ///< for a place for operands
  finished
};
/// A wavefront whose polls are passed over until a flag that it waits for comes; fs.
struct Doze {
  bool on = false, listed = false;
  std::int64_t looked = 0;    ///< when its last poll began
  std::int64_t returned = 0;  ///< ... and was back
  std::int64_t way = 0;       ///< ... from its begin to the slice
  std::int64_t next = 0;      ///< when the next one would begin
  std::int64_t period() const { return next - looked; }
};
/// It interprets the primitives of its workgroup, one after the other.
struct Wave {
  LatencyBreakdown spent{};
  std::int32_t workgroup = 0;
  std::int32_t index = 0;     ///< in the workgroup
  std::uint32_t tag = 0;      ///< on its CU
  std::int64_t position = 0;  ///< primitive of the workgroup
  std::int32_t last_op = -1;
  bool fetching = false;          ///< waits for the code of last_op
  std::int32_t epoch = 0;         ///< syncs passed
  std::int32_t in_flight = 0;     ///< loads, or polls
  std::int32_t own_stores = 0;    ///< posted in the present epoch, not acknowledged
  std::int64_t next = 0;          ///< move: first byte of the next iteration of this wavefront
  std::int32_t step = 0;          ///< progress inside a primitive
  std::int32_t product_step = 0;  ///< posted computes passed
  Waiting waiting = Waiting::running;
  std::int32_t wait = 0;   ///< the how-manieth
  std::int32_t alone = 0;  ///< the wait in which it was seen that its CU does nothing else
  std::int64_t sleep = 0;  ///< fs: the next one of a back-off
  std::vector<Watched> watched;
  std::int32_t missing = 0;  ///< of them, that no look has found satisfied
  Doze doze{};
};
struct Granularity {  ///< data bytes per iteration
  std::int64_t wave = 0;
  std::int64_t group = 0;
};
struct Step {  ///< a primitive that some wavefront has not passed yet
  program::Primitive primitive;
  std::int32_t first_wave = 0, waves = 0;  ///< that take part
  std::int32_t left = 0;                   ///< of them, that have not passed it
  std::int32_t arrived = 0;                ///< sync
  Granularity grain;                       ///< move
  std::int32_t way = 0;                    ///< move, sampled: sampled::Mover::way
  std::int32_t kind = -1;                  ///< move, sampled: of which kind; -1: never skipped
  std::int64_t begin = -1;
  FlowEnds flow{};  ///< of a trace
  bool has(std::int32_t wave) const { return wave >= first_wave && wave < first_wave + waves; }
};
struct ProductStep {        ///< operands under way, then a compute; computes.cc
  Time time{};              ///< of the compute
  Time sustained{};         ///< of all compute units together, under the power limit
  std::int32_t posted = 0;  ///< wavefronts whose loads are posted
  std::int64_t loads = 0;   ///< that have not returned
  bool started = false;
  LatencyBreakdown spent{};  ///< of what came last, then until the end
};
/// Its primitives come from a cursor; those that some wavefront is at stand in a window.
struct Workgroup {
  std::unique_ptr<program::Cursor> cursor;
  Window<Step> window;
  std::int64_t first = 0;                                  ///< position of window.front()
  bool ended = false;                                      ///< the cursor is exhausted
  std::int32_t rank = 0, kernel = 0, index = 0, body = 0;  ///< kernel: run index
  std::int32_t cu = -1;
  std::int64_t began = 0;  ///< its dispatch
  std::int32_t first_wave = 0, waves = 0, finished = 0, threads = 0;
  program::Occupancy occupancy;      ///< of its compute unit, while it is resident
  bool fetched = false;              ///< its code was asked for
  std::int64_t code_ready = 0;       ///< when the last piece that was fetched is there
  int code_pieces = 0;               ///< still to be fetched
  std::int32_t movers = 0;           ///< wavefronts that move; the one behind them, if any, signals
  std::vector<std::int32_t> stores;  ///< not acknowledged, by epoch from first_epoch
  std::int32_t first_epoch = 0;
  std::int64_t posted = 0, posted_done = 0;
  std::vector<std::int64_t> barrier_rounds;  ///< by barrier id
  std::int32_t draining = -1;                ///< wavefront that waits for stores
  std::int32_t flushing = -1;
  std::deque<ProductStep> steps;  ///< not ended, from number first_step
  std::int32_t first_step = 0;
  std::int32_t joining = -1;  ///< the last wavefront at a sync that waits for their end
  Place place = Place::resident;
  bool wanted = false;            ///< woken since it began to leave
  std::int32_t state_moving = 0;  ///< requests for its state that are under way
};

}  // namespace hemiola::sim
