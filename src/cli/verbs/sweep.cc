// hemiola sweep: many runs into one database.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/options/together.h"
#include "core/lists.h"
#include "core/text.h"
#include "report/sweep.h"
#include "study/laboratory/database_head.h"
#include "study/sweep/sweep_run.h"

namespace hemiola::cli {
namespace {

constexpr const char* kSweepExamples =
    "  hemiola sweep examples/sweep_algorithms/sweep.yaml --threads 2 --output all.sqlite\n"
    "  hemiola sweep --merge one.sqlite two.sqlite --output all.sqlite   # --shard 1/2 and 2/2\n"
    "A sweep that was ended in any way goes on where it was when it is called again.\n"
    "Exit code: that of the worst point (docs/sweep.md); all others are run all the same.";

struct SweepOptions {
  std::vector<std::string> inputs;
  std::string out, json, csv;
  std::string shard = "1/1";
  int threads = 1;
  bool merge = false;
  TogetherOptions together;
};

void add_options(CLI::App& verb, SweepOptions& options, Session& /*session*/) {
  verb.add_option("SWEEP", options.inputs,
                  "a YAML file: axes of values (docs/sweep.md); with --merge databases")
      ->type_name("");
  const AddOptions add(verb);
  add("-o,--output", options.out, "the database (SQLite): new, or what is there of this sweep",
      "FILE");
  add("--shard", options.shard, "every N-th point only, from the i-th on: for several hosts",
      "i/N");
  verb.add_flag("--merge", options.merge, "join the databases of shards into a new one");
  add.count("--threads", options.threads, 1, 4096, "points that are run at a time");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per point", "FILE");
  add_together(verb, options.together);
}

study::Shard shard_value(const std::string& text) {
  const SourceLocation where{.file = "--shard"};
  const std::vector<std::string> parts = split(text, '/');
  if (parts.size() != 2)
    throw Failure("'" + text + "' is not a shard", where, "1/4 is the first of four");
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t count = read_count(parts[1], 1, kMost, where);
  return {read_count(parts[0], 1, count, where), count};
}

class SweepVerb {
 public:
  SweepVerb(const SweepOptions& options, Session& session) : options_(options), session_(session) {}

  ExitCode run() {
    if (options_.out.empty())
      throw Failure("no database is given", SourceLocation{.file = "--output"},
                    "for example --output results.sqlite");
    const study::Shard shard = shard_value(options_.shard);
    if (options_.merge) {
      if (shard.count > 1)
        throw Failure("does not go with --merge", SourceLocation{.file = "--shard"});
      if (options_.inputs.empty()) throw Failure("no database is given to merge");
      study::merge_sweeps(options_.out, options_.inputs);
      return show(study::SweepDatabase(options_.out));
    }
    if (options_.inputs.size() != 1)
      throw Failure(options_.inputs.empty() ? "no sweep is given" : "more than one sweep is given",
                    {}, "give one YAML file; --merge joins databases");
    return carry_out(shard);
  }

 private:
  ExitCode carry_out(const study::Shard& shard) {
    const Together together(options_.together, session_, options_.out + ".parts");
    if (together.submitted()) return ExitCode::done;
    Progress progress(session_);
    progress.doing("reading " + options_.inputs.front());
    const study::Sweep sweep = study::read_sweep(options_.inputs.front(), &session_.registry);
    study::SweepDatabase database(options_.out, {.version = study::results_version(HEMIOLA_VERSION),
                                                 .sweep = sweep.text,
                                                 .points = std::ssize(sweep.points),
                                                 .shard = shard,
                                                 .inputs = sweep.inputs});
    session_.kept_safe = "what is done is in " + options_.out + ": the same command goes on there";
    const auto on_progress = [&](const study::SweepProgress& now) {
      progress.show(now.doing, now.share);
      session_.monitor.time_fs = now.time_fs;
      session_.monitor.line_hops = now.line_hops;
      progress.parts(now.done, now.all, "points");
    };
    Notices notices(session_);
    const std::unique_ptr<study::Parts> parts =
        together.open(study::head_of_parts(database.head()));
    study::run_sweep(sweep, database,
                     {.threads = options_.threads,
                      .strict = session_.strict,
                      .stop = session_.monitor.stop,
                      .parts = parts.get(),
                      .registry = &session_.registry,
                      .on_progress = on_progress,
                      .on_warnings = [&](const Diagnostics& found) { notices.show(found); }});
    progress.show({}, 1);  // what is printed now is the result
    return together.is_first() ? show(database) : ExitCode::done;
  }

  ExitCode show(const study::SweepDatabase& database) const {
    std::vector<study::SweepRow> rows;
    database.read([&](const study::SweepRow& row) { rows.push_back(row); });
    report::print_sweep(std::cout, options_.out, database.head(), rows);
    if (!options_.json.empty())
      write_file(options_.json, report::sweep_json(session_.command, rows));
    if (!options_.csv.empty()) write_file(options_.csv, report::sweep_csv(rows));
    return worst(rows);
  }

  /// An error of ours is worse than any of a program.
  static ExitCode worst(const std::vector<study::SweepRow>& rows) {
    ExitCode worst = ExitCode::done;
    for (const study::SweepRow& row : rows) {
      const ExitCode code = study::code_of(row.status);
      if (code == ExitCode::internal) return code;
      worst = std::max(worst, code);
    }
    return worst;
  }

  const SweepOptions& options_;
  Session& session_;
};

}  // namespace

void add_sweep(CLI::App& app, Session& session) {
  add_verb<SweepOptions>(
      app, session, "sweep", "many runs into a database", kSweepExamples, add_options,
      [](const SweepOptions& given, Session& in) { return SweepVerb(given, in).run(); });
}

}  // namespace hemiola::cli
