// `hemiola run` of programs and jobs, and the options of the verb.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/options/inputs.h"
#include "cli/verbs/iteration.h"

namespace hemiola::cli {

/// The options of `run` as they were typed.
struct RunOptions {
  MachineOptions machine;
  ProgramOptions program;
  EngineOptions engine;
  std::string skew;
  std::int64_t seed = 0;
  std::string json, csv, trace, trace_lines, record, report;
  std::string record_rank, record_at;
  bool no_check = false, round_down = false, in_place_too = false, evidence = false;
  // Of traces.
  IterationOptions iteration;
  bool lenient = false;
  std::optional<int> replicate;
  std::string groups, call_sizes;
  std::string network;
};

/// After a Ctrl-C the rows that are done are printed and written, and Interrupted is thrown.
ExitCode run_program(const RunOptions& options, Session& session);

}  // namespace hemiola::cli
