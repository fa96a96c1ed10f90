// Programs for launches of a job that are not collectives: products, other computes, copies.
#pragma once

#include <cstdint>

#include "core/time.h"
#include "machine/gpu_model.h"
#include "program/program.h"

namespace hemiola::program {

/// Of a compute that is not a product, over all its workgroups.
struct Work {
  Bytes read{}, written{};      ///< each once, from and to the GPU's memory
  std::int64_t flop = 0;        ///< at the rate of the matrix units
  Time duration{};              ///< at least, on each compute unit that it has
  std::int32_t workgroups = 0;  ///< 0: one for each compute unit of the device
};

/// c[m, n] = a[m, k] b[k, n] on one GPU, as a library's kernel does it: tiles of the size that the
/// device's product model chooses (machine/gemm_model.h), dealt to persistent workgroups, a
/// step of the sum after the other with operands loaded ahead (docs/gemm.md). Rows of a, b and c
/// take whole 16 B. Inputs `a` and `b`, output `c`. The program has one size, that of c. Failure:
/// sizes below 1, and a type that the device does not multiply.
Program product_program(const MatrixProduct& shape, DataType type, const machine::GpuModel& model);

/// A kernel that reads, computes and writes, each of its workgroups an equal share; or does so
/// for a stated time. Input `in`, output `out`, where there are bytes. Failure: nothing to do.
Program work_program(const Work& work, const machine::GpuModel& model);

/// `bytes` from rank 0's input to rank 1's output, by rank 0's copy engine; rank 1's stream goes on
/// when they have arrived. With one rank: from input to output of the same GPU.
Program copy_program(Bytes bytes, int ranks);

}  // namespace hemiola::program
