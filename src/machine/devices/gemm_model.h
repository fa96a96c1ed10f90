// How long a GPU takes for a matrix product: an analytic model of the kernels of the vendors'
// libraries (tiles, waves over the compute units, split-K, caches, power limit).
//
// docs/gemm.md derives it, says what was fitted to what, and prints its errors. The idea of
// choosing the tile by its modelled time is that of Origami (arXiv:2512.04226).
#pragma once

#include <cstdint>
#include <optional>

#include "core/data_type.h"
#include "core/time.h"
#include "hemiola/parts/gemm_shape.h"
#include "machine/devices/gpu_model.h"

namespace hemiola::machine {

struct GemmOptions {
  std::int64_t cus = 0;                 ///< compute units it may use; 0 all of the device
  std::int64_t split_k = 0;             ///< workgroups that share the k of one tile; 0 the best
  std::optional<MatrixTile> tile = {};  ///< none: the best of gemm.tiles
  /// That compute a tile together: 1, or gemm.tile_cus; 0 the best. Simulated tiles have one.
  std::int64_t tile_cus = 0;
  double hbm_share = 1;  ///< of the memory bandwidth, in (0, 1]
  /// Nothing is left in the caches from before. Otherwise what fits of A, B and C is: the state of
  /// loops over one product, as benchmarks time them.
  bool cold = false;
  /// The GPU has been under this load for long, so that its power limit holds from the start.
  /// Otherwise it holds from gemm.burst_time on.
  bool steady = false;
};

/// The time of the chosen kernel on the device, from its first workgroup to its end (as profilers
/// and the slope of back-to-back launches show it, without the host's call), and where it goes:
/// `launch + setup + body + throttled` is `time`. `matrix`, `l2`, `msc`, `hbm` and `epilogue` say
/// what each would take alone: the body is the longest of `msc`, `hbm` and the waves, which take
/// the longer of `matrix`, `l2` and latency and then the epilogue.
struct GemmEstimate {
  Time time;
  MatrixTile tile;
  std::int64_t tile_cus = 1;  ///< compute units that compute a tile together
  std::int64_t split_k = 1;
  std::int64_t workgroups = 0;  ///< one per compute unit
  std::int64_t waves = 0;       ///< rounds of workgroups over the compute units
  double tail = 0;  ///< share of the compute units' slots that the last wave leaves empty
  Time launch;      ///< dispatch and end of an empty kernel
  Time setup;       ///< kernel code, descriptors, first loads
  Time body;        ///< all waves
  Time throttled;   ///< added by the power limit
  Time matrix;      ///< matrix instructions and loop overhead
  Time l2;          ///< operands through the L2
  Time msc;         ///< what the L2s miss, through the memory-side cache
  Time hbm;         ///< traffic of the memory
  Time epilogue;    ///< C read and written, parts of split-K summed
  std::int64_t hbm_bytes = 0;
};

/// Dense flop per clock and compute unit of a type; 0 if the matrix units do not have it.
std::int64_t matrix_rate(const GpuModel& model, DataType type);

/// The fastest of the kernels that the options leave. Throws Failure for sizes below 1, options out
/// of range, and a type that the device's matrix units do not have.
GemmEstimate estimate_gemm(const GpuModel& model, const GemmShape& shape,
                           const GemmOptions& options = {});

/// Its time in microseconds.
double gemm_time_us(const GpuModel& model, const GemmShape& shape, const GemmOptions& options = {});

/// What the matrix units of one compute unit take for `tile` and depth `k`, loop overhead included,
/// at the clock of short loads; operands are at hand. Throws Failure as estimate_gemm() does.
Time gemm_tile_time(const GpuModel& model, MatrixTile tile, std::int64_t k, DataType type);

/// What one compute unit takes for the epilogue of `tile`: its results, of the operands' type, on
/// their way through registers and out of its port.
Time gemm_epilogue_time(const GpuModel& model, MatrixTile tile, DataType type);

/// What the power limit lets all compute units together take for so many flop.
Time gemm_sustained_time(const GpuModel& model, std::int64_t flop, DataType type);

}  // namespace hemiola::machine
