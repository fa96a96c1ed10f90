// How long a program is once its loops are unrolled.
#pragma once

#include <cstdint>

#include "program/bind/bound.h"

namespace hemiola::program {

/// Operations that the workgroups and copy engines of a rank do in one run of a program that is no
/// job. Slices that a send or receive goes through count as one. At most 2^62.
std::int64_t length_of(const Bound& program, int rank);

}  // namespace hemiola::program
