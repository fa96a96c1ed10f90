// What is known of how long a plan takes, other than by plan::estimate().
#pragma once

#include "core/time.h"
#include "core/units.h"

namespace hemiola::plan {

/// How long it takes at `size`: the one asked for or, where that is too much to find out, a smaller
/// one.
struct Judgement {
  Time time{0};
  Bytes size{};
};

}  // namespace hemiola::plan
