// What calls of programs on one communicator can share. Private to the linking of jobs.
#pragma once

#include <cstdint>

#include "program/bind/bound.h"

namespace hemiola::program {

/// Equal for programs whose scratch memory, FIFOs and semaphores lie alike and whose connections
/// join the same ranks, so that calls of one can go on where calls of the other ended. Counters
/// that are known by the number of the call alone (dependencies of workgroups, rotating and
/// self-clearing memory) go on only from calls of the same program at the same size: such programs
/// are equal to themselves only. Of this process: it takes where a program lies in memory.
std::uint64_t shared_layout(const Bound& bound);

}  // namespace hemiola::program
