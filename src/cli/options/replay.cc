#include "cli/options/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/lists.h"

namespace hemiola::cli {

void add_replay_options(CLI::App& verb, ReplayOptions& options, Session& /*session*/) {
  const auto add = [&verb](const char* name, std::string& value, const char* description,
                           const char* type) {
    verb.add_option(name, value, description)->type_name(type);
  };
  verb.add_option(
          "PROFILE", options.profiles,
          "a profile (CSV or JSON: docs/replay.md), or traces of all ranks: Kineto, rocprof")
      ->type_name("FILE");
  add("--describe", options.describe,
      "no replay: what a profile for this program has to have, buffers, flags and sizes",
      "PROGRAM");
  add_machine_options(verb, options.machine);
  add("--program", options.program.program, "what the replayed rank runs: a file or a built-in",
      "PROGRAM");
  add("--size", options.program.size, "as nccl-tests counts it: 16MiB", "SIZE");
  verb.add_flag("--round-size", options.program.round_size,
                "for a size that the program cannot take, the next one that it can");
  AddOptions{verb}.read(
      "--dtype", {},
      [&options](const std::string& text) { options.program.dtype = data_type_value(text); },
      "as of nccl-tests", "TYPE");
  verb.add_option("--param", options.program.parameters, "of a built-in: channels=4")
      ->type_name("KEY=VALUE");
  verb.add_option("--launch", options.launch, "of kernels: stream or graph")->type_name("HOW");
  add("--rank", options.rank,
      "those that are simulated; by default those of the recording, or the one to which all rows "
      "go",
      "R,...");
  add("--mode", options.mode,
      "where rows begin: at the ingress of their destination, or fabric: at their source's port",
      "ingress|fabric");
  add("--answers", options.answers,
      "to what it asks of others: recorded, by rows; live, worked out anew; auto: recorded while "
      "this is the recorded run",
      "auto|recorded|live");
  verb.add_option("--delay", options.delays,
                  "what these ranks do comes later: 3=5us, 1,4-6=2us, all=1us (repeatable)")
      ->type_name("PEER=TIME");
  add("--table", options.table, "where rows wait: heap, or polled in every cycle", "heap|polled");
  add("--traffic", options.traffic, "more writes of peers, by pattern (YAML or JSON)", "FILE");
  verb.add_flag("--isolate", options.isolate, "what each peer's traffic alone costs");
  verb.add_option("--threads", options.threads, "replays of --isolate that run at a time")
      ->type_name("N");
  add("-o,--output", options.save,
      "write the profile, with traces imported, delays and traffic added; of --describe: all rows",
      "FILE");
  verb.add_flag("--partial", options.partial, "traces: some ranks are missing");
  add("--kernels", options.kernels, "rocprof: whose ends are flags", "NAME|NAME");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per row of the table", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
  add("--trace", options.trace, "write a timeline for ui.perfetto.dev", "FILE");
  add("--trace-lines", options.trace_lines, "requests too, in a window of time", "T0:T1");
}

void check_replay_options(const ReplayOptions& options) {
  if (!options.describe.empty()) {
    if (!options.profiles.empty() || !options.program.program.empty())
      throw Failure("describes a program, and replays no profile",
                    SourceLocation{.file = "--describe"},
                    "--describe PROGRAM --machine M --size S, without PROFILE and --program");
    return;
  }
  if (options.profiles.empty() && options.traffic.empty())
    throw Failure("no profile is given", {},
                  "hemiola run ... --record FILE writes one; or --traffic FILE");
  if (options.isolate && options.traffic.empty())
    throw Failure("which traffic?", SourceLocation{.file = "--isolate"}, "add --traffic FILE");
  if (!options.trace_lines.empty() && options.trace.empty())
    throw Failure("a window of requests needs a trace to stand in",
                  SourceLocation{.file = "--trace-lines"}, "add --trace FILE");
  const bool several = setting_combinations(options.machine.set).size() > 1;
  if (several && (!options.trace.empty() || options.isolate))
    throw Failure("is of one replay, not of several",
                  SourceLocation{.file = options.isolate ? "--isolate" : "--trace"},
                  "give one value of each --set");
}

sim::Options replay_engine(const ReplayOptions& options, Session& session) {
  sim::Options how;
  how.launch = launch_value(options.launch);
  how.at_ports = choice_value("--mode", options.mode, {"ingress", "fabric"}) == "fabric";
  how.table = choice_value("--table", options.table, {"heap", "polled"}) == "polled"
                  ? sim::TableKind::polled
                  : sim::TableKind::heap;
  const std::string answers =
      choice_value("--answers", options.answers, {"auto", "recorded", "live"});
  how.answers = answers == "auto"       ? sim::Answers::automatic
                : answers == "recorded" ? sim::Answers::recorded
                                        : sim::Answers::live;
  how.monitor = &session.monitor;
  return how;
}

std::vector<std::pair<int, Time>> delay_values(const std::vector<std::string>& texts, int ranks,
                                               const std::vector<int>& simulated) {
  const auto is_simulated = [&](int rank) {
    return std::ranges::find(simulated, rank) != simulated.end();
  };
  const SourceLocation where{.file = "--delay"};
  std::vector<std::pair<int, Time>> delays;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos)
      throw Failure(fmt::format("'{}' is not PEER=TIME", text), where,
                    "--delay 3=5us, --delay 1,4-6=2us or --delay all=1us");
    const Time time = read_time(text.substr(equals + 1), where);
    const std::string who = text.substr(0, equals);
    std::vector<int> peers;
    if (who == "all") {
      for (int rank = 0; rank < ranks; ++rank)
        if (!is_simulated(rank)) peers.push_back(rank);
    } else {
      peers = rank_list("--delay", who);
    }
    for (const int peer : peers) {
      if (peer >= ranks)
        throw Failure(fmt::format("there is no rank {} of {}", peer, ranks), where);
      if (is_simulated(peer))
        throw Failure(
            fmt::format("rank {} is simulated: only what the others do can be late", peer), where,
            "the others' rows have their rank as 'source'");
      delays.emplace_back(peer, time);
    }
  }
  return delays;
}

std::vector<int> replayed_ranks(const ReplayOptions& options, const sim::Profile& profile) {
  std::set<int> destinations;
  for (const sim::ProfileRow& row : profile.rows) destinations.insert(row.destination);
  if (!options.rank.empty()) {
    std::vector<int> ranks = rank_list("--rank", options.rank);
    for (const int rank : ranks) {
      if (rank >= profile.ranks)
        throw Failure(fmt::format("there is no rank {} of {}", rank, profile.ranks),
                      SourceLocation{.file = "--rank"});
    }
    const bool any =
        std::ranges::any_of(ranks, [&](int rank) { return destinations.contains(rank); });
    if (!any && !destinations.empty() && !profile.recorded.known())
      throw Failure(fmt::format("no row of the profile goes to rank {}", fmt::join(ranks, ",")),
                    SourceLocation{.file = profile.file},
                    fmt::format("rows go to rank {}", fmt::join(destinations, ",")));
    return ranks;
  }
  if (profile.recorded.known()) return profile.recorded.ranks;
  if (destinations.size() > 1)
    throw Failure(fmt::format("rows go to ranks {}", fmt::join(destinations, ", ")),
                  SourceLocation{.file = profile.file},
                  "--rank R, or --rank R,... says which of them are simulated");
  return destinations.empty() ? std::vector<int>{0} : std::vector<int>{*destinations.begin()};
}

}  // namespace hemiola::cli
