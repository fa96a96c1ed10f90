#include "cli/verbs/explore_suite.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "core/text.h"
#include "explore/suite/suite_run.h"
#include "report/exploration_suite.h"

namespace hemiola::cli {
namespace {

using explore::ScenarioRow;
using explore::ScenarioStatus;

ExitCode code_of(const std::vector<ScenarioRow>& rows) {
  const auto has = [&](ScenarioStatus status) {
    return std::ranges::any_of(rows, [&](const ScenarioRow& row) { return row.status == status; });
  };
  if (has(ScenarioStatus::internal)) return ExitCode::internal;
  return has(ScenarioStatus::done) ? ExitCode::done : ExitCode::bad_input;
}

}  // namespace

void add_suite_options(CLI::App& verb, SuiteOptions& options) {
  const AddOptions add(verb);
  add("--suite", options.suite,
      "explore all scenarios of a YAML file, or of the built-in suite 'overlap'", "NAME|FILE");
  add("--database", options.out,
      "of a suite: the database (SQLite), new, or what is there of this suite", "FILE");
  add("--csv", options.csv, "of a suite: write one line per scenario", "FILE");
  add_together(verb, options.together);
}

void refuse_suite_options(const Session& session) {
  refuse_typed(session, {"--database", "--csv", "--parts", "--slurm", "--slurm-script"},
               "goes with --suite only", "--json writes what is found of one operator");
}

ExitCode explore_suite(Session& session, const explore::Request& request, int ranks,
                       const SuiteOptions& options, const SuiteOutputs& outputs) {
  if (options.out.empty())
    throw Failure("no database is given", SourceLocation{.file = "--database"},
                  "for example --database results.sqlite");
  const Together together(options.together, session, options.out + ".parts");
  if (together.submitted()) return ExitCode::done;
  Progress progress(session);
  progress.doing("reading " + options.suite);
  explore::Suite suite = explore::read_scenarios(options.suite);
  if (ranks > 0) suite = explore::with_ranks(std::move(suite), ranks);
  explore::SuiteDatabase database(
      options.out, explore::head_of(session.laboratory, suite, request, HEMIOLA_VERSION));
  session.kept_safe = "what is done is in " + options.out + ": the same command goes on there";
  const std::unique_ptr<study::Parts> parts =
      together.open(explore::head_of_parts(database.head()));
  explore::run_suite(session.laboratory, suite, request, database,
                     {.threads = request.options.threads,
                      .stop = session.monitor.stop,
                      .parts = parts.get(),
                      .on_progress = [&](const explore::SuiteProgress& now) {
                        progress.show(now.doing, now.share);
                        progress.parts(now.done, now.all, "scenarios");
                      }});
  progress.show({}, 1);  // what is printed now is the result
  if (!together.is_first()) return ExitCode::done;
  const report::SuiteExploration found{
      .suite = suite.file, .file = options.out, .head = database.head(), .rows = database.read()};
  report::print_suite(std::cout, found);
  if (!outputs.json.empty()) write_file(outputs.json, report::suite_json(session.command, found));
  if (!options.csv.empty()) write_file(options.csv, report::suite_csv(found));
  if (!outputs.report.empty())
    write_file(outputs.report, report::page::render(report::suite_page(session.command, found)));
  return code_of(found.rows);
}

}  // namespace hemiola::cli
