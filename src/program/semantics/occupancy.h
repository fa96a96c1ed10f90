// How many workgroups a compute unit has room for: what each takes of it while it is resident.
// Every engine, the verifier and the proof of jobs ask here. Sources: docs/model.md, "Residency".
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/devices/gpu_model.h"
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

/// Of the units [first, last) with room for `block` the one with the fewest threads, as NVIDIA's
/// dispatcher was found to do (docs/model.md); among equals in turn from `next` on. -1: none has
/// room. `used(unit)`: its Occupancy.
template <typename Used>
std::int32_t find_unit(std::int32_t first, std::int32_t last, std::int32_t next, const Used& used,
                       const Occupancy& block, const machine::GpuModel& model) {
  const std::int32_t count = last - first;
  const std::int32_t begin = next > first && next < last ? next - first : 0;
  std::int32_t best = -1;
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t unit = first + (begin + i) % count;
    const Occupancy& here = used(unit);
    if (best >= 0 && here.threads >= used(best).threads) continue;
    if (has_room(here, block, model)) best = unit;
    if (here.workgroups == 0) break;
  }
  return best;
}

/// Blocks like this one that are resident on a compute unit together, at least one.
std::int64_t blocks_per_unit(const Occupancy& block, const machine::GpuModel& model);

}  // namespace hemiola::program
