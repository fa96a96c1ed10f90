// Archives of traces: .tar (also inside .gz), .zip.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workload/traces/files.h"

namespace hemiola::workload {

/// By its first bytes, expanded if it is a .gz.
bool is_archive(std::string_view start);

/// The files in an archive, expanded (members that are .gz too), by name; not those whose name
/// begins with a dot. Failure: damaged, or larger than core/expansion.h allows.
std::vector<TraceFile> files_of_archive(const std::string& path);

}  // namespace hemiola::workload
