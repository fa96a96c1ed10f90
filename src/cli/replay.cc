// hemiola replay: one rank simulated among others that do what a profile says.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <set>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "core/text.h"
#include "report/report.h"
#include "study/profile_file.h"

namespace hemiola::cli {
namespace {

constexpr const char* kExamples =
    "  hemiola run all-reduce/ring --machine dgx-h100 --size 1MiB --record rank0.csv\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB\n"
    "  hemiola replay rank3.json --machine dgx-h100 --program all-reduce/ring --size 1MiB --rank 3";

struct ReplayOptions {
  std::string profile;
  MachineOptions machine;
  ProgramOptions program;
  std::string launch = "stream";
  std::string rank, mode, table = "heap";
  std::string json;
};

void add_options(CLI::App& verb, ReplayOptions& options, Session& session) {
  const auto add = [&verb](const char* name, std::string& value, const char* description,
                           const char* type) {
    verb.add_option(name, value, description)->type_name(type);
  };
  add("PROFILE", options.profile, "CSV or JSON: docs/replay.md", "FILE");
  add_machine_options(verb, options.machine);
  add("--program", options.program.program, "what the replayed rank runs: a file or a built-in",
      "PROGRAM");
  add("--size", options.program.size, "as nccl-tests counts it: 16MiB", "SIZE");
  verb.add_option("--dtype", options.program.dtype, "as of nccl-tests")->type_name("TYPE");
  verb.add_option("--param", options.program.parameters, "of a built-in: channels=4")
      ->type_name("KEY=VALUE");
  verb.add_option("--launch", options.launch, "of kernels: stream or graph")->type_name("HOW");
  add("--rank", options.rank, "those that are simulated; by default the one to which all rows go",
      "R,...");
  add("--mode", options.mode,
      "where rows begin: at the ingress of their destination, or fabric: at the port of their "
      "source",
      "ingress|fabric");
  add("--table", options.table, "where rows wait: heap, or polled in every cycle", "heap|polled");
  add("--json", options.json, "write one JSON object", "FILE");
  verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
}

/// --rank, or the one rank to which rows go.
std::vector<int> replayed_ranks(const ReplayOptions& options, const sim::Profile& profile) {
  if (!options.rank.empty()) {
    const std::vector<int> ranks = rank_list("--rank", options.rank);
    for (const int rank : ranks) {
      if (rank >= profile.ranks)
        throw Failure(fmt::format("there is no rank {} of {}", rank, profile.ranks),
                      SourceLocation{.file = "--rank"});
    }
    return ranks;
  }
  std::set<int> ranks;
  for (const sim::ProfileRow& row : profile.rows) ranks.insert(row.destination);
  if (ranks.size() > 1)
    throw Failure(fmt::format("rows go to ranks {}", fmt::join(ranks, ", ")),
                  SourceLocation{.file = profile.file},
                  "--rank R, or --rank R,... says which of them are simulated");
  return ranks.empty() ? std::vector<int>{0} : std::vector<int>{*ranks.begin()};
}

ExitCode replay(const ReplayOptions& options, Session& session) {
  if (options.profile.empty())
    throw Failure("no profile is given", {}, "hemiola run ... --record FILE writes one");
  if (options.program.program.empty())
    throw Failure("no program is given", SourceLocation{.file = "--program"},
                  "what the replayed rank runs: --program all-reduce/ring");
  check_output("--json", options.json);
  Notices notices(session.quiet);
  EngineOptions engine;
  engine.launch = options.launch;
  sim::Options how = engine_options(engine, 0);
  const sim::Profile profile = study::read_profile(read_file(options.profile), options.profile);
  how.replay = &profile;
  how.watched = replayed_ranks(options, profile);
  const std::string mode = options.mode.empty()
                               ? std::string()
                               : choice_value("--mode", options.mode, {"ingress", "fabric"});
  if (mode == "ingress" && profile.at_ports)
    throw Failure("the rows of this profile begin at ports", SourceLocation{.file = "--mode"},
                  "without --mode they do");
  how.at_ports = mode == "fabric";
  how.table = choice_value("--table", options.table, {"heap", "polled"}) == "polled"
                  ? sim::TableKind::polled
                  : sim::TableKind::heap;
  const Settings settings = one_setting(options.machine.set);
  const machine::Machine machine = load_machine_with_gpus(options.machine, settings);
  notices.show(machine.warnings);
  const DataType type = data_type_value(options.program.dtype);
  const std::vector<Bytes> sizes = requested_sizes(options.program);
  const std::optional<Bytes> wanted =
      sizes.empty() ? std::nullopt : std::optional<Bytes>(sizes.front());
  const program::Program loaded =
      load_program(options.program.program, options.program, machine.ranks(), &machine, wanted);
  notices.show(loaded.warnings);
  const Bytes size = wanted ? *wanted : default_size(loaded, type);
  const program::Program program = program::bind(loaded, &machine, {.size = size, .type = type});
  sim::Result result;
  {
    Progress progress(session);
    progress.doing("replaying " + program.name);
    how.monitor = &session.monitor;
    result = sim::simulate(machine, program, how);
  }
  const report::Run head{
      .command = session.command,
      .machine = machine.name + (settings.empty() ? "" : " " + to_text(settings)),
      .program = program.name,
      .engine = "line",
      .launch = options.launch,
      .bound_program = &program};
  const std::int64_t flags =
      result.counters.at("requests.polls") + result.counters.at("requests.packet_retries");
  std::cout << fmt::format(
      "# machine  {}\n# program  {}, {}\n# profile  {}, {} rows; rank {} of {} simulated\n"
      "#\n#{:>13}{:>13}{:>13}{:>13}\n#{:>13}\n{:>14.3f}{:>13}{:>13}{:>13}\n",
      head.machine, program.name, to_string(size), profile.file, profile.rows.size(),
      fmt::join(how.watched, ","), profile.ranks, "time", "flag reads", "other reads", "stores",
      "(us)", static_cast<double>(result.time.fs) * 1e-9, flags,
      result.counters.at("requests.loads"), result.counters.at("requests.stores"));
  if (!options.json.empty()) write_file(options.json, report::to_json(head, {result}));
  return ExitCode::done;
}

}  // namespace

void add_replay(CLI::App& app, Session& session) {
  CLI::App* verb = add_verb(app, "replay",
                            "what one GPU sees when others write to it on a timetable", kExamples);
  const auto options = std::make_shared<ReplayOptions>();
  add_options(*verb, *options, session);
  verb->callback([options, &session] {
    session.action = [options, &session] { return replay(*options, session); };
  });
}

}  // namespace hemiola::cli
