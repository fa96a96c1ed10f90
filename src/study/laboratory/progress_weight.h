// How much of a study is done, for who watches.
#pragma once

#include "core/units.h"

namespace hemiola::study {

/// What a run takes, in no unit: most is in proportion to its size, and some is the same for each.
constexpr double progress_weight(Bytes size) {
  constexpr double kEach = 256 << 10;  // bytes
  return static_cast<double>(size.count) + kEach;
}

}  // namespace hemiola::study
