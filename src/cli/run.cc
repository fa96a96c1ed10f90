// hemiola run: how long a program takes on a machine, and where the time goes.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "core/text.h"
#include "report/report.h"
#include "sim/simulate.h"
#include "study/preparation.h"
#include "study/profile_file.h"
#include "verify/verify.h"

namespace hemiola::cli {
namespace {

constexpr const char* kRunExamples =
    "  hemiola run all-reduce/ring --machine dgx-h100 --sizes 1KiB:1GiB:x2 --csv ring.csv\n"
    "  hemiola run plan.json --machine dgx-h100 --size 16MiB --set gpu.l2.size=25MiB,50MiB \\\n"
    "      --json result.json";

/// The options of `run` as they were typed.
struct RunOptions {
  MachineOptions machine;
  ProgramOptions program;
  EngineOptions engine;
  std::string skew;
  std::string threads = "1";
  std::string seed = "0";
  std::string json, csv, trace, trace_lines, record;
  std::string record_rank = "0", record_at = "ingress";
  bool no_check = false;
};

void add_options(CLI::App& verb, RunOptions& options, Session& session) {
  add_program_options(verb, options.program);
  add_machine_options(verb, options.machine);
  const auto add = [&verb](const char* name, std::string& value, const char* description,
                           const char* type) {
    verb.add_option(name, value, description)->type_name(type)->capture_default_str();
  };
  add_engine_options(verb, options.engine, "measured repetitions; 0: one cold run");
  add("--skew", options.skew, "later starts of rank 0, 1, ...: 0ns,5us", "TIMES");
  add("--threads", options.threads, "threads of the engine", "N");
  add("--seed", options.seed, "seed of random choices", "N");
  verb.add_flag("--no-check", options.no_check, "do not check the program first");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per size", "FILE");
  add("--trace", options.trace, "write a timeline for ui.perfetto.dev", "FILE");
  add("--trace-lines", options.trace_lines, "requests too, in a window of time", "T0:T1");
  add("--record", options.record, "write what comes in at a rank's GPU, for 'replay'", "FILE");
  add("--record-rank", options.record_rank, "of which rank, or ranks", "R,...");
  add("--record-at", options.record_at, "ingress of that GPU, or the port of whoever sends",
      "ingress|port");
  verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
}

/// The same, understood.
struct Plan {
  std::vector<Settings> combinations;
  std::vector<std::string> programs;
  std::vector<Bytes> sizes;  ///< empty: the default of each program
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  sim::Options options;
  std::pair<Time, Time> trace_window{};
  std::vector<int> record_ranks;
  bool record_at_ports = false;
};

Plan understand(const RunOptions& options, Notices& notices) {
  check_output("--json", options.json);
  check_output("--csv", options.csv);
  check_output("--trace", options.trace);
  check_output("--record", options.record);
  Plan plan;
  plan.programs = program_names(options.program.program);
  plan.combinations = setting_combinations(options.machine.set);
  plan.sizes = requested_sizes(options.program);
  plan.type = data_type_value(options.program.dtype);
  plan.op = reduce_op_value(options.program.op);
  plan.options = engine_options(options.engine, 0);
  if (plan.options.warmup > 0 && plan.options.iterations == 0) {
    throw Failure("a warm-up needs measured repetitions after it",
                  SourceLocation{.file = "--warmup"}, "add --iterations N");
  }
  if (!options.skew.empty()) plan.options.skew = skew_values(options.skew);
  plan.options.threads = static_cast<int>(count_value("--threads", options.threads, 1, 4096));
  if (plan.options.threads > 1 && plan.options.engine != sim::Engine::line)
    notices.note("only the line engine uses more than one thread");
  if (count_value("--seed", options.seed, 0, INT64_MAX) > 0) {
    notices.note("--seed has no effect: nothing in the engines is random");
  }
  if (!options.trace_lines.empty()) {
    if (options.trace.empty()) {
      throw Failure("a window of requests needs a trace to stand in",
                    SourceLocation{.file = "--trace-lines"}, "add --trace FILE");
    }
    plan.trace_window = window_value(options.trace_lines);
  }
  const bool several = plan.sizes.size() * plan.combinations.size() > 1;
  for (const auto& [option, file] :
       {std::pair("--trace", &options.trace), std::pair("--record", &options.record)}) {
    if (several && !file->empty())
      throw Failure(std::string(option) + " is of one run, not of several",
                    SourceLocation{.file = option}, "give one --size and one value of each --set");
  }
  plan.record_ranks = rank_list("--record-rank", options.record_rank);
  plan.record_at_ports =
      choice_value("--record-at", options.record_at, {"ingress", "port"}) == "port";
  return plan;
}

/// What one machine made of all sizes.
struct Table {
  std::string machine;  ///< its name and what was set
  std::vector<sim::Result> results;
  std::vector<std::string> winners;  ///< by result: the built-in that won
  std::vector<std::string> remarks;  ///< how the others did
};

class Runner {
 public:
  Runner(const RunOptions& options, Session& session)
      : options_(options),
        session_(session),
        notices_(session),
        plan_(understand(options, notices_)) {}

  ExitCode run() {
    {
      Progress progress(session_);
      progress_ = &progress;
      for (const Settings& settings : plan_.combinations) tables_.push_back(run_machine(settings));
      progress_ = nullptr;
    }
    for (const Table& table : tables_) print(table);
    write_files();
    return ExitCode::done;
  }

 private:
  Table run_machine(const Settings& settings);
  program::Program load(const std::string& name, const machine::SharedMachine& machine, Bytes size);
  void run_size(const machine::SharedMachine& machine, Bytes size, const Settings& settings,
                Table& table);
  sim::Result run_one(const program::Bound& bound);
  sim::Result simulate(const program::Bound& bound, sim::Options options);
  void record(const program::Bound& bound);
  std::string check(const program::Bound& bound);
  void check_record_ranks(const program::Program& program) const;
  Bytes rounded(const machine::SharedMachine& machine, Bytes size, Table& table);
  void begin_part(const std::vector<Bytes>& sizes, Bytes size);
  void begin_program(std::size_t number);
  std::vector<Bytes> sizes_on(const machine::SharedMachine& machine);
  report::Run head(const Table& table) const;
  std::string program_name(const std::vector<std::string>& winners) const;
  void print(const Table& table) const;
  void write_files() const;

  const RunOptions& options_;
  Session& session_;
  Notices notices_;
  Plan plan_;
  Progress* progress_ = nullptr;
  double share_begin_ = 0, share_end_ = 0;  ///< of all runs: the present size
  std::int64_t parts_done_ = 0;
  std::vector<Table> tables_;
  std::optional<program::Bound> sample_;  ///< for the head of the tables
  std::string trace_text_, record_text_;
};

Table Runner::run_machine(const Settings& settings) {
  const machine::SharedMachine machine = load_machine_with_gpus(options_.machine, settings);
  notices_.show(machine->warnings);
  Table table{.machine = machine->name + (settings.empty() ? "" : " " + to_text(settings))};
  const std::vector<Bytes> sizes = sizes_on(machine);
  std::set<Bytes> done;  // two sizes may be rounded to one
  for (const Bytes asked : sizes) {
    begin_part(sizes, asked);
    const Bytes size = options_.program.round_size ? rounded(machine, asked, table) : asked;
    if (done.insert(size).second) run_size(machine, size, settings, table);
  }
  return table;
}

/// The smallest size from `size` on that all programs take, those apart that cannot be loaded.
Bytes Runner::rounded(const machine::SharedMachine& machine, Bytes size, Table& table) {
  const Bytes asked = size;
  std::string last;  // who asked for more
  bool settled = false;
  while (!settled) {  // a program may be another one at another size
    settled = true;
    for (const std::string& name : plan_.programs) {
      try {
        const program::Program program = load(name, machine, size);
        const Bytes next = study::round_up(program, {size, plan_.type, plan_.op});
        if (next == size) continue;
        size = next;
        last = program.name;
        settled = false;
      } catch (const Failure& failure) {
        if (plan_.programs.size() == 1 || failure.code() != ExitCode::bad_input) throw;
      }
    }
  }
  if (size != asked) table.remarks.push_back(study::rounding_note(asked, size, last));
  return size;
}

/// A size takes time in proportion to it, and some for each.
void Runner::begin_part(const std::vector<Bytes>& sizes, Bytes size) {
  constexpr double kEach = 256 << 10;  // bytes
  double all = 0;
  for (const Bytes other : sizes) all += static_cast<double>(other.count) + kEach;
  const double share = (static_cast<double>(size.count) + kEach) / all /
                       static_cast<double>(plan_.combinations.size());
  share_begin_ = share_end_;
  share_end_ += share;
  progress_->parts(parts_done_++, std::ssize(sizes) * std::ssize(plan_.combinations), "runs");
}

/// Each of several programs takes as long as another.
void Runner::begin_program(std::size_t number) {
  const double each = (share_end_ - share_begin_) / static_cast<double>(plan_.programs.size());
  const double begin = share_begin_ + each * static_cast<double>(number);
  progress_->part(begin, begin + each);
}

program::Program Runner::load(const std::string& name, const machine::SharedMachine& machine,
                              Bytes size) {
  progress_->doing("making " + name);
  program::Program program =
      load_program(name, options_.program, machine->ranks(), machine, size, session_.monitor.stop);
  notices_.show(program.warnings);
  study::check_skew(plan_.options.skew, program.ranks, {.file = "--skew"});
  check_record_ranks(program);
  return program;
}

void Runner::check_record_ranks(const program::Program& program) const {
  if (options_.record.empty()) return;
  for (const int rank : plan_.record_ranks) {
    if (rank >= program.ranks)
      throw Failure(
          "there is no rank " + std::to_string(rank) + " of " + std::to_string(program.ranks),
          SourceLocation{.file = "--record-rank"});
  }
}

std::vector<Bytes> Runner::sizes_on(const machine::SharedMachine& machine) {
  if (!plan_.sizes.empty()) return plan_.sizes;
  Bytes size{};
  for (const std::string& name : plan_.programs) {
    try {
      size = std::max(size, default_size(load(name, machine, MiB(1)), plan_.type));
    } catch (const Failure&) {
      if (plan_.programs.size() == 1) throw;
    }
  }
  notices_.note("no --size is given: " + to_string(size));
  return {size};
}

/// Runs every program at one size and keeps the fastest.
void Runner::run_size(const machine::SharedMachine& machine, Bytes size, const Settings& settings,
                      Table& table) {
  struct Run {
    sim::Result result;
    program::Bound bound;
  };
  std::optional<Run> best;
  std::optional<Failure> first_failure;
  std::string others;
  const auto remark = [&others](const std::string& name, const std::string& text) {
    others += (others.empty() ? "" : ", ") + name + ' ' + text;
  };
  for (std::size_t i = 0; i < plan_.programs.size(); ++i) {
    const std::string& name = plan_.programs[i];
    begin_program(i);
    try {
      const program::Program program = load(name, machine, size);
      program::Bound bound = program::bind(program, machine, {size, plan_.type, plan_.op});
      notices_.show(bound.warnings());
      Run run{run_one(bound), std::move(bound)};
      if (best && run.result.time >= best->result.time) {
        remark(program.name, to_string(run.result.time));
        continue;
      }
      if (best) remark(best->bound.name(), to_string(best->result.time));
      best = std::move(run);
    } catch (const Failure& failure) {
      // One built-in of several may not fit this machine or size; a wrong one is never passed over.
      if (plan_.programs.size() == 1 || failure.code() != ExitCode::bad_input) throw;
      remark(name, "cannot: " + failure.diagnostics().items().front().message);
      if (!first_failure) first_failure = failure;
    }
  }
  if (!best) throw *first_failure;
  if (!options_.trace.empty()) {
    report::PerfettoTrace trace(*machine, plan_.trace_window.first, plan_.trace_window.second);
    sim::Options options = plan_.options;
    options.trace = &trace;
    simulate(best->bound, options);
    trace_text_ = trace.serialize();
  }
  if (!options_.record.empty()) record(best->bound);
  best->result.settings = {settings.begin(), settings.end()};
  if (plan_.programs.size() > 1) {
    best->result.settings["program"] = best->bound.name();
    table.remarks.push_back(to_string(size) + ": " + best->bound.name() + ' ' +
                            to_string(best->result.time) + " is the fastest of " +
                            std::to_string(plan_.programs.size()) + "; " + others);
  }
  table.winners.push_back(best->bound.name());
  table.results.push_back(std::move(best->result));
  sample_ = std::move(best->bound);
}

/// What came in at some ranks' GPUs.
void Runner::record(const program::Bound& bound) {
  sim::Profile profile;
  sim::Options options = plan_.options;
  options.record = &profile;
  options.watched = plan_.record_ranks;
  options.at_ports = plan_.record_at_ports;
  simulate(bound, options);
  const bool json = options_.record.ends_with(".json");
  record_text_ = json ? study::write_profile_json(profile) : study::write_profile_csv(profile);
}

/// As far as the progress line is to say.
std::string name_of_run(const program::Bound& bound) {
  return bound.name() + " at " + to_string(bound.size()) + " on " + bound.machine()->name;
}

sim::Result Runner::run_one(const program::Bound& bound) {
  std::string checked = "skipped";
  if (!options_.no_check) {
    progress_->doing("checking " + name_of_run(bound));
    checked = check(bound);
  }
  sim::Result result = simulate(bound, plan_.options);
  result.checked = checked;
  return result;
}

sim::Result Runner::simulate(const program::Bound& bound, sim::Options options) {
  progress_->doing("simulating " + name_of_run(bound));
  options.monitor = &session_.monitor;
  return sim::simulate(bound, options);
}

/// Proves the program right or throws with the exit code of what is wrong.
std::string Runner::check(const program::Bound& bound) {
  const verify::Proof proof = verify::check(bound);
  if (proof.verdict == verify::Verdict::wrong || proof.verdict == verify::Verdict::deadlock) {
    report::print_proof(std::cout, proof);
    const bool deadlock = proof.verdict == verify::Verdict::deadlock;
    throw Failure("the program is wrong and was not simulated",
                  SourceLocation{.file = bound.source()}, "--no-check simulates it all the same",
                  deadlock ? ExitCode::deadlock : ExitCode::wrong_program);
  }
  notices_.show(proof.warnings);
  for (const std::string& reason : proof.reasons) notices_.note("checked in part: " + reason);
  return proof.verdict == verify::Verdict::proven ? "full" : "partial";
}

std::string Runner::program_name(const std::vector<std::string>& winners) const {
  const bool same = std::all_of(winners.begin(), winners.end(),
                                [&](const std::string& name) { return name == winners.front(); });
  return same ? winners.front() : options_.program.program + " (the fastest built-in of each size)";
}

report::Run Runner::head(const Table& table) const {
  return {.command = session_.command,
          .machine = table.machine,
          .program = program_name(table.winners),
          .engine = options_.engine.engine,
          .launch = options_.engine.launch,
          .bound = sample_};
}

void Runner::print(const Table& table) const {
  report::print_table(std::cout, head(table), table.results);
  for (const std::string& remark : table.remarks) std::cout << "# " << remark << '\n';
  if (!session_.quiet) report::print_attribution(std::cout, table.results.back());
  if (&table != &tables_.back()) std::cout << '\n';
}

void Runner::write_files() const {
  Table all = tables_.front();
  for (std::size_t i = 1; i < tables_.size(); ++i) {
    const Table& table = tables_[i];
    all.results.insert(all.results.end(), table.results.begin(), table.results.end());
    all.winners.insert(all.winners.end(), table.winners.begin(), table.winners.end());
  }
  // Several machines stand in one file: what sets them apart is in each result's settings.
  if (tables_.size() > 1) all.machine = options_.machine.machine;
  const report::Run run = head(all);
  if (!options_.json.empty()) write_file(options_.json, report::to_json(run, all.results));
  if (!options_.csv.empty()) write_file(options_.csv, report::to_csv(run, all.results));
  if (!options_.trace.empty()) write_file(options_.trace, trace_text_);
  if (!options_.record.empty()) write_file(options_.record, record_text_);
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  CLI::App* verb =
      add_verb(app, "run", "how long a program takes on a machine, and why", kRunExamples);
  const auto options = std::make_shared<RunOptions>();
  add_options(*verb, *options, session);
  verb->callback([options, &session] {
    session.action = [options, &session] { return Runner(*options, session).run(); };
  });
}

}  // namespace hemiola::cli
