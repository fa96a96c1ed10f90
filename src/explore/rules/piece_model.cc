#include "explore/rules/piece_model.h"

#include "explore/rules/closed_form.h"
#include "machine/devices/gemm_model.h"

namespace hemiola::explore {
namespace {

/// A step's loads keep their slots for the mean latency of all; most find their line in the L2, as
/// tiles of a wave share operands.
constexpr double kBehindL2 = 0.3;

double of_time(Time time) {
  return static_cast<double>(time.fs);
}

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
  piece.epilogue = std::max(
      0.0, of_time(machine::gemm_epilogue_time(model, {128, 128}, type)) / stored - piece.unit_out);
  piece.outstanding = static_cast<double>(std::max<std::int64_t>(1, model.cu_max_outstanding));
  piece.line = static_cast<double>(model.line_size.count);
  piece.stages = static_cast<double>(std::max<std::int64_t>(1, model.gemm_stages));
  piece.barrier = of_time(model.sync_barrier_latency);
  piece.l2 = fs_per_byte(model.gemm_l2_rate);
  piece.l2_of_transfers =
      model.l2_slices > 0 ? fs_per_byte(model.l2_slice_rate) / static_cast<double>(model.l2_slices)
                          : 0;
  piece.l2_latency = 2 * of_time(model.noc_latency) + of_time(model.l2_latency);
  if (model.noc_partitions > 1) piece.l2_latency += of_time(model.noc_partition_latency);
  piece.cache_size = static_cast<double>(model.msc_size.count);
  piece.cache = fs_per_byte(model.msc_rate);
  piece.cache_latency = of_time(model.msc_latency);
  piece.memory = fs_per_byte(model.hbm_rate) * 1000 /
                 static_cast<double>(std::max<std::int64_t>(1, model.hbm_efficiency_permille));
  piece.memory_latency = of_time(model.hbm_latency);
  piece.registers = model.cu_registers.count > 0 ? static_cast<double>(model.cu_registers.count)
                                                 : 1e12;  // not known: threads decide
  piece.launch = of_time(model.dispatch_latency + model.launch_end_latency);
  return piece;
}

double PieceModel::read_by_workgroup(bool cached) const {
  const double latency = l2_latency + (cached ? cache_latency : memory_latency);
  return std::max(unit_in, latency / (outstanding * line));
}

TileTerms PieceModel::terms(double high, double wide, bool cached) const {
  const double lines = high + wide;
  const double behind = cached ? cache_latency : memory_latency;
  const double latency = l2_latency + behind;
  const double compute = 2 * high * wide * kStepBytes / element * flop + loop;
  const double load = std::max(lines * kStepBytes * unit_in,
                               lines * (l2_latency + kBehindL2 * behind) / outstanding);
  // A place for operands is free again when the step in it has been computed.
  const double again = (barrier + load + latency + compute) / stages;
  const double results = high * wide * element;
  return {.high = high,
          .wide = wide,
          .per_high = 1 / high,
          .per_wide = 1 / wide,
          .step = std::max({compute, load, again}),
          .l2 = lines * kStepBytes * l2,
          .matrix = compute / units,
          .power = 2 * high * wide * power,
          .around = latency + std::min(compute, load) + results * epilogue,
          .stores = results * unit_out,
          .results = results,
          .room = registers / (8 * high * wide),  // twice its sums, in float32
          .far = memory_of(cached)};
}

double PieceModel::time(const machine::MatrixTile& tile, const Pieces& pieces, bool cached,
                        const Beside& beside) const {
  return time(terms(std::min<double>(tile.m, pieces.rows), std::min<double>(tile.n, pieces.columns),
                    cached),
              pieces, beside);
}

}  // namespace hemiola::explore
