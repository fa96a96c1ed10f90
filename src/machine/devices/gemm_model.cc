// The GEMM model. All arithmetic is in seconds, bytes and double; docs/gemm.md has the formulas.

#include "machine/devices/gemm_model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hemiola::machine {
namespace {

// What the kernels are like, alike on all devices. Fitted to the H100 (docs/gemm.md).
constexpr double kLoopCycles = 115;    // barriers and address arithmetic of one step along k
constexpr double kSplitTime = 0.7e-6;  // the parts of a tile wait for each other
// Kernels of 4-byte types: operands that lie across k go through registers.
constexpr double kWideShare = 0.71;

constexpr double kStepBytes = 128;        // of a row of A or column of B in one step: a cache line
constexpr std::int64_t kFewestSteps = 4;  // of one part of a split
constexpr std::array<std::int64_t, 8> kSplits{1, 2, 3, 4, 6, 8, 12, 16};
constexpr std::int64_t kLargest = std::int64_t{1} << 24;  // of m, n, k and batch

double seconds(Time time) {
  return static_cast<double>(time.fs) * 1e-15;
}
Time time_of(double seconds) {
  return {static_cast<std::int64_t>(std::llround(seconds * 1e15))};
}
double number(std::int64_t value) {
  return static_cast<double>(value);
}
double parts(double whole, double part) {
  return std::ceil(whole / part);
}
/// Of a rate of which 0 is ideal.
double time_for(double bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
}

/// One of the library's kernels: `cus` compute units share a tile and split its rows or columns;
/// `split` such groups share its k.
struct Kernel {
  MatrixTile tile;
  std::int64_t cus = 1;
  std::int64_t split = 1;

  /// Of one compute unit: elements of C, and bytes of one step along k.
  double elements() const { return 1.0 * tile.m * tile.n / number(cus); }
  double step_bytes() const { return (tile.m + tile.n) * kStepBytes / number(cus); }
};

/// One product on one device, with all that does not depend on the kernel.
class Problem {
 public:
  Problem(const GpuModel& model, const GemmShape& shape, const GemmOptions& options)
      : model_(model), shape_(shape), options_(options) {
    rate_ = number(matrix_rate(model, shape.type));
    element_ = size_of(shape.type);
    wide_ = element_ == 4;
    cus_ = number(options.cus == 0 ? model.cu_count : options.cus);
    step_ = kStepBytes / element_;
    steps_ = parts(number(shape.k), step_);
    clock_ = number(model.gemm_clock.hertz);
    l2_rate_ = number(model.gemm_l2_rate.bytes_per_second);
    hbm_rate_ = number(model.hbm_rate.bytes_per_second) * number(model.hbm_efficiency_permille) /
                1000 * options.hbm_share;
    l2_hit_ = 2 * seconds(model.noc_latency) + seconds(model.l2_latency);
    if (model.noc_partitions > 1) l2_hit_ += seconds(model.noc_partition_latency);  // mean of both
    const double batch = number(shape.batch);
    inputs_ = element_ * batch * number(shape.k) * number(shape.m + shape.n);
    output_ = size_of(shape.output.value_or(shape.type)) * batch * number(shape.m) *
              number(shape.n) * (shape.accumulate ? 2 : 1);
    in_l2_ = resident(number(model.l2_size.count) / number(model.gemm_l2_domains));
    in_cache_ = std::max(in_l2_, resident(number(model.msc_size.count)));
  }

  GemmEstimate estimate(const Kernel& kernel) const {
    const double tiles = parts(number(shape_.m), kernel.tile.m) *
                         parts(number(shape_.n), kernel.tile.n) * number(shape_.batch);
    const double workgroups = tiles * number(kernel.cus * kernel.split);
    const double at_once = cus_ - std::fmod(cus_, number(kernel.cus));
    const double waves = parts(workgroups, at_once);
    const double steps = parts(steps_, number(kernel.split));

    const double matrix = step_time(kernel);
    const double port = time_for(kernel.step_bytes(), number(model_.noc_cu_rate.bytes_per_second));
    const double l2 = time_for(kernel.step_bytes() * workgroups / waves, l2_rate_);
    const double latency = l2_hit_ / stages(kernel);
    const double epilogue = epilogue_time(kernel);
    const Traffic traffic = traffic_of(kernel, workgroups);
    const double hbm = time_for(traffic.hbm, hbm_rate_);
    const double msc = model_.msc_size.count > 0
                           ? time_for(traffic.msc, number(model_.msc_rate.bytes_per_second))
                           : 0;
    const double body =
        std::max({waves * (steps * std::max({matrix, port, l2, latency}) + epilogue), hbm, msc});

    const double launch = seconds(model_.dispatch_latency) + seconds(model_.launch_end_latency);
    const double setup =
        seconds(model_.gemm_setup) + l2_hit_ +
        (1 - in_cache_) * (seconds(model_.hbm_latency) +
                           (model_.msc_size.count > 0 ? seconds(model_.msc_latency) : 0));
    const double throttled = throttled_time(body);
    return {.time = time_of(launch + setup + body + throttled),
            .tile = kernel.tile,
            .tile_cus = kernel.cus,
            .split_k = kernel.split,
            .workgroups = static_cast<std::int64_t>(workgroups),
            .waves = static_cast<std::int64_t>(waves),
            .tail = 1 - workgroups / (waves * cus_),
            .launch = time_of(launch),
            .setup = time_of(setup),
            .body = time_of(body),
            .throttled = time_of(throttled),
            .matrix = time_of(waves * steps * matrix),
            .l2 = time_of(waves * steps * std::max(l2, port)),
            .msc = time_of(msc),
            .hbm = time_of(hbm),
            .epilogue = time_of(waves * epilogue),
            .hbm_bytes = static_cast<std::int64_t>(traffic.hbm)};
  }

  bool allows(std::int64_t split) const {
    return split == 1 || steps_ >= number(split * kFewestSteps);
  }
  /// Two steps at least must fit: one in use, one on its way.
  bool fits(const Kernel& kernel) const {
    return static_cast<double>(kernel.cus) <= cus_ &&
           2 * kernel.step_bytes() <= number(model_.gemm_buffer.count);
  }
  /// Of one step along k.
  double step_time(const Kernel& kernel) const {
    const double flop = 2 * kernel.elements() * step_;
    return (flop / (rate_ * (wide_ ? kWideShare : 1)) + kLoopCycles) / clock_;
  }
  double steps() const { return steps_; }

  /// Of one workgroup: its part of C, and with split-K the parts as float32, written and read back.
  double epilogue_time(const Kernel& kernel) const {
    const double port = number(model_.noc_cu_rate.bytes_per_second);
    const double store = number(model_.gemm_store_rate.bytes_per_second);
    const double split = number(kernel.split);
    const double bytes = kernel.elements() * size_of(shape_.output.value_or(shape_.type));
    double time = time_for(bytes / split, store);
    if (shape_.accumulate) time += time_for(bytes / split, port);
    if (kernel.split > 1) {
      const double sums = 4 * kernel.elements();
      time += kSplitTime + time_for(sums, store) + time_for(sums, port);
    }
    return time;
  }

 private:
  /// Share of the operands that a cache holds from the last turn of a loop. Random replacement: a
  /// loop over twice the cache finds nothing.
  double resident(double cache) const {
    if (options_.cold || cache <= 0) return 0;
    return std::clamp(2 - (inputs_ + output_) / cache, 0.0, 1.0);
  }

  double stages(const Kernel& kernel) const {
    return std::clamp(std::floor(number(model_.gemm_buffer.count) / kernel.step_bytes()), 1.0,
                      number(model_.gemm_stages));
  }

  struct Traffic {
    double msc = 0;  // bytes that the L2s miss
    double hbm = 0;  // bytes that the memory-side cache misses too
  };
  /// The tiles of a wave lie together, as square as they go in bytes; each wave loads the rows of A
  /// and columns of B that it touches once per L2, and finds what the caches keep of earlier waves.
  Traffic traffic_of(const Kernel& kernel, double workgroups) const {
    const double domains = number(model_.gemm_l2_domains);
    const MatrixTile tile = kernel.tile;
    const double rows = parts(number(shape_.m), tile.m);
    const double columns = parts(number(shape_.n), tile.n);
    const double per_tile = number(kernel.cus * kernel.split);
    const double together = std::clamp(cus_ / domains / per_tile, 1.0, rows * columns);
    const double high = std::clamp(std::sqrt(together * tile.n / tile.m),
                                   std::max(1.0, together / columns), std::min(rows, together));
    const double wide = together / high;
    const double per_wave = (high * tile.m + wide * tile.n) * number(shape_.k) * element_;
    const double requested = workgroups / per_tile / together * per_wave;
    const auto missed = [&](Bytes cache, double shares) {
      return 1 - std::min(1.0, number(cache.count) / shares / inputs_);
    };
    const double operands = inputs_ + output_;
    const double again = std::max(0.0, requested - inputs_) * missed(model_.l2_size, domains);
    return {.msc = operands * (1 - in_l2_) + again,
            .hbm = operands * (1 - in_cache_) + again * missed(model_.msc_size, 1)};
  }

  /// The power limit bounds the flop per second of the whole device, at gemm.sustained_clock.
  double throttled_time(double body) const {
    const double burst = options_.steady ? 0 : seconds(model_.gemm_burst_time);
    if (body <= burst) return 0;
    const double flop =
        2.0 * number(shape_.m) * number(shape_.n) * number(shape_.k) * number(shape_.batch);
    const double sustained =
        flop / (number(model_.cu_count) * rate_ * number(model_.gemm_sustained_clock.hertz));
    return (body - burst) * (std::max(1.0, sustained / body) - 1);
  }

  const GpuModel& model_;
  const GemmShape& shape_;
  const GemmOptions& options_;
  double rate_ = 0;
  double element_ = 0;  // bytes
  bool wide_ = false;
  double cus_ = 0;
  double step_ = 0;   // elements of k
  double steps_ = 0;  // along all of k
  double clock_ = 0;
  double l2_rate_ = 0;
  double hbm_rate_ = 0;
  double l2_hit_ = 0;
  double inputs_ = 0;  // bytes
  double output_ = 0;
  double in_l2_ = 0;     // share of the operands that is there from before
  double in_cache_ = 0;  // in the L2 or the memory-side cache
};

void check_type(const GpuModel& model, DataType type) {
  if (matrix_rate(model, type) <= 0) {
    throw Failure(
        "the matrix units of " + model.name + " have no " + std::string(name_of(type)), {},
        "cu.matrix_rate, cu.matrix_rate_4byte and cu.matrix_rate_1byte say what they have");
  }
}

void check_range(const std::string& name, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value >= least && value <= most) return;
  throw Failure(name + " of a GEMM is " + std::to_string(value), {},
                "expected " + std::to_string(least) + " to " + std::to_string(most));
}

void check(const GpuModel& model, const GemmShape& shape, const GemmOptions& options) {
  check_range("m", shape.m, 1, kLargest);
  check_range("n", shape.n, 1, kLargest);
  check_range("k", shape.k, 1, kLargest);
  check_range("batch", shape.batch, 1, kLargest);
  check_range("the number of compute units", options.cus, 0, model.cu_count);
  check_range("the number of compute units of a tile", options.tile_cus, 0, model.gemm_tile_cus);
  check_range("split_k", options.split_k, 0, shape.k);
  if (!(options.hbm_share > 0 && options.hbm_share <= 1)) {
    throw Failure("the memory share of a GEMM is " + std::to_string(options.hbm_share), {},
                  "expected more than 0, at most 1");
  }
  check_type(model, shape.type);
}

}  // namespace

std::int64_t matrix_rate(const GpuModel& model, DataType type) {
  switch (type) {
    case DataType::float16:
    case DataType::bfloat16:
      return model.cu_matrix_rate;
    case DataType::float32:
      return model.cu_matrix_rate_4byte;
    case DataType::int8:
    case DataType::uint8:
    case DataType::fp8_e4m3:
    case DataType::fp8_e5m2:
      return model.cu_matrix_rate_1byte;
    default:
      return 0;
  }
}

GemmEstimate estimate_gemm(const GpuModel& model, const GemmShape& shape,
                           const GemmOptions& options) {
  check(model, shape, options);
  const Problem problem(model, shape, options);
  std::optional<GemmEstimate> best;
  const auto try_kernel = [&](const Kernel& kernel) {
    const GemmEstimate found = problem.estimate(kernel);
    if (!best || found.time < best->time) best = found;
  };
  const auto try_splits = [&](Kernel kernel) {
    if (!problem.fits(kernel)) return;
    if (options.split_k != 0) {
      kernel.split = options.split_k;
      return try_kernel(kernel);
    }
    for (const std::int64_t split : kSplits) {
      kernel.split = split;
      if (problem.allows(split)) try_kernel(kernel);
    }
  };
  for (const MatrixTile tile : options.tile ? std::vector{*options.tile} : model.gemm_tiles) {
    check_range("m of the tile", tile.m, 1, kLargest);
    check_range("n of the tile", tile.n, 1, kLargest);
    if (options.tile_cus <= 1) try_splits({.tile = tile});
    if (model.gemm_tile_cus > 1 && options.tile_cus != 1)
      try_splits({.tile = tile, .cus = model.gemm_tile_cus});
  }
  if (!best) {
    throw Failure("no tile of the GEMM fits gemm.buffer of " + model.name, {},
                  "two steps of (m + n) * 128 B must fit");
  }
  return *best;
}

double gemm_time_us(const GpuModel& model, const GemmShape& shape, const GemmOptions& options) {
  return estimate_gemm(model, shape, options).time.us();
}

Time gemm_tile_time(const GpuModel& model, MatrixTile tile, std::int64_t k, DataType type) {
  const GemmShape shape{.m = tile.m, .n = tile.n, .k = k, .type = type};
  const GemmOptions options;
  check(model, shape, options);
  const Problem problem(model, shape, options);
  return time_of(problem.steps() * problem.step_time({.tile = tile}));
}

Time gemm_epilogue_time(const GpuModel& model, MatrixTile tile, DataType type) {
  const GemmShape shape{.m = tile.m, .n = tile.n, .k = 1, .type = type};
  const GemmOptions options;
  check(model, shape, options);
  return time_of(Problem(model, shape, options).epilogue_time({.tile = tile}));
}

Time gemm_sustained_time(const GpuModel& model, std::int64_t flop, DataType type) {
  return time_of(number(flop) / (number(model.cu_count * matrix_rate(model, type)) *
                                 number(model.gemm_sustained_clock.hertz)));
}

}  // namespace hemiola::machine
