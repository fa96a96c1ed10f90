// Options of verbs that run workloads, and the run itself.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/options/inputs.h"
#include "cli/options/together.h"
#include "workload/iteration/iteration_options.h"

namespace hemiola::cli {

struct IterationOptions {
  hemiola::IterationOptions words{};  ///< all but `detail`
  std::vector<std::string> detail{};  ///< "all-reduce=line"
  std::string json{}, csv{}, trace{}, report{};
  std::string job{};  ///< file: the launches as a job
  TogetherOptions together{};
};

/// Those that a verb does not have anyhow: `run` has engine, launch and outputs. Those of several
/// processes are among them.
void add_iteration_options(CLI::App& verb, IterationOptions& options);
/// Engine, launch and outputs.
void add_iteration_basics(CLI::App& verb, IterationOptions& options);

/// Runs it, prints, writes files. Of several processes one does so. `write_more` (may be empty) is
/// called where files are written. Failure as workload::run_iteration().
ExitCode run_iteration_verb(std::shared_ptr<const workload::Workload> workload,
                            const MachineOptions& machine, const IterationOptions& options,
                            Session& session, const std::function<void()>& write_more = {});
/// The costs and the schedule that the options ask for. `workload` may be nothing; `phase` is its.
workload::IterationRequest iteration_request(std::shared_ptr<const workload::Workload> workload,
                                             std::string_view phase, const MachineOptions& machine,
                                             const IterationOptions& options, Session& session);

}  // namespace hemiola::cli
