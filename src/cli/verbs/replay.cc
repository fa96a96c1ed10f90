// hemiola replay: some ranks simulated among others that do what a profile, or traffic, says.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/options/replay.h"
#include "core/text.h"
#include "report/page.h"
#include "report/replay.h"
#include "report/report.h"
#include "sim/result/profile.h"
#include "sim/support/thread_team.h"
#include "study/laboratory/preparation.h"
#include "study/profiles/needed_rows.h"
#include "study/profiles/profile_file.h"
#include "study/profiles/trace_import.h"
#include "study/profiles/traffic.h"

namespace hemiola::cli {
namespace {

constexpr const char* kReplayExamples =
    "  hemiola run all-reduce/ring --machine dgx-h100 --size 1MiB --record rank0.csv\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB \\\n"
    "    --set gpu.sync.wait=spin,backoff,monitor,syncmon --csv waits.csv\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB \\\n"
    "    --delay 7=5us --trace late.pftrace\n"
    "  hemiola replay rank0.csv --machine dgx-h100 --program all-reduce/ring --size 1MiB \\\n"
    "    --traffic incast.yaml --isolate\n"
    "  hemiola replay --describe all-reduce/ring --machine dgx-h100 --size 1MiB --output "
    "flags.csv\n"
    "  hemiola replay rank-0.json rank-1.json --output profile.csv";

class Replayer {
 public:
  Replayer(const ReplayOptions& options, Session& session)
      : options_(options), session_(session), notices_(session) {}

  ExitCode run() {
    check_replay_options(options_);
    how_ = replay_engine(options_, session_);
    if (!options_.describe.empty()) return describe();
    read_profile();
    if (options_.machine.machine.empty() && !options_.save.empty() && options_.traffic.empty()) {
      how_.watched = recorded_.recorded.ranks;
      change_profile(recorded_.ranks);
      return save(profile_);
    }
    if (options_.program.program.empty() && !traces_)
      throw Failure("no program is given", SourceLocation{.file = "--program"},
                    "what the replayed rank runs: --program all-reduce/ring");
    const std::vector<Settings> combinations = setting_combinations(options_.machine.set);
    for (const Settings& settings : combinations) {
      settings_ = settings;
      load();
      if (results_.empty() && !options_.save.empty()) save(profile_);
      simulate(combinations.size() > 1);
    }
    print();
    write_files();
    return ExitCode::done;
  }

 private:
  void read_profile();
  ExitCode describe();
  ExitCode save(const sim::Profile& profile) const;
  void load();
  program::Bound load_bound(const std::string& name);
  void change_profile(int ranks);
  void simulate(bool several);
  sim::Result replay(const sim::Profile& profile, sim::TraceSink* trace = nullptr) const;
  void note_answers(const sim::Result& result);
  report::Run head() const;
  report::Replay replayed() const;
  void print();
  void print_isolated(const sim::Result& all);
  void print_measured() const;
  void write_files() const;

  const ReplayOptions& options_;
  Session& session_;
  Notices notices_;
  Settings settings_;
  std::optional<study::ImportedTraces> traces_;
  std::optional<study::Traffic> traffic_;
  sim::Profile recorded_;           ///< as it was read
  sim::Profile delayed_, profile_;  ///< the same with delays, and with traffic
  machine::SharedMachine machine_;
  std::optional<program::Bound> program_;
  sim::Options how_;
  std::vector<sim::Result> results_;  ///< by combination of settings
  nlohmann::ordered_json isolated_;
  std::string trace_text_;
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

ExitCode Replayer::save(const sim::Profile& profile) const {
  write_file(options_.save, options_.save.ends_with(".json") ? study::write_profile_json(profile)
                                                             : study::write_profile_csv(profile));
  return ExitCode::done;
}

// What a profile for a program has to have.
ExitCode Replayer::describe() {
  settings_ = one_setting(options_.machine.set);
  machine_ = session_.laboratory.machine(machine_choice(options_.machine, settings_));
  notices_.show(machine_->warnings);
  program_ = load_bound(options_.describe);
  sim::Profile ranks;
  ranks.ranks = program_->ranks();
  how_.watched = replayed_ranks(options_, ranks);
  const study::NeededRows needed = study::needed_rows(*program_, how_.watched);
  report::print_needed_rows(std::cout, head(), how_.watched, needed);
  if (!program_->groups().empty())
    notices_.note("the program has multicast groups: others cannot answer by themselves",
                  "hemiola run ... --record FILE writes answers, too");
  return options_.save.empty() ? ExitCode::done : save(needed.profile);
}

program::Bound Replayer::load_bound(const std::string& name) {
  study::Experiment experiment = experiment_of(name, options_.program);
  const std::vector<Bytes> sizes = requested_sizes(options_.program);
  if (!sizes.empty()) experiment.size = sizes.front();
  const study::SharedProgram loaded = session_.laboratory.program(experiment, machine_);
  notices_.show(loaded->warnings);
  program::Bound bound = session_.laboratory.bind(experiment, loaded, machine_);
  if (experiment.size && bound.size() != *experiment.size)
    notices_.note(study::rounding_note(*experiment.size, bound.size(), loaded->name));
  return bound;
}

void Replayer::load() {
  machine_ = session_.laboratory.machine(machine_choice(options_.machine, settings_));
  notices_.show(machine_->warnings);
  const bool measured = options_.program.program.empty();
  if (!measured) program_ = load_bound(options_.program.program);
  if (options_.profiles.empty()) recorded_.ranks = program_->ranks();
  if (!options_.profiles.empty()) how_.watched = replayed_ranks(options_, recorded_);
  change_profile(measured ? recorded_.ranks : program_->ranks());
  if (options_.profiles.empty()) how_.watched = replayed_ranks(options_, profile_);
  if (measured)
    program_ = study::measured_program(*traces_, how_.watched.front(), machine_,
                                       traces_->kernels.front().size());
}

// Rows that come later, and rows that nobody recorded.
void Replayer::change_profile(int ranks) {
  profile_ = recorded_;
  for (const auto& [peer, time] : delay_values(options_.delays, ranks, how_.watched)) {
    const auto of = [peer = peer](const sim::ProfileRow& row) { return row.source == peer; };
    if (std::ranges::none_of(profile_.rows, of))
      notices_.note(fmt::format("--delay: no row is of rank {}", peer));
    sim::delay(profile_, peer, time);
  }
  delayed_ = profile_;
  if (options_.traffic.empty()) return;
  traffic_ = study::read_traffic(read_file(options_.traffic), options_.traffic, ranks);
  study::add_traffic(profile_, *traffic_);
  if (profile_.file.empty()) profile_.file = delayed_.file = options_.traffic;
}

sim::Result Replayer::replay(const sim::Profile& profile, sim::TraceSink* trace) const {
  sim::Options how = how_;
  how.replay = &profile;
  how.trace = trace;
  if (how.answers == sim::Answers::automatic && (traffic_ || !options_.delays.empty()))
    how.answers = sim::Answers::live;
  return session_.laboratory.simulate(*program_, how, {.monitor = how.monitor});
}

void Replayer::simulate(bool several) {
  sim::Result result;
  {
    Progress progress(session_);
    progress.doing("replaying " + program_->name() +
                   (several ? " with " + to_text(settings_) : ""));
    result = replay(profile_);
    if (!options_.trace.empty()) {
      const auto window = options_.trace_lines.empty() ? std::pair<Time, Time>{}
                                                       : window_value(options_.trace_lines);
      report::PerfettoTrace trace(*machine_, window.first, window.second);
      const sim::Answers answers = std::exchange(
          how_.answers, result.answers == "recorded" ? sim::Answers::recorded : sim::Answers::live);
      replay(profile_, &trace);
      how_.answers = answers;
      trace_text_ = trace.serialize();
    }
  }
  if (several) result.settings = {settings_.begin(), settings_.end()};
  note_answers(result);
  results_.push_back(std::move(result));
}

void Replayer::note_answers(const sim::Result& result) {
  const char* const hint = "--answers recorded takes those of the profile all the same";
  const std::string live = result.answers == "relative"
                               ? "answers take as long after their requests as they took: "
                               : "answers are live, worked out anew: ";
  if (!result.live_because.empty()) notices_.note(live + result.live_because, hint);
  const bool changed = traffic_ || !options_.delays.empty();
  const bool answers = std::ranges::any_of(
      recorded_.rows, [](const sim::ProfileRow& row) { return row.is_answer(); });
  if (changed && answers && how_.answers == sim::Answers::automatic)
    notices_.note(live + (traffic_ ? "--traffic adds requests" : "--delay moves rows"), hint);
}

report::Run Replayer::head() const {
  const bool several = results_.size() > 1;
  return {
      .command = session_.command,
      .machine = machine_->name + (several || settings_.empty() ? "" : " " + to_text(settings_)),
      .program = program_->name(),
      .engine = "line",
      .launch = options_.launch,
      .bound = program_};
}

report::Replay Replayer::replayed() const {
  return {.run = head(),
          .profile = profile_.file,
          .rows = profile_.rows.size(),
          .ranks = how_.watched,
          .of = profile_.ranks};
}

void Replayer::print() {
  report::print_replays(std::cout, replayed(), results_);
  const auto live = [](const sim::Result& result) { return result.answers != "recorded"; };
  const auto lives = std::ranges::count_if(results_, live);
  if (lives > 0 && lives < std::ssize(results_))
    notices_.note("rows with recorded and with live answers differ in these, too",
                  "--answers live treats all rows alike");
  if (traces_ && options_.program.program.empty()) print_measured();
  if (!session_.quiet) {
    for (const sim::Result& result : results_) {
      std::cout << "#\n";
      if (!result.settings.empty())
        std::cout << "# " << to_text({result.settings.begin(), result.settings.end()}) << '\n';
      report::print_attribution(std::cout, result);
      report::print_peer_waits(std::cout, result);
    }
  }
  if (options_.isolate) print_isolated(results_.front());
}

void Replayer::write_files() const {
  if (!options_.json.empty()) {
    auto json = nlohmann::ordered_json::parse(report::to_json(head(), results_));
    if (options_.isolate) json["isolate"] = isolated_;
    write_file(options_.json, json.dump(1) + "\n");
  }
  if (!options_.csv.empty()) write_file(options_.csv, report::replays_to_csv(results_));
  if (!options_.trace.empty()) write_file(options_.trace, trace_text_);
  if (!options_.report.empty())
    write_file(options_.report, report::page::render(report::replay_page(replayed(), results_)));
}

// The same program among the same rows, with no traffic and with that of one peer at a time.
void Replayer::print_isolated(const sim::Result& all) {
  const auto cost = [](Time with, Time without) {
    return static_cast<double>(with.fs - without.fs) * 1e-9;
  };
  const std::vector<int> senders = study::peers_of(*traffic_);
  std::vector<Time> times(senders.size() + 1);  // of each, then of none
  {
    Progress progress(session_);
    progress.doing("replaying " + program_->name() + " with the traffic of one peer at a time");
    const auto threads = std::min(count_value("--threads", options_.threads, 1, 4096),
                                  static_cast<std::int64_t>(times.size()));
    std::atomic<std::size_t> next = 0;
    sim::ThreadTeam(static_cast<int>(threads)).run([&](int) {
      for (std::size_t i = next++; i < times.size(); i = next++) {
        sim::Profile profile = delayed_;
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
  isolated_ = {{"without_fs", none.fs},
               {"all_fs", all.time.fs},
               {"all_cost_fs", all.time.fs - none.fs},
               {"peers", std::move(peers)}};
}

void Replayer::print_measured() const {
  const auto& kernels = traces_->kernels[index(how_.watched.front())];
  std::cout << fmt::format(
      "# measured: the last of {} waits of rank {} ends after {:.3f} us; clocks are aligned within "
      "{:.3f} us\n",
      kernels.size(), how_.watched.front(), kernels.back().end.us(), traces_->alignment_error.us());
}

}  // namespace

void add_replay(CLI::App& app, Session& session) {
  add_verb<ReplayOptions>(
      app, session, "replay", "what one GPU sees when others write to it on a timetable",
      kReplayExamples, add_replay_options,
      [](const ReplayOptions& given, Session& in) { return Replayer(given, in).run(); });
}

}  // namespace hemiola::cli
