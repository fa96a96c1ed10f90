// What the products of a schedule take, wave by wave: the engine fluid's rules for tiles
// (docs/fluid.md, "Tiles") in closed form, in some tens of nanoseconds. The closed form of schedules
// and the rules stand on it.
//
// The product model (machine/gemm_model.h) says what one product takes alone. Pieces differ in what
// becomes of their waves: each ends with results that all compute units store at once, the last one
// is short of tiles, and transfers beside them take units, L2 and memory.
#pragma once

#include <cstdint>

#include "core/data_type.h"
#include "machine/gpu_model.h"

namespace hemiola::explore {

/// A launch, or several that run side by side: `blocks` times rows x columns x depth, in tiles that
/// do not reach from one block into the next.
struct Pieces {
  double blocks = 1, rows = 0, columns = 0, depth = 0;
  bool adds = false;    ///< to what is in memory (C += A B)
  double places = 1;    ///< compute units that take a workgroup of the launch
  double together = 1;  ///< launches that run side by side, on streams of their own
};

/// What transfers leave of what they share with products.
struct Beside {
  double l2 = 1, memory = 1;
};

/// Of a device and a data type. Times are femtoseconds; all rates are times of a byte, or of a flop
/// of one compute unit.
struct PieceModel {
  double units = 1;
  double element = 2;  ///< bytes
  double flop = 0, loop = 0;  ///< of a unit's matrix part; of a step along k, beside it
  double power = 0;           ///< of a flop, with all units under the power limit
  double burst = 0;           ///< so long the limit does not hold
  double unit_in = 0, unit_out = 0, epilogue = 0;  ///< through a unit's port; beside that
  double outstanding = 0, line = 128;  ///< lines that a unit has under way; bytes of one
  double stages = 1, barrier = 0;
  double l2 = 0, l2_latency = 0;  ///< of operands
  double l2_of_transfers = 0;
  double cache = 0, cache_latency = 0, cache_size = 0;  ///< on the memory's side; size 0: none
  double memory = 0, memory_latency = 0;
  double registers = 0;  ///< bytes of a unit; 0: not known
  double launch = 0;     ///< begin and end of a kernel

  static PieceModel of(const machine::GpuModel& model, DataType type);

  /// Where so many bytes are touched: whether the memory-side cache holds them.
  bool is_cached(double footprint) const { return footprint <= cache_size; }
  double memory_of(bool cached) const { return cached ? cache : memory; }

  /// Without the launch. Tiles are no larger than a block.
  double time(const machine::MatrixTile& tile, const Pieces& pieces, bool cached,
              const Beside& beside) const;

  /// Of a byte that a workgroup loads of own memory, with as much under way as it can.
  double read_by_workgroup(bool cached) const;

  /// Launches with such tiles that a compute unit has room for.
  double occupancy(const machine::MatrixTile& tile) const;
};

}  // namespace hemiola::explore
