// Workloads as Chakra execution traces, for ASTRA-sim and others.
#pragma once

#include <string>

#include "workload/workload.h"

namespace hemiola::workload {

/// Writes `PREFIX.<rank>.et` (version 0.0.4) for each rank and `PREFIX.json` with the process
/// groups. `path` is the prefix; if it is a folder, the prefix is the workload's name in it.
///
/// What has no counterpart in Chakra goes to attributes of our own (traces/chakra/extension.h), so
/// that read_workload() gives the same workload again, but for notices and sources. Control
/// dependencies are the order of streams, for readers that have none. Failure if a file cannot be
/// written.
void write_chakra(const Workload& workload, const std::string& path);

}  // namespace hemiola::workload
