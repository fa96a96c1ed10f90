// Rotations that map a program onto itself: rank r does on its neighbours' memory what rank r + p
// does on its own neighbours'.
#pragma once

#include <cstdint>
#include <vector>

#include "program/bound.h"

namespace hemiola::program {

/// Rank r + period (modulo ranks) has the code of rank r with all ranks shifted by `period`, and
/// touches the same chunks, or in the buffers that turn those `chunks * period / ranks` further on.
struct Rotation {
  int period = 0;                   ///< divides ranks; ranks itself: the program has no symmetry
  std::vector<std::uint8_t> turns;  ///< by buffer (those with an alias: 0)
  /// By rank below `period`: what is to be added, modulo ranks, to get the ranks that it names;
  /// sorted, without 0.
  std::vector<std::vector<std::int32_t>> offsets;
  bool all_offsets = false;  ///< they may be any: they depend on loops
};

/// Of a bound program, from its affine expressions alone: no cursor is walked. The period is the
/// smallest that is found; a program that this overlooks is right, only slower. A buffer turns only
/// where the part between one period's chunks and the next one's is whole lines of `line` bytes.
/// Programs with multicast groups have none.
Rotation rotation_of(const Bound& program, std::int64_t line);

}  // namespace hemiola::program
