// How many workgroups a compute unit has room for: what each takes of it while it is resident.
// Every engine, the verifier and the proof of jobs ask here. Sources: docs/model.md, "Residency".
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/gpu_model.h"
#include "program/program.h"

namespace hemiola::program {

/// What resident workgroups take of a compute unit.
struct Occupancy {
  std::int64_t threads = 0;
  std::int64_t workgroups = 0;
  std::int64_t registers = 0;  ///< bytes

  Occupancy& operator+=(const Occupancy& other);
  Occupancy& operator-=(const Occupancy& other);
};

/// Of one workgroup of the kernel; where it is a part of a block, its share.
Occupancy occupancy_of(const Kernel& kernel, std::size_t workgroup, const machine::GpuModel& model);

/// Of the whole block that `workgroup` belongs to, whose parts become resident together.
Occupancy occupancy_of_block(const Kernel& kernel, std::size_t workgroup,
                             const machine::GpuModel& model);

/// Whether a compute unit has room for `block` beside `used`. An empty one has room for any block.
bool has_room(const Occupancy& used, const Occupancy& block, const machine::GpuModel& model);

/// Blocks like this one that are resident on a compute unit together, at least one.
std::int64_t blocks_per_unit(const Occupancy& block, const machine::GpuModel& model);

}  // namespace hemiola::program
