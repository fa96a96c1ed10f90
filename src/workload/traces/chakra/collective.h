// Chakra's kinds of collectives as ours.
#pragma once

#include <cstdint>

#include "workload/traces/assembly.h"
#include "workload/traces/groups.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Whether a collective of this `comm_type` has a `comm_size`.
bool needs_size(std::int64_t type);

/// Sets the kind by `comm_type`, and makes of its `comm_size` in `bytes`, which is what one of the
/// group's `ranks` sends, the size that nccl-tests has.
///
/// Failure: a kind that is not known; GATHER and SCATTER, if not `lenient`.
void set_kind(CollectiveCall& call, std::int64_t type, int ranks, bool lenient, Tally& tally,
              const NodeOfFile& at);

/// The `comm_type` of a kind.
std::int64_t comm_type_of(Collective kind);

}  // namespace hemiola::workload
