// Programs for launches of a job that are not collectives: products, other computes, copies.
#pragma once

#include <cstdint>

#include "core/time.h"
#include "machine/devices/gemm_model.h"
#include "machine/devices/gpu_model.h"
#include "program/program.h"

namespace hemiola::program {

/// Of a compute that is not a product, over all its workgroups.
struct Work {
  Bytes read{}, written{};      ///< each once, from and to the GPU's memory
  std::int64_t flop = 0;        ///< at the rate of the matrix units
  Time duration{};              ///< at least, on each compute unit that it has
  std::int32_t workgroups = 0;  ///< 0: one for each compute unit of the device
  /// Into how many pieces a workgroup cuts its share at most; 0: pieces of 16 KiB. Coarser pieces
  /// are less work for the engine `fluid`, to which they are the same.
  std::int64_t most_steps = 0;
};

/// The kernel that the library is taken to choose: the fastest by the device's product model
/// (machine/devices/gemm_model.h) for operands that come from memory, and with split-K by what one
/// workgroup then takes to add the parts of a tile. Failure: sizes below 1, types as
/// product_program().
machine::GemmEstimate product_kernel(const MatrixProduct& shape, DataType type,
                                     const machine::GpuModel& model);

/// c[m, n] = a[m, k] b[k, n] on one GPU, as that kernel does it: tiles, or with split-K parts of
/// them, dealt to persistent workgroups, a step of the sum after the other with operands loaded
/// ahead (docs/gemm.md). The last part of a tile adds the float32 sums of the others. Rows of a, b
/// and c take whole 16 B. Inputs `a` and `b`, output `c`. The program has one size, that of c.
/// Failure: sizes below 1, and a type that the device does not multiply.
Program product_program(const MatrixProduct& shape, DataType type, const machine::GpuModel& model);

/// A kernel that reads, computes and writes, each of its workgroups an equal share; or does so
/// for a stated time. Input `in`, output `out`, where there are bytes. Failure: nothing to do.
Program work_program(const Work& work, const machine::GpuModel& model);

/// `bytes` from rank 0's input to rank 1's output, by rank 0's copy engine; rank 1's stream goes on
/// when they have arrived. With one rank: from input to output of the same GPU.
Program copy_program(Bytes bytes, int ranks);

}  // namespace hemiola::program
