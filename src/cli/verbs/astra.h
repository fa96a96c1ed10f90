// Inputs of ASTRA-sim 2.x: its model, and ours beside it.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/verbs/iteration.h"

namespace hemiola::cli {

struct AstraOptions {
  std::vector<std::string> files;  ///< --astra: "workload=PREFIX", "system=FILE", ...
  std::string workload;            ///< in place of that among them
  bool lenient = false;
  bool only = false;  ///< --engine astra: without ours
};

/// Runs ASTRA-sim's model in its networks, and ours on `machine`, or on one made of the network.
ExitCode run_astra_verb(const AstraOptions& astra, const MachineOptions& machine,
                        const IterationOptions& iteration, Session& session);

}  // namespace hemiola::cli
