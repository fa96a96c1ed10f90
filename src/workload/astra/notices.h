// What of a workload counts in the ASTRA-sim model otherwise than it says.
#pragma once

#include "workload/astra/configuration.h"
#include "workload/workload.h"

namespace hemiola::workload::astra {

/// Warnings, each once, however many nodes it is about.
Diagnostics notices_of(const Workload& workload, const AstraConfiguration& configuration);

}  // namespace hemiola::workload::astra
