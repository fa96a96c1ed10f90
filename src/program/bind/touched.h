// How much memory of a rank a program touches: what decides whether it stays in an L2.
#pragma once

#include <algorithm>
#include <cstdint>

#include "program/bind/bound.h"

namespace hemiola::program {

/// Bytes of buffers on a rank; aliases count once.
struct Touched {
  std::int64_t given = 0;    ///< inputs, outputs and whatever else outlives the program
  std::int64_t scratch = 0;  ///< of one launch after the other the same
  std::int64_t fifos = 0;    ///< all slots

  std::int64_t data() const { return given + scratch; }
  /// Of the FIFOs: slots that nothing is put in are not touched.
  std::int64_t under_way() const { return std::min(fifos, data()); }
};

/// `own_rank`: as the frame counts ranks.
Touched touched_by(const Frame& frame, int own_rank);

}  // namespace hemiola::program
