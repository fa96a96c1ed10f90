// Rotations that map a program onto itself: rank r does on its neighbours' memory what rank r + p
// does on its own neighbours'.
#pragma once

#include <cstdint>
#include <vector>

#include "program/bind/bound.h"

namespace hemiola::program {

/// Rank r + period (modulo ranks) has the code of rank r with all ranks shifted by `period`, and
/// touches the same chunks, or in the buffers that turn those `row * period / ranks` further on,
/// where after the end of a row of so many chunks comes its start.
struct Rotation {
  int period = 0;                   ///< divides ranks; ranks itself: the program has no symmetry
  std::vector<std::uint8_t> turns;  ///< by buffer (those with an alias: 0)
  /// By buffer that turns: bytes of a row; all that one repetition has of it, or a part of that
  /// (columns of a matrix that stands there row by row).
  std::vector<std::int64_t> rows;
  /// By rank below `period`: what is to be added, modulo ranks, to get the ranks that it names;
  /// sorted, without 0.
  std::vector<std::vector<std::int32_t>> offsets;
  bool all_offsets = false;  ///< they may be any: they depend on loops
};

/// Of a bound program, from its affine expressions alone: no cursor is walked. The period is the
/// smallest that is found; a program that this overlooks is right, only slower. A buffer turns only
/// where the part between one period's chunks and the next one's is whole lines of `line` bytes; in
/// rows shorter than the buffer only plain memory turns, and no operation goes beyond such a part.
/// Programs whose operations name multicast groups have none.
Rotation rotation_of(const Bound& program, std::int64_t line);

}  // namespace hemiola::program
