// Workloads from traces: Chakra execution traces (protobuf), PyTorch execution traces and Kineto
// traces (JSON): docs/traces.md is the manual. And from HLO modules, which are what all ranks do:
// docs/hlo.md. And from workload texts of ASTRA-sim 1 and SimAI and tables of AICB: docs/simai.md.
#pragma once

#include <optional>
#include <string>

#include "workload/workload.h"

namespace hemiola::workload {

struct TraceRequest {
  /// A file; a folder or an archive (.tgz, .tar.gz, .zip, .gz) of files, one for each rank; a
  /// prefix of `PREFIX.<rank>.et`; or a pattern, `t.%d.et`. Formats are recognised by content.
  std::string path;
  /// Leaves out, or takes as something similar, what would be refused; each kind is a notice.
  bool lenient = false;
  std::string sizes;   ///< a file with the sizes of calls that do not say theirs; may be empty
  std::string groups;  ///< a file of process groups; empty: the one beside the trace, if there is
  /// There is one trace, and so many ranks do the same.
  std::optional<int> replicate;
  std::string name;  ///< of the workload; empty: that of the files
};

/// Failure with ExitCode::bad_input for what is no trace, or is damaged, or lacks what a simulation
/// needs: it names the file and, where there is one, the node. ExitCode::deadlock for nodes that
/// wait for each other.
Workload read_workload(const TraceRequest& request);

/// Whether a path is something that read_workload() is for. It may still be damaged.
bool is_trace(const std::string& path);

}  // namespace hemiola::workload
