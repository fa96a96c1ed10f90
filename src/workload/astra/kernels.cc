#include "workload/astra/kernels.h"

#include <algorithm>

#include "core/data_type.h"

namespace hemiola::workload::astra {
namespace {

KernelWork of_product(const machine::GemmShape& shape) {
  const std::int64_t operands = shape.m * shape.k + shape.k * shape.n, results = shape.m * shape.n;
  const std::int64_t size = size_of(shape.type);
  const std::int64_t result_size = size_of(shape.output.value_or(shape.type));
  return {2 * shape.batch * shape.m * shape.n * shape.k,
          shape.batch * (operands * size + results * result_size * (shape.accumulate ? 2 : 1))};
}

KernelWork of_attention(const Compute& c) {
  const std::int64_t size = size_of(c.type);
  const std::int64_t scores = c.batch * c.heads * c.queries * c.keys;
  std::int64_t flop = 4 * scores * c.head_dim;
  if (c.causal) flop /= 2;
  if (c.backward) flop = flop / 2 * 5;
  const std::int64_t kv_heads = c.kv_heads > 0 ? c.kv_heads : c.heads;
  const std::int64_t once =
      c.batch * c.head_dim * (2 * c.heads * c.queries + 2 * kv_heads * c.keys) * size;
  return {flop, c.backward ? 2 * once : once};
}

}  // namespace

KernelWork work_of(const Compute& compute) {
  KernelWork work{compute.flop, compute.read + compute.written};
  if (compute.kind == Compute::Kind::other || (work.flop > 0 && work.bytes > 0)) return work;
  const KernelWork shape =
      compute.kind == Compute::Kind::product ? of_product(compute.product) : of_attention(compute);
  if (work.flop == 0) work.flop = shape.flop;
  if (work.bytes == 0) work.bytes = shape.bytes;
  return work;
}

std::int64_t roofline_ns(const KernelWork& work, const AstraSystem& system) {
  const double bandwidth = system.local_memory_bandwidth * 1e9, peak = system.peak_tflops * 1e12;
  const auto flop = static_cast<double>(work.flop), bytes = static_cast<double>(work.bytes);
  if (work.flop == 0) return static_cast<std::int64_t>(bytes / bandwidth * 1e9);
  const double rate = std::min(bandwidth * (flop / bytes), peak);
  return static_cast<std::int64_t>(flop / rate * 1e9);
}

}  // namespace hemiola::workload::astra
