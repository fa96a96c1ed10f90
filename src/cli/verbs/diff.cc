// hemiola diff: where the time between two results went.
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/options/inputs.h"
#include "core/text.h"
#include "report/difference.h"
#include "report/page.h"

namespace hemiola::cli {
namespace {

constexpr const char* kDiffExamples =
    "  hemiola diff before.json after.json\n"
    "  hemiola diff main.json change.json --fail-above 2% --quiet   # in a CI\n"
    "Both files are what `hemiola run ... --json FILE` wrote. B - A above zero: B takes longer.\n"
    "Exit code 5: a result of B takes longer than --fail-above allows (docs/diff.md).";

struct DiffOptions {
  std::vector<std::string> files;
  std::optional<std::string> fail_above;  ///< an empty text is a mistake, not no limit
  std::size_t top = 5;
  std::string json, csv, report;
  bool all = false;
};

void add_options(CLI::App& verb, DiffOptions& options, Session& session) {
  verb.add_option("A B", options.files, "two files of results: before and after")->type_name("");
  const AddOptions add(verb);
  verb.add_option("--fail-above", options.fail_above,
                  "exit code 5 where a result of B takes longer than that of A by more than this: "
                  "2%")
      ->type_name("SHARE");
  add.count("--top", options.top, 0, 1'000'000, "ranks, links and counters that are listed");
  verb.add_flag("--all", options.all,
                "details of every result, not only of the one whose time moved most");
  add("--json", options.json, "write one JSON object, with all that moved", "FILE");
  add("--csv", options.csv, "write one line per pair of results", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
  verb.add_flag("--quiet", session.quiet, "the table only: no details");
}

ExitCode carry_out(const DiffOptions& options, Session& session) {
  if (options.files.size() != 2)
    throw Failure(options.files.size() < 2 ? "two files are needed" : "two files are enough", {},
                  "for example hemiola diff before.json after.json");
  report::DifferenceView view{.top = options.top,
                              .details = session.quiet ? report::Details::none
                                         : options.all ? report::Details::all
                                                       : report::Details::most};
  if (options.fail_above)
    view.limit = study::read_limit(*options.fail_above, {.file = "--fail-above"});
  std::vector<study::ResultFile> files;  // one after the other: what is wrong is said of the first
  for (const std::string& file : options.files)
    files.push_back(study::read_results(read_file(file), file));
  const study::Difference difference = study::compare(std::move(files[0]), std::move(files[1]));
  report::print_difference(std::cout, difference, view);
  if (!options.json.empty())
    write_file(options.json, report::difference_json(session.command, difference, view.limit));
  if (!options.csv.empty()) write_file(options.csv, report::difference_csv(difference, view.limit));
  if (!options.report.empty())
    write_file(options.report,
               report::page::render(report::difference_page(session.command, difference)));
  if (!view.limit) return ExitCode::done;
  if (difference.a.models != difference.b.models)
    throw Failure("the models changed between the two results: a limit would be held against that",
                  {.file = options.files.front()}, "write both with one version of hemiola");
  const std::string exceeded = report::exceeded_text(difference, *view.limit);
  if (!exceeded.empty()) throw Failure(exceeded, {}, {}, ExitCode::limit_exceeded);
  if (!difference.only_a.empty())
    throw Failure("there is no result to hold against the limit for " +
                      to_text(difference.only_a.front()) + " of A",
                  {.file = options.files.back()},
                  "run B for all sizes and settings of A, or A for fewer");
  return ExitCode::done;
}

}  // namespace

void add_diff(CLI::App& app, Session& session) {
  add_verb<DiffOptions>(app, session, "diff", "where the time between two results went",
                        kDiffExamples, add_options, carry_out);
}

}  // namespace hemiola::cli
