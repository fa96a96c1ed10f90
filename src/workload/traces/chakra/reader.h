// Chakra execution traces as protobuf messages: versions 0.0.4 and 1.0. docs/traces.md says what is
// taken from where.
#pragma once

#include <string>
#include <string_view>

#include "workload/traces/assembly.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {

/// The trace of the rank at which `groups` stands. Process groups that the file names are defined;
/// of a workload that we wrote, streams and families too.
///
/// `class_name` becomes that of the rank's class, if the file says so. Failure names the node: a
/// file that is cut short or damaged, an unknown type, a collective without a size, a group that
/// nothing defines; see TraceAssembly::finish() too.
Trace read_chakra(const std::string& file, std::string_view content, TraceAssembly& assembly,
                  ProcessGroups& groups, Tally& tally, std::string& class_name);

}  // namespace hemiola::workload
