// Ranks that do the same, found: of workloads with a trace for each rank.
#pragma once

#include "workload/workload.h"

namespace hemiola::workload {

/// The workload with classes of ranks whose traces are equal but for the ranks of their groups, and
/// with families that join the groups of such ranks. What each rank does is the same. Where joined
/// groups would overlap, the workload comes back as it was.
Workload fold(Workload workload);

}  // namespace hemiola::workload
