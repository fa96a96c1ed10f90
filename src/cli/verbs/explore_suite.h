// hemiola explore --suite: many operators into one database.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/cli.h"
#include "cli/options/together.h"
#include "explore/search/explorer.h"

namespace hemiola::cli {

struct SuiteOptions {
  std::string suite;  ///< name or file; empty: one operator is explored
  std::string out, csv;
  TogetherOptions together;
};
void add_suite_options(CLI::App& verb, SuiteOptions& options);

/// Of one operator: Failure for what suites alone have.
void refuse_suite_options(const Session& session);

struct SuiteOutputs {
  std::string json, report;
};
/// Explores, each scenario by `ranks` GPUs or, with 0, by as many as it says, what the database has
/// not yet, and prints all of it. `request.options.threads`: scenarios at a time. Bad input where
/// no scenario can be explored, an internal error where one had one.
ExitCode explore_suite(Session& session, const explore::Request& request, int ranks,
                       const SuiteOptions& options, const SuiteOutputs& outputs);

}  // namespace hemiola::cli
