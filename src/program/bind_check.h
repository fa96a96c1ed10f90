// What bind() checks of a program before anything walks it.
#pragma once

#include "program/program.h"

namespace hemiola::program {

/// Every index of a bound program is in range, loops are matched and at most two deep, and every
/// pair of ranks reaches each other the way the operation between them needs. Throws Failure with
/// all that is wrong (at most a dozen errors), each at its operation.
void check_bound(const Program& program);

}  // namespace hemiola::program
