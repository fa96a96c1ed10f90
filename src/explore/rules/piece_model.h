// What the products of a schedule take, wave by wave: the engine fluid's rules for tiles
// (docs/fluid.md, "Tiles") in closed form, in some tens of nanoseconds. The closed form of
// schedules and the rules stand on it.
//
// The product model (machine/devices/gemm_model.h) says what one product takes alone. Pieces differ
// in what becomes of their waves: each ends with results that all compute units store at once, the
// last one is short of tiles, and transfers beside them take units, L2 and memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/data_type.h"
#include "machine/devices/gpu_model.h"

namespace hemiola::explore {

/// A launch, or several that run side by side: `blocks` times rows x columns x depth, in tiles that
/// do not reach from one block into the next.
struct Pieces {
  double blocks = 1, rows = 0, columns = 0, depth = 0;
  bool adds = false;    ///< to what is in memory (C += A B)
  double places = 1;    ///< compute units that take a workgroup of the launch
  double together = 1;  ///< launches that run side by side, on streams of their own
  bool apart = false;   ///< workgroups begin when their data come: some store while others compute
};

/// By how much longer products use what transfers beside them use as well.
struct Beside {
  double l2 = 1, memory = 1;
};

/// What a tile costs, whatever its launch: what rules have of each tile before they are asked.
struct TileTerms {
  double high = 1, wide = 1;
  double per_high = 1, per_wide = 1;  ///< one over these
  double step = 0;     ///< of a step along k: the slowest of what a unit does meanwhile
  double l2 = 0;       ///< of a step, of the L2 that all tiles share
  double matrix = 0;   ///< of a step, of all matrix units
  double power = 0;    ///< of a step of one element, of the device
  double around = 0;   ///< before the first step and behind the last
  double stores = 0;   ///< of its results, through the port of its unit
  double results = 0;  ///< bytes
  double room = 1;     ///< of a unit, for launches with such tiles
  double far = 0;      ///< of a byte behind the L2

  /// Launches with such tiles that a unit has room for: eight at most, by their threads.
  double occupancy() const {
    return static_cast<double>(static_cast<std::int64_t>(std::clamp(room, 1.0, 8.0)));
  }
};

/// Of a device and a data type. Times are femtoseconds; all rates are times of a byte, or of a flop
/// of one compute unit.
struct PieceModel {
  static constexpr double kStepBytes = 128;  ///< of a row of A or column of B, in a step along k

  double units = 1;
  double element = 2;         ///< bytes
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
  double registers = 0;  ///< bytes of a unit
  double launch = 0;     ///< begin and end of a kernel

  static PieceModel of(const machine::GpuModel& model, DataType type);

  /// Where so many bytes are touched: whether the memory-side cache holds them.
  bool is_cached(double footprint) const { return footprint <= cache_size; }
  double memory_of(bool cached) const { return cached ? cache : memory; }

  TileTerms terms(double high, double wide, bool cached) const;

  /// Without the launch. Tiles are no larger than a block.
  double time(const TileTerms& tile, const Pieces& pieces, const Beside& beside) const;
  double time(const machine::MatrixTile& tile, const Pieces& pieces, bool cached,
              const Beside& beside) const;

  /// Of a byte that a workgroup loads of own memory, with as much under way as it can.
  double read_by_workgroup(bool cached) const;
};

/// Parts rounded up; what is a whole number but for rounding stays it. Sums with so large a number
/// leave no room for a fraction: a call of std::ceil takes longer than all else of a tile.
inline double whole_parts(double parts) {
  constexpr double kNoFraction = 6755399441055744.0;  // 1.5 x 2^52
  return (parts + (0.5 - 1e-9)) + kNoFraction - kNoFraction;
}

// Here, because rules ask it dozens of times within a microsecond.
inline double PieceModel::time(const TileTerms& tile, const Pieces& pieces,
                               const Beside& beside) const {
  const double steps = whole_parts(pieces.depth * element / kStepBytes);
  const double added = pieces.adds ? tile.results : 0;
  const double far = tile.far * beside.memory;
  const double of_tile = std::max((steps * tile.l2 + added * l2) * beside.l2, steps * tile.matrix);
  const double rows_of_block = whole_parts(pieces.rows * tile.per_high);
  const double down = rows_of_block * pieces.blocks;
  const double across = whole_parts(pieces.columns * tile.per_wide);
  const double bytes = pieces.depth * element * far;
  const double least = steps * tile.step;
  // Tiles go row by row: what a wave loads of A, and of B, is loaded once.
  const auto wave = [&](double tiles) {
    double flow = std::max(least, tiles * of_tile);
    // Launches side by side: units with one tile more than others are behind.
    if (pieces.together > 1 && tiles > pieces.places)
      flow = std::max(flow, whole_parts(tiles / pieces.places) * steps * tile.matrix * units);
    const double columns = std::min(across, tiles);
    double rows = std::min(down, tiles);
    const double more = tiles * added * far;
    if ((rows * tile.high + columns * tile.wide) * bytes + more > flow) {
      rows = tiles <= across ? 1 : std::min(down, whole_parts(tiles / across) + 1);
      flow = std::max(flow, (rows * tile.high + columns * tile.wide) * bytes + more);
    }
    const double around = tile.around + std::max(tile.stores, tiles * tile.results * far);
    return pieces.apart ? std::max(flow, least + around) : flow + around;
  };
  const double all = down * across;
  double at_once = pieces.places;
  if (pieces.together > 1)
    at_once = std::min(std::min(at_once, across * rows_of_block) * pieces.together,
                       at_once * tile.occupancy());
  // What idle times save of the power limit may be spent later, but not what follows the last wave.
  const double sustained = all * pieces.depth * tile.power + tile.around + tile.stores;
  if (all <= at_once) return std::max(sustained, wave(all));
  const auto full = static_cast<double>(static_cast<std::int64_t>((all + 0.5) / at_once));
  const double last = all - full * at_once;
  return std::max(sustained, full * wave(at_once) + (last > 0 ? wave(last) : 0));
}

}  // namespace hemiola::explore
