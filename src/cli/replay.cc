// hemiola replay: some ranks simulated among others that do what a profile, or traffic, says.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "core/text.h"
#include "report/report.h"
#include "sim/crew.h"
#include "study/profile_file.h"
#include "study/trace_import.h"
#include "study/traffic.h"

namespace hemiola::cli {
namespace {

constexpr const char* kExamples =
    "  hemiola run all-reduce/ring --machine dgx-h100 --size 1MiB --record rank0.csv\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB\n"
    "  hemiola replay rank3.json --machine dgx-h100 --program all-reduce/ring --size 1MiB --rank "
    "3\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB --set "
    "gpu.sync.wait=monitor\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB \\\n"
    "    --traffic incast.yaml --isolate\n"
    "  hemiola replay rank-0.json rank-1.json --save profile.csv";

struct ReplayOptions {
  std::vector<std::string> profiles;
  MachineOptions machine;
  ProgramOptions program;
  std::string launch = "stream";
  std::string rank, mode = "ingress", table = "heap";
  std::string traffic, save, kernels = "nccl|rccl";
  std::string threads = "1";
  bool isolate = false, partial = false;
  std::string json;
};

void add_options(CLI::App& verb, ReplayOptions& options, Session& session) {
  const auto add = [&verb](const char* name, std::string& value, const char* description,
                           const char* type) {
    verb.add_option(name, value, description)->type_name(type);
  };
  verb.add_option(
          "PROFILE", options.profiles,
          "a profile (CSV or JSON: docs/replay.md), or traces of all ranks: Kineto, rocprof")
      ->type_name("FILE");
  add_machine_options(verb, options.machine);
  add("--program", options.program.program, "what the replayed rank runs: a file or a built-in",
      "PROGRAM");
  add("--size", options.program.size, "as nccl-tests counts it: 16MiB", "SIZE");
  verb.add_flag("--round-size", options.program.round_size,
                "for a size that the program cannot take, the next one that it can");
  verb.add_option("--dtype", options.program.dtype, "as of nccl-tests")->type_name("TYPE");
  verb.add_option("--param", options.program.parameters, "of a built-in: channels=4")
      ->type_name("KEY=VALUE");
  verb.add_option("--launch", options.launch, "of kernels: stream or graph")->type_name("HOW");
  add("--rank", options.rank, "those that are simulated; by default the one to which all rows go",
      "R,...");
  add("--mode", options.mode,
      "where rows begin: at the ingress of their destination, or fabric: at their source's port",
      "ingress|fabric");
  add("--table", options.table, "where rows wait: heap, or polled in every cycle", "heap|polled");
  add("--traffic", options.traffic, "more writes of peers, by pattern (YAML or JSON)", "FILE");
  verb.add_flag("--isolate", options.isolate, "what each peer's traffic alone costs");
  verb.add_option("--threads", options.threads, "replays of --isolate that run at a time")
      ->type_name("N");
  add("--save", options.save, "write the profile, with traces imported and traffic added", "FILE");
  verb.add_flag("--partial", options.partial, "traces: some ranks are missing");
  add("--kernels", options.kernels, "rocprof: whose ends are flags", "NAME|NAME");
  add("--json", options.json, "write one JSON object", "FILE");
  verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
}

/// --rank, or the one rank to which rows go.
std::vector<int> replayed_ranks(const ReplayOptions& options, const sim::Profile& profile) {
  if (!options.rank.empty()) {
    std::vector<int> ranks = rank_list("--rank", options.rank);
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

class Replayer {
 public:
  Replayer(const ReplayOptions& options, Session& session)
      : options_(options), session_(session), notices_(session) {}

  ExitCode run() {
    if (options_.profiles.empty() && options_.traffic.empty())
      throw Failure("no profile is given", {},
                    "hemiola run ... --record FILE writes one; or --traffic FILE");
    check_output("--json", options_.json);
    check_output("--save", options_.save);
    if (options_.isolate && options_.traffic.empty())
      throw Failure("which traffic?", SourceLocation{.file = "--isolate"}, "add --traffic FILE");
    read_profile();
    if (options_.machine.machine.empty() && !options_.save.empty() && options_.traffic.empty())
      return save();
    if (options_.program.program.empty() && !traces_)
      throw Failure("no program is given", SourceLocation{.file = "--program"},
                    "what the replayed rank runs: --program all-reduce/ring");
    understand();
    load();
    if (!options_.save.empty()) save();
    simulate();
    return ExitCode::done;
  }

 private:
  void read_profile();
  ExitCode save() const;
  void understand();
  void load();
  void simulate();
  sim::Result replay(const sim::Profile& profile) const;
  void print_isolated(const sim::Result& all, nlohmann::ordered_json& json);
  void print_measured() const;

  const ReplayOptions& options_;
  Session& session_;
  Notices notices_;
  Settings settings_;
  std::optional<study::ImportedTraces> traces_;
  std::optional<study::Traffic> traffic_;
  sim::Profile recorded_, profile_;  ///< without traffic, and with it
  std::optional<machine::Machine> machine_;
  std::optional<program::Program> program_;
  sim::Options how_;
};

void Replayer::read_profile() {
  std::vector<study::NamedText> files;
  for (const std::string& name : options_.profiles) files.emplace_back(name, read_file(name));
  if (files.empty()) return;
  if (study::is_kineto(files.front().second)) {
    traces_ = study::import_kineto(files, options_.partial);
  } else if (files.size() > 1) {
    throw Failure("several files are traces of ranks, not profiles",
                  SourceLocation{.file = files[1].first}, "give one profile");
  } else if (study::is_rocprof(files.front().second)) {
    traces_ = study::import_rocprof(files.front(), options_.kernels);
  }
  if (!traces_) {
    recorded_ = study::read_profile(files.front().second, files.front().first);
    return;
  }
  recorded_ = traces_->profile;
  for (const std::string& note : traces_->notes) notices_.note(note);
  notices_.note(fmt::format("{} ranks, {} communications; clocks are aligned within {:.3f} us",
                            recorded_.ranks, traces_->kernels.front().size(),
                            traces_->alignment_error.us()));
}

ExitCode Replayer::save() const {
  const sim::Profile& profile = traffic_ ? profile_ : recorded_;
  write_file(options_.save, options_.save.ends_with(".json") ? study::write_profile_json(profile)
                                                             : study::write_profile_csv(profile));
  return ExitCode::done;
}

void Replayer::understand() {
  EngineOptions engine;
  engine.launch = options_.launch;
  how_ = engine_options(engine, 0);
  how_.at_ports = choice_value("--mode", options_.mode, {"ingress", "fabric"}) == "fabric";
  how_.table = choice_value("--table", options_.table, {"heap", "polled"}) == "polled"
                   ? sim::TableKind::polled
                   : sim::TableKind::heap;
  how_.live_answers = !options_.traffic.empty();
  how_.monitor = &session_.monitor;
}

void Replayer::load() {
  settings_ = one_setting(options_.machine.set);
  machine_ = load_machine_with_gpus(options_.machine, settings_);
  notices_.show(machine_->warnings);
  const auto watch = [&] {
    how_.watched = replayed_ranks(options_, traffic_ ? profile_ : recorded_);
  };
  if (options_.program.program.empty()) {
    watch();
    program_ = study::measured_program(*traces_, how_.watched.front(), *machine_,
                                       traces_->kernels.front().size());
  } else {
    const DataType type = data_type_value(options_.program.dtype);
    const std::vector<Bytes> sizes = requested_sizes(options_.program);
    const std::optional<Bytes> wanted =
        sizes.empty() ? std::nullopt : std::optional<Bytes>(sizes.front());
    const program::Program loaded = load_program(options_.program.program, options_.program,
                                                 machine_->ranks(), &*machine_, wanted);
    notices_.show(loaded.warnings);
    Bytes size = wanted ? *wanted : default_size(loaded, type);
    if (options_.program.round_size) size = study::round_up(loaded, {.size = size, .type = type});
    if (wanted && size != *wanted) notices_.note(study::rounding_note(*wanted, size, loaded.name));
    program_ = program::bind(loaded, &*machine_, {.size = size, .type = type});
  }
  if (options_.profiles.empty()) recorded_.ranks = program_->ranks;
  if (options_.traffic.empty()) {
    watch();
    return;
  }
  traffic_ = study::read_traffic(read_file(options_.traffic), options_.traffic, program_->ranks);
  profile_ = recorded_;
  study::add_traffic(profile_, *traffic_);
  if (profile_.file.empty()) profile_.file = recorded_.file = options_.traffic;
  watch();
}

sim::Result Replayer::replay(const sim::Profile& profile) const {
  sim::Options how = how_;
  how.replay = &profile;
  return sim::simulate(*machine_, *program_, how);
}

void Replayer::simulate() {
  const sim::Profile& profile = traffic_ ? profile_ : recorded_;
  const sim::Result result = [&] {
    Progress progress(session_);
    progress.doing("replaying " + program_->name);
    return replay(profile);
  }();
  const report::Run head{
      .command = session_.command,
      .machine = machine_->name + (settings_.empty() ? "" : " " + to_text(settings_)),
      .program = program_->name,
      .engine = "line",
      .launch = options_.launch,
      .bound_program = &*program_};
  const auto count = [&](const char* name) { return result.counters.at(name); };
  std::cout << fmt::format(
      "# machine  {}\n# program  {}, {}\n# profile  {}, {} rows; rank {} of {} is simulated\n"
      "#\n#{:>13}{:>13}{:>13}{:>13}{:>13}\n#{:>13}\n{:>14.3f}{:>13}{:>13}{:>13}{:>13}\n",
      head.machine, program_->name, to_string(program_->size), profile.file, profile.rows.size(),
      fmt::join(how_.watched, ","), profile.ranks, "time", "flag reads", "polls", "data reads",
      "stores", "(us)", result.time.us(), count("reads.flag.cu"), count("reads.poll.cu"),
      count("reads.data.cu"), count("requests.stores"));
  if (traces_ && options_.program.program.empty()) print_measured();
  nlohmann::ordered_json json;
  if (!options_.json.empty()) json = nlohmann::ordered_json::parse(report::to_json(head, {result}));
  if (options_.isolate) print_isolated(result, json);
  if (!options_.json.empty()) write_file(options_.json, json.dump(1) + "\n");
}

// The same program among the same rows, with no traffic and with that of one peer at a time.
void Replayer::print_isolated(const sim::Result& all, nlohmann::ordered_json& json) {
  const auto cost = [](Time with, Time without) {
    return static_cast<double>(with.fs - without.fs) * 1e-9;
  };
  const std::vector<int> senders = study::peers_of(*traffic_);
  std::vector<Time> times(senders.size() + 1);  // of each, then of none
  {
    Progress progress(session_);
    progress.doing("replaying " + program_->name + " with the traffic of one peer at a time");
    const auto threads = std::min(count_value("--threads", options_.threads, 1, 4096),
                                  static_cast<std::int64_t>(times.size()));
    std::atomic<std::size_t> next = 0;
    sim::Crew(static_cast<int>(threads)).run([&](int) {
      for (std::size_t i = next++; i < times.size(); i = next++) {
        sim::Profile profile = recorded_;
        if (i < senders.size()) study::add_traffic(profile, *traffic_, senders[i]);
        times[i] = replay(profile).time;
      }
    });
  }
  const Time none = times.back();
  std::cout << fmt::format(
      "#\n# without traffic {:.3f} us; what the traffic of each peer "
      "adds\n#{:>13}{:>13}\n#{:>26}\n",
      none.us(), "peer", "cost", "(us)");
  auto peers = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < senders.size(); ++i) {
    std::cout << fmt::format("{:>14}{:>13.3f}\n", senders[i], cost(times[i], none));
    peers.push_back(
        {{"peer", senders[i]}, {"time_fs", times[i].fs}, {"cost_fs", times[i].fs - none.fs}});
  }
  std::cout << fmt::format("{:>14}{:>13.3f}\n", "all", cost(all.time, none));
  if (options_.json.empty()) return;
  json["isolate"] = {{"without_fs", none.fs},
                     {"all_fs", all.time.fs},
                     {"all_cost_fs", all.time.fs - none.fs},
                     {"peers", std::move(peers)}};
}

void Replayer::print_measured() const {
  const auto& kernels = traces_->kernels[static_cast<std::size_t>(how_.watched.front())];
  std::cout << fmt::format(
      "# measured: the last of {} waits of rank {} ends after {:.3f} us; clocks are aligned within "
      "{:.3f} us\n",
      kernels.size(), how_.watched.front(), kernels.back().end.us(), traces_->alignment_error.us());
}

}  // namespace

void add_replay(CLI::App& app, Session& session) {
  CLI::App* verb = add_verb(app, "replay",
                            "what one GPU sees when others write to it on a timetable", kExamples);
  const auto options = std::make_shared<ReplayOptions>();
  add_options(*verb, *options, session);
  verb->callback([options, &session] {
    session.action = [options, &session] { return Replayer(*options, session).run(); };
  });
}

}  // namespace hemiola::cli
