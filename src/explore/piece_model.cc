#include "explore/piece_model.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "explore/closed_form.h"
#include "machine/gemm_model.h"

namespace hemiola::explore {
namespace {

constexpr double kStepBytes = 128;  ///< of a row of A or column of B in a step along k
/// A step's loads keep their slots for the mean latency of all; most find their line in the L2, as
/// tiles of a wave share operands.
constexpr double kBehindL2 = 0.3;
constexpr double kMostKernels = 8;  ///< of 256 threads on one unit

double of_time(Time time) {
  return static_cast<double>(time.fs);
}

/// a / b rounded up; both are above 0. A call of std::ceil takes longer than all else of a tile.
double parts_of(double a, double b) {
  if (a <= b) return 1;
  const double parts = a / b;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(parts));
  return whole < parts ? whole + 1 : whole;
}

/// What the tiles of a launch are like, whatever its waves.
struct TileCost {
  double flow = 0;           ///< operands through a unit
  double l2 = 0, power = 0;  ///< of one tile, when all units are shared evenly
  double matrix = 0;         ///< of a unit, where several tiles are on it
  double around = 0;         ///< before the first operands and after the last
  double results = 0;        ///< bytes
};

}  // namespace

PieceModel PieceModel::of(const machine::GpuModel& model, DataType type) {
  PieceModel piece;
  piece.units = static_cast<double>(model.cu_count);
  piece.element = size_of(type);
  // Two tiles tell flop and steps apart.
  constexpr std::int64_t kDepth = 4096;
  const double steps = static_cast<double>(kDepth) * piece.element / kStepBytes;
  const double small = of_time(machine::gemm_tile_time(model, {64, 64}, kDepth, type));
  const double large = of_time(machine::gemm_tile_time(model, {128, 128}, kDepth, type));
  const double flop_of_small = 2.0 * 64 * 64 * kDepth;
  piece.flop = (large - small) / (3 * flop_of_small);
  piece.loop = std::max(0.0, (small - flop_of_small * piece.flop) / steps);
  constexpr std::int64_t kFlop = 1'000'000'000'000;
  piece.power = of_time(machine::gemm_sustained_time(model, kFlop, type)) / kFlop;
  piece.burst = of_time(model.gemm_burst_time);
  piece.unit_in = fs_per_byte(model.noc_cu_rate);
  piece.unit_out = fs_per_byte(model.noc_cu_out_rate);
  const double stored = 128.0 * 128 * piece.element;
  piece.epilogue =
      std::max(0.0, of_time(machine::gemm_epilogue_time(model, {128, 128}, type)) / stored -
                        piece.unit_out);
  piece.outstanding = static_cast<double>(std::max<std::int64_t>(1, model.cu_max_outstanding));
  piece.line = static_cast<double>(model.line_size.count);
  piece.stages = static_cast<double>(std::max<std::int64_t>(1, model.gemm_stages));
  piece.barrier = of_time(model.sync_barrier_latency);
  piece.l2 = fs_per_byte(model.gemm_l2_rate);
  piece.l2_of_transfers = model.l2_slices > 0 ? fs_per_byte(model.l2_slice_rate) /
                                                    static_cast<double>(model.l2_slices)
                                              : 0;
  piece.l2_latency = 2 * of_time(model.noc_latency) + of_time(model.l2_latency);
  if (model.noc_partitions > 1) piece.l2_latency += of_time(model.noc_partition_latency);
  piece.cache_size = static_cast<double>(model.msc_size.count);
  piece.cache = fs_per_byte(model.msc_rate);
  piece.cache_latency = of_time(model.msc_latency);
  piece.memory = fs_per_byte(model.hbm_rate) * 1000 /
                 static_cast<double>(std::max<std::int64_t>(1, model.hbm_efficiency_permille));
  piece.memory_latency = of_time(model.hbm_latency);
  piece.registers = static_cast<double>(model.cu_registers.count);
  piece.launch = of_time(model.dispatch_latency + model.launch_end_latency);
  return piece;
}

double PieceModel::occupancy(const machine::MatrixTile& tile) const {
  if (registers == 0) return kMostKernels;
  const double accumulators = 4.0 * tile.m * tile.n;
  return std::clamp(std::floor(registers / (2 * accumulators)), 1.0, kMostKernels);
}

double PieceModel::read_by_workgroup(bool cached) const {
  const double latency = l2_latency + (cached ? cache_latency : memory_latency);
  return std::max(unit_in, latency / (outstanding * line));
}

double PieceModel::time(const machine::MatrixTile& tile, const Pieces& pieces, bool cached,
                        const Beside& beside) const {
  const double high = std::min<double>(tile.m, pieces.rows);
  const double wide = std::min<double>(tile.n, pieces.columns);
  const double steps = parts_of(pieces.depth * element, kStepBytes);
  const double lines = high + wide;
  const double behind = cached ? cache_latency : memory_latency;
  const double latency = l2_latency + behind;
  const double compute = 2 * high * wide * kStepBytes / element * flop + loop;
  const double load = std::max(lines * kStepBytes * unit_in,
                               lines * (l2_latency + kBehindL2 * behind) / outstanding);
  // A place for operands is free again when the step in it has been computed.
  const double again = (barrier + load + latency + compute) / stages;
  const double results = high * wide * element;
  const double unit_stores = results * unit_out;
  const double added = pieces.adds ? results : 0;
  const TileCost cost{
      .flow = steps * std::max({compute, load, again}),
      .l2 = (steps * lines * kStepBytes + added) * l2 / beside.l2,
      .power = 2 * high * wide * pieces.depth * power,
      .matrix = steps * compute / units,
      .around = latency + std::min(compute, load) + results * epilogue,
      .results = results,
  };
  const double far = memory_of(cached) / beside.memory;
  const double down = parts_of(pieces.rows, high) * pieces.blocks;
  const double across = parts_of(pieces.columns, wide);
  // Tiles go row by row: what a wave loads of A, and of B, is loaded once.
  const auto wave = [&](double tiles) {
    const double rows = tiles <= across ? 1 : std::min(down, parts_of(tiles, across) + 1);
    const double columns = std::min(across, tiles);
    const double loaded = (rows * high + columns * wide) * pieces.depth * element;
    const double flow = std::max({cost.flow, tiles * cost.l2, tiles * cost.power,
                                  tiles * cost.matrix, (loaded + tiles * added) * far});
    return flow + cost.around + std::max(unit_stores, tiles * cost.results * far);
  };
  const double all = down * across;
  double at_once = pieces.places;
  if (pieces.together > 1) {
    const double of_launch = across * parts_of(pieces.rows, high);
    at_once = std::min(std::min(at_once, of_launch) * pieces.together, at_once * occupancy(tile));
  }
  const auto full = static_cast<double>(static_cast<std::int64_t>(all / at_once));
  const double last = all - full * at_once;
  return (full > 0 ? full * wave(at_once) : 0) + (last > 0 ? wave(last) : 0);
}

}  // namespace hemiola::explore
