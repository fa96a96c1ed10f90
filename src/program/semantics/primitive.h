// Primitives: what operations of every format expand to. verify, sim and the executor interpret
// these and nothing else.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "program/program.h"

namespace hemiola::program {

/// Bytes of memory that a primitive touches. `offset` is the byte offset in memory of the first
/// data byte in a buffer with aliases resolved (packets included: LL data byte d stands at offset 2
/// d).
struct Span {
  std::int32_t rank = 0;    ///< owner; for multicast: -1
  std::int32_t buffer = 0;  ///< physical buffer (aliases resolved)
  std::int64_t offset = 0;
  Access access = Access::plain;
  std::int32_t group = -1;  ///< multicast group
  std::int64_t flag = 0;    ///< packets: the flag value that is written or waited for. Scratch
                            ///< packets: repetition + 1; FIFO slots: running step + 1; 0: a
                            ///< store that clears
  std::int64_t run = 0;     ///< > 0: rows of so many bytes: data byte d stands at
  std::int64_t pitch = 0;   ///< offset + (skip + d) / run * pitch + (skip + d) mod run
  std::int64_t skip = 0;
  bool bypass_l1 = false;  ///< loads of own memory do not look into the L1

  /// Calls visit(offset, data, bytes) for each contiguous part of data bytes [begin, end), which
  /// stand one to one in memory, in order.
  template <class Visit>
  void each_part(std::int64_t begin, std::int64_t end, Visit&& visit) const {
    if (run == 0) {
      if (begin < end) visit(offset + begin, begin, end - begin);
      return;
    }
    while (begin < end) {
      const std::int64_t at = skip + begin;
      const std::int64_t bytes = std::min(end - begin, run - at % run);
      visit(offset + at / run * pitch + at % run, begin, bytes);
      begin += bytes;
    }
  }
};

enum class PrimitiveKind : std::uint8_t {
  move,  ///< dst... = reduce(src...), or, with `exchanges`, dst[i] = src[i]: every thread t moves
         ///< the bytes 16 (t + k T), k = 0, 1, ... Without sources: stores what a compute made, or
         ///< clears; without destinations: only loads, which nobody waits for where it is `posted`
  signal,   ///< add `value` to a semaphore; `release`: after a fence over the workgroup's earlier
            ///< stores; without: earlier loads have returned, earlier stores may still be on their
            ///< way
  wait,     ///< until the semaphore reached `value` (a running total); `acquire`
  fence,    ///< until all earlier stores of the workgroup are acknowledged
  sync,     ///< barrier of the workgroup
  barrier,  ///< barrier among workgroups of the rank
  post,   ///< push a descriptor to the rank's proxy: copy `bytes` src -> dst (memory is the access
          ///< mode's multiple of it; 0: none), then signal if any; the push is a release at system
          ///< scope
  flush,  ///< until the proxy has completed everything this workgroup posted
  compute,  ///< the longest of `duration`, `flop` at the rate of the compute unit, and `product`.
            ///< `posted`: of what the workgroup has posted since the compute before; it goes on
            ///< while fewer than Kernel::stages of them have not ended
};
std::string_view name_of(PrimitiveKind kind);

/// Byte offset in memory of data byte `data` under an access mode: the same for plain, 2 d for
/// packets, (d / 120) * 128 + d mod 120 for LL128.
std::int64_t memory_offset(std::int64_t data, Access access);
/// The data byte that stands at a byte offset of memory: the inverse.
std::int64_t data_offset(std::int64_t memory, Access access);
/// Data bytes that a thread moves at a time where it moves `grain` of plain memory: a packet, a
/// thread's share of an LL128 line.
std::int64_t data_per_thread(Access access, std::int64_t grain);
/// Bytes of memory that `data` bytes of data starting at a packet or line boundary take.
std::int64_t memory_size(std::int64_t data, Access access);

/// A reference to a semaphore with everything resolved.
struct SemaphoreId {
  std::int32_t rank = 0;
  std::int32_t index = 0;
  auto operator<=>(const SemaphoreId&) const = default;
};

/// What a primitive has one of.
struct PrimitiveFields {
  PrimitiveKind kind = PrimitiveKind::sync;
  ReduceOp reduce = ReduceOp::none;
  bool release = false;      ///< signal: release at the scope below
  bool acquire = false;      ///< wait
  bool system_scope = true;  ///< false: device scope
  bool consume = false;      ///< wait: subtract instead of a running total (several consumers)
  bool swap = false;    ///< wait: the access that finds the value adds 1 to it; the signal behind
                        ///< such a wait: that addition, which takes no time of its own
  bool remote = false;  ///< post: crosses a NIC (else a copy engine does it)
  bool exchanges = false;  ///< move: of two sources to two destinations, each to its own; both are
                           ///< loaded before either is stored to
  bool batched = false;  ///< move by a copy engine: the next is in the same submission; the two are
                         ///< in no order
  bool posted = false;   ///< move without destinations, compute: the next sync joins it
  bool movers = false;   ///< sync: not of a wavefront that only signals (Kernel::posts_apart)
  DataType type = DataType::float32;  ///< of the elements that are reduced or multiplied
  std::int32_t op = 0;                ///< index in the body, for messages and tracks
  std::int32_t barrier_id = 0;
  std::int32_t workgroups = 0;
  std::int32_t thread = -1;  ///< post: of the workgroup's threads the one that pushes, of which
                             ///< alone the open waits hold it up; -1: all of them do
  std::int64_t bytes = 0;
  std::int64_t made = -1;  ///< move without sources: the byte of all that the rank computes
                           ///< (Computation) where its first one belongs, the others by distance;
                           ///< -1: not known
  std::int64_t flop = 0;
  MatrixProduct product{};
  Time duration{};
};

/// One primitive of one workgroup. Move: all sources and destinations have `bytes` bytes of data.
/// signal and wait may name several semaphores: thread i handles the i-th.
struct Primitive : PrimitiveFields {
  std::vector<Span> src;
  std::vector<Span> dst;
  std::vector<SemaphoreId> semaphores;
  std::vector<std::int64_t>
      values;  ///< wait: running totals; signal: increments; one per semaphore

  /// Empties what the last one left and keeps the capacity of the vectors.
  void reset(std::int32_t of_op) {
    static_cast<PrimitiveFields&>(*this) = {};
    op = of_op;
    src.clear();
    dst.clear();
    semaphores.clear();
    values.clear();
  }
};

/// Data bytes that a thread moves at a time where it moves `grain` of plain memory: the least of
/// what all spans of a move allow.
std::int64_t data_per_thread(const Primitive& move, std::int64_t grain);

/// How often the semaphores and FIFOs of a rank have been waited for and used by launches that are
/// over: what calls that share them (Frame::calls) go on from. Keys are the cursors' own.
using Totals = std::map<std::int64_t, std::int64_t>;

/// Computes with operands that follow each other up to the one that stores what they made, loops of
/// nothing else among them: the steps of a tile of a product. For who does not take them one by
/// one.
struct ComputeSteps {
  /// So many runs of one operation.
  struct Part {
    std::int32_t op = 0;  ///< in the body
    std::int64_t times = 0;
  };
  /// How far the places of the tiles of a run are from those of the first.
  struct Places {
    std::int32_t column = -1;  ///< of the table
    std::int64_t stride = 0;   ///< bytes of what it counts
  };
  /// What they load: `bytes` at a time, `times` times, each `distance` bytes of memory further.
  struct Read {
    Span first{};
    std::int64_t bytes = 0, times = 0, distance = 0;
    std::int32_t operand = 0;  ///< of its operation
    Places places{};
  };
  struct Write {
    Span first{};
    std::int64_t bytes = 0;
    Places places{};
  };
  std::vector<Part> parts;
  std::vector<Read> reads;
  std::int64_t steps = 0;   ///< computes
  std::int64_t stored = 0;  ///< bytes of data that the last of them stores
  /// More than one: a run of tiles that differ in their place only, of which all the rest is the
  /// first. Then what a tile stores is part of it.
  std::int64_t tiles = 1;
  std::vector<Write> writes;            ///< of a run
  const std::int64_t* table = nullptr;  ///< of a run: Op::places from its first tile on
  std::int64_t columns = 0;
  std::int64_t moved(const Places& places, std::int64_t tile) const {
    if (tile == 0 || places.column < 0) return 0;
    return (table[tile * columns + places.column] - table[places.column]) * places.stride;
  }
  std::int32_t op() const { return parts.front().op; }
  /// The same loads in as few spans as say it: steps side by side along rows, or below each other,
  /// are one. Data bytes of each.
  std::vector<std::pair<Span, std::int64_t>> loads() const;
  void clear() {
    parts.clear();
    reads.clear();
    writes.clear();
    steps = stored = 0;
    tiles = 1;
  }
};

}  // namespace hemiola::program
