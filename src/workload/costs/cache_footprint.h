// Whether caches hold what an iteration touches. Private to the costs.
#pragma once

#include <cstdint>

#include "machine/machine.h"
#include "workload/costs/launch_job.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Bytes that the launches of a class touch on each of its ranks, at most: 0 where a GPU's L2 holds
/// all of them. Behind an L2 without a memory-side cache any number above the L2 says the same; of
/// more than 16 times such a cache it is not counted how much more. A launch that
/// is simulated by itself would find these caches empty, and what it writes would stay there;
/// in the iteration it displaces what launches before have left.
std::int64_t cache_footprint(const Workload& workload, const machine::SharedMachine& machine,
                             LaunchPrograms& programs);

}  // namespace hemiola::workload
