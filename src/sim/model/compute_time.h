// What computes take in a compute unit, in every engine (docs/gemm.md).
#pragma once

#include <algorithm>

#include "machine/devices/gemm_model.h"
#include "program/semantics/primitive.h"

namespace hemiola::sim {

/// What the matrix units of a compute unit take.
inline Time compute_time(const machine::GpuModel& model, const program::PrimitiveFields& primitive,
                         DataType type) {
  Time time = primitive.duration;
  const auto& [m, n, k] = primitive.product;
  // Products of narrow types are faster than what cu.matrix_rate says of all others.
  const std::int64_t rate = m > 0
                                ? std::max(model.cu_matrix_rate, machine::matrix_rate(model, type))
                                : model.cu_matrix_rate;
  if (primitive.flop > 0 && rate > 0) {
    const Rate flops{rate * model.cu_clock.hertz};
    time = std::max(time, flops.time_for(primitive.flop));
  }
  if (m > 0 && machine::matrix_rate(model, type) > 0)
    time = std::max(
        time, machine::gemm_tile_time(model, {static_cast<int>(m), static_cast<int>(n)}, k, type));
  return time;
}

/// What the power limit of the device lets all of its compute units together take for it; 0: it
/// limits nothing but products.
inline Time sustained_time(const machine::GpuModel& model,
                           const program::PrimitiveFields& primitive, DataType type) {
  if (primitive.product.m == 0 || machine::matrix_rate(model, type) <= 0) return {};
  return machine::gemm_sustained_time(model, primitive.flop, type);
}

/// What the epilogue of a product takes beyond the stores that follow it.
inline Time epilogue_time(const machine::GpuModel& model, const program::MatrixProduct& product,
                          DataType type) {
  if (product.m == 0 || machine::matrix_rate(model, type) <= 0) return {};
  const machine::MatrixTile tile{static_cast<int>(product.m), static_cast<int>(product.n)};
  const Time stores = model.noc_cu_out_rate.time_for(product.m * product.n * size_of(type));
  return std::max(Time{}, machine::gemm_epilogue_time(model, tile, type) - stores);
}

}  // namespace hemiola::sim
