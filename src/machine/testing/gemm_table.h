// Tables of measured matrix products, and what the model and a roofline make of them.
//
// A table is CSV with a header line; lines with # in front are comments. Columns, in any order: m,
// n, k, time_us; b or batch (1 where absent); dtype or dtypes ("bfloat16", "f32xf32->f32").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/devices/gemm_model.h"

namespace hemiola::machine {

/// What XLA's tables have in each time beside the kernel: its kernels are launched one by one under
/// a tracer. A kernel that moves 16 KiB to 128 KiB takes 5.0 to 5.2 us by the same tools
/// (calibrate/h100_hbm_bw_vs_size.csv, "includes launch time"), and 1.9 us in a stream of others.
constexpr double kTracedLaunchUs = 3.1;

struct GemmRow {
  GemmShape shape;
  double measured_us = 0;
  double launch_us = 0;  ///< of `measured_us`; of tables with XLA's column `dtypes`
};

/// The rows of the wanted types in order. Throws Failure with the line for a malformed row, a
/// missing column and an unknown type.
std::vector<GemmRow> parse_gemm_table(std::string_view csv, const std::string& file,
                                      const std::vector<DataType>& types);

/// latency + max(flop / (share of the peak), bytes / (share of the memory bandwidth)): what a model
/// without tiles and caches would say.
struct GemmRoofline {
  double latency_us = 0;
  double matrix_share = 1;  ///< of cu.matrix_rate* x cu.clock
  double memory_share = 1;  ///< of hbm.rate

  double time_us(const GpuModel& model, const GemmShape& shape) const;
};
/// The roofline of the least median error on these rows, to which the shares are fitted.
GemmRoofline fit_roofline(const GpuModel& model, const std::vector<GemmRow>& rows);

/// Of |(modelled + launch) / measured - 1|, and of the larger of that quotient and its inverse the
/// geometric mean less 1.
struct GemmErrors {
  std::size_t rows = 0;
  double median = 0;
  double worst = 0;
  double geometric_mean = 0;
};
/// `modelled_us` has one entry per row; rows with m, n or k below `least` are left out.
GemmErrors gemm_errors(const std::vector<GemmRow>& rows, const std::vector<double>& modelled_us,
                       std::int64_t least);

}  // namespace hemiola::machine
