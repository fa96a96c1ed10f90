// Plans on real data in one thread: what tests judge check() by.
#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "verify/execute.h"

namespace hemiola::verify {

/// execute() in one thread, once, in an order drawn from the seed, with vector clocks: finds every
/// pair of unordered accesses, whatever their values, and misuse of chunks in transit. Limits: 2^22
/// elements over all ranks, 2^24 clock entries.
Execution interleave(const plan::Plan& plan, std::uint64_t seed);

}  // namespace hemiola::verify
