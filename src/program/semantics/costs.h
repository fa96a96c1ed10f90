// What primitives cost beside what they move and wait for. The engines and the lower bound ask
// here, so that a parameter means the same to all of them.
#pragma once

#include <cstdint>

#include "core/data_type.h"
#include "core/time.h"
#include "machine/devices/gpu_model.h"
#include "program/semantics/primitive.h"

namespace hemiola::program {

/// Whether it is the first primitive of another operation than the wavefront's last one.
inline bool begins_operation(std::int32_t last_op, const Primitive& primitive) {
  return primitive.kind != PrimitiveKind::sync && primitive.op != last_op;
}

/// sync.op_overhead, before the first primitive of an operation. None in kernels written for one
/// purpose (`bare`), and none of an operation that begins with what is posted: its instructions run
/// beside what is under way.
inline Time operation_overhead(const machine::GpuModel& model, bool bare,
                               const Primitive& primitive) {
  const std::int64_t fs = model.sync_op_overhead.fs;
  return {bare || primitive.posted || fs <= 1 ? 0 : fs};  // 1 fs: none
}

/// Arithmetic of a compute unit that adds up `bytes` of each of several sources: cu.reduce_rate_*
/// by the size of an element, for each source after the first.
inline Time reduce_time(const machine::GpuModel& model, DataType type, std::int64_t bytes,
                        std::int64_t sources) {
  const int element = size_of(type);
  const Rate rate = element >= 4   ? model.cu_reduce_rate_4byte
                    : element == 2 ? model.cu_reduce_rate_2byte
                                   : model.cu_reduce_rate_1byte;
  return rate.time_for(bytes * (sources - 1));
}

/// Of a release, a fence or a post, once all earlier stores of the workgroup are acknowledged:
/// sync.fence_latency, and at system scope sync.system_fence_time.
inline Time release_time(const machine::GpuModel& model, bool system_scope) {
  const std::int64_t fence = model.sync_fence_latency.fs;
  return {(fence > 1 ? fence : 0) + (system_scope ? model.sync_system_fence_time.fs : 0)};
}

}  // namespace hemiola::program
