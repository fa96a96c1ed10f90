// hemiola run: how long a program takes on a machine, and where the time goes.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/fused_program.h"
#include "cli/options/inputs.h"
#include "cli/verbs/astra.h"
#include "cli/verbs/iteration.h"
#include "cli/verbs/network.h"
#include "core/expansion.h"
#include "core/text.h"
#include "report/page.h"
#include "report/report.h"
#include "report/run_page.h"
#include "sim/result/profile.h"
#include "study/laboratory/job_run.h"
#include "study/laboratory/run_tables.h"
#include "study/profiles/profile_file.h"
#include "workload/scheduler/fold.h"
#include "workload/trace_reader.h"

namespace hemiola::cli {
namespace {

constexpr const char* kRunExamples =
    "  hemiola run all-reduce/ring --machine dgx-h100 --sizes 1KiB:1GiB:x2 --csv ring.csv\n"
    "  hemiola run plan.json --machine dgx-h100 --size 16MiB --set gpu.l2.size=25MiB,50MiB \\\n"
    "      --json result.json\n"
    "  hemiola run trace.%d.et --machine dgx-h100 --report iteration.html   # what each rank did\n"
    "  hemiola run rank0.pt.trace.json.gz --machine dgx-h100 --replicate 8 --without '*norm*'";

/// The options of `run` as they were typed.
struct RunOptions {
  MachineOptions machine;
  ProgramOptions program;
  EngineOptions engine;
  std::string skew;
  std::string threads = "1";
  std::string seed = "0";
  std::string json, csv, trace, trace_lines, record, report;
  std::string record_rank, record_at;
  bool no_check = false, round_down = false;
  // Of traces.
  IterationOptions iteration;
  bool engine_given = false, lenient = false;
  std::string groups, replicate;
  std::vector<std::string> astra;
  std::string network;
};

void add_options(CLI::App& verb, RunOptions& options, Session& session) {
  add_program_options(verb, options.program);
  add_promise_option(verb, options.program);
  verb.get_option("PROGRAM")->description(
      "a file (MSCCL++ JSON, MSCCL XML, also .gz), a built-in (all-reduce/ring, auto/nccl), a\n"
      "collective (all-reduce): all its built-ins; or traces of an iteration (Chakra, PyTorch, "
      "Kineto):\n"
      "a file, folder, archive, prefix of PREFIX.<rank>.et, or name.%d.et (docs/traces.md)");
  verb.get_option("--sizes")->description(
      "a range 1KiB:1GiB:x2, or a list 1KiB,1MiB; of a trace: a file with bytes of its calls");
  add_machine_options(verb, options.machine);
  verb.add_flag("--round-down", options.round_down,
                "for a size that the program cannot take, the next smaller one: as nccl-tests do")
      ->excludes("--round-size");
  const TextOptions add(verb);
  add_engine_options(verb, options.engine, "measured repetitions; 0: one cold run");
  add("--skew", options.skew, "later starts of rank 0, 1, ...: 0ns,5us", "TIMES");
  add("--threads", options.threads, "threads of the engine", "N");
  add("--seed", options.seed, "seed of random choices", "N");
  verb.add_flag("--no-check", options.no_check, "do not check the program first");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per size", "FILE");
  add("--trace", options.trace, "write a timeline for ui.perfetto.dev", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
  add("--trace-lines", options.trace_lines, "requests too, in a window of time", "T0:T1");
  add("--record", options.record, "write what comes in at a rank's GPU, for 'replay'", "FILE");
  add("--record-rank", options.record_rank, "of which rank, or ranks; else of rank 0", "R,...");
  add("--record-at", options.record_at,
      "ingress of that GPU (else it is), or the port of whoever sends", "ingress|port");
  add_iteration_options(verb, options.iteration);
  verb.add_option("--astra", options.astra,
                  "inputs of ASTRA-sim 2.x: its own model, and ours beside it (docs/astra.md)")
      ->type_name("workload=PREFIX system=FILE network=FILE [memory=FILE] [groups=FILE] ...");
  add("--network", options.network,
      "the messages of a plan over ns-3's network (docs/ns3.md), lossless or with queues",
      "ns-3[:QUEUE,ack]");
  verb.add_flag("--lenient", options.lenient,
                "of a trace: what can be left out of a damaged one is, and counted");
  add("--groups", options.groups, "of a trace: its process groups, if not beside it", "FILE");
  add("--replicate", options.replicate,
      "of a trace of one rank, or a text that does not say it: so many ranks do the same", "N");
  verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
}

IterationOptions iteration_options(const RunOptions& options) {
  IterationOptions iteration = options.iteration;
  if (options.engine_given) iteration.engine = options.engine.engine;
  iteration.launch = options.engine.launch;
  iteration.json = options.json;
  iteration.csv = options.csv;
  iteration.trace = options.trace;
  iteration.report = options.report;
  return iteration;
}

/// A workload is scheduled above the engines: what is said of one program's run has no meaning
/// there, and what is said of workloads none for a program.
void refuse_typed(const CLI::App& verb, const std::vector<const char*>& names, const char* message,
                  const char* hint) {
  for (const char* name : names)
    if (verb.count(name) > 0) throw Failure(message, {.file = name}, hint);
}

void refuse_options_of_engines(const CLI::App& verb) {
  refuse_typed(
      verb,
      {"--warmup", "--iterations", "--skew", "--threads", "--seed", "--no-check", "--one-host",
       "--no-fold", "--trace-lines", "--record", "--record-rank", "--record-at"},
      "is of one program's run, and this is a workload",
      "--job FILE writes its launches as a job, which takes it");
}

/// What shares an iteration out among processes.
const std::vector<const char*>& sharing_options() {
  static const std::vector<const char*> all{"--parts", "--slurm", "--slurm-script",
                                            "--slurm-option"};
  return all;
}

void refuse_options_of_workloads(const CLI::App& verb) {
  std::vector<const char*> all{"--detail",  "--collectives", "--compute",       "--scale-compute",
                               "--without", "--job",         "--no-contention", "--lenient",
                               "--groups",  "--replicate"};
  all.insert(all.end(), sharing_options().begin(), sharing_options().end());
  refuse_typed(verb, all, "is of workloads, and this is a program", "docs/workloads.md");
}

/// Whether it can only be meant as a trace: what is wrong with it the reader of traces says.
bool is_meant_as_trace(const std::string& input) {
  std::error_code ignored;
  const std::string start = read_start(input);  // an archive is one, though it cannot be unpacked
  const bool is_archive = recognise(start) == Format::binary && is_readable_start(start);
  return is_archive || workload::is_trace(input) || input.find("%d") != std::string::npos ||
         std::filesystem::is_directory(input, ignored);
}

/// What is neither text nor a trace.
void refuse_binary(const std::string& input) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(input, ignored)) return;
  const Format format = recognise(read_start(input));
  if (format == Format::binary)
    throw Failure(fmt::format("is {}: neither a program nor a trace", describe(format)),
                  {.file = input},
                  "programs are text (docs/inputs.md); of traces docs/traces.md says what is read");
}

/// A trace of a workload (docs/traces.md) has calls of its own.
ExitCode run_trace(const RunOptions& options, Session& session) {
  ProgramOptions of_programs = options.program;
  of_programs.sizes.clear();  // a file, here
  refuse_options_of_programs(of_programs, "trace");
  workload::TraceRequest request{.path = options.program.program,
                                 .lenient = options.lenient,
                                 .sizes = options.program.sizes,
                                 .groups = options.groups};
  if (!options.replicate.empty())
    request.replicate = static_cast<int>(count_value("--replicate", options.replicate, 1, 1 << 20));
  return run_iteration_verb(
      std::make_shared<const workload::Workload>(workload::fold(workload::read_workload(request))),
      options.machine, iteration_options(options), session);
}

ExitCode run_astra(const RunOptions& options, Session& session) {
  IterationOptions iteration = iteration_options(options);
  const bool only = iteration.engine == "astra";
  if (only) iteration.engine = "fluid";
  return run_astra_verb({.files = options.astra,
                         .workload = options.program.program,
                         .lenient = options.lenient,
                         .only = only},
                        options.machine, iteration, session);
}

ExitCode run_network(const CLI::App& verb, const RunOptions& options, Session& session) {
  refuse_typed(verb,
               {"--engine", "--launch", "--warmup", "--iterations", "--skew", "--threads", "--seed",
                "--no-check", "--one-host", "--no-fold", "--csv", "--trace", "--trace-lines",
                "--report", "--record", "--record-rank", "--record-at", "--round-size"},
               "is of programs on GPUs, and --network runs the messages of a plan", "docs/ns3.md");
  return run_network_verb(options.network, options.machine, options.program, options.json, session);
}

/// The same, understood.
struct Plan {
  study::RunRequest request;
  std::pair<Time, Time> trace_window{};
  std::vector<int> record_ranks;
  bool record_at_ports = false;
};

void understand_recording(const RunOptions& options, Plan& plan) {
  for (const auto& [option, given] : {std::pair("--record-rank", &options.record_rank),
                                      std::pair("--record-at", &options.record_at)}) {
    if (options.record.empty() && !given->empty())
      throw Failure("says what is recorded, and nothing is", SourceLocation{.file = option},
                    "add --record FILE");
  }
  plan.record_ranks =
      rank_list("--record-rank", options.record_rank.empty() ? "0" : options.record_rank);
  if (!options.record.empty()) plan.request.recorded = plan.record_ranks;
  plan.record_at_ports =
      !options.record_at.empty() &&
      choice_value("--record-at", options.record_at, {"ingress", "port"}) == "port";
}

Plan understand(const RunOptions& options, Notices& notices) {
  check_output("--json", options.json);
  check_output("--csv", options.csv);
  check_output("--trace", options.trace);
  check_output("--record", options.record);
  check_output("--report", options.report);
  if (!options.report.empty()) report::page::require_rendering();
  Plan plan;
  study::RunRequest& request = plan.request;
  request.asked_for = options.program.program;
  if (!is_job_file(options.program.program))
    request.programs = program_names(options.program.program);
  if (is_fused_file(options.program.program))
    request.subject = [fused = std::make_shared<FusedPrograms>(parameters_of(options.program))](
                          const std::string& name, const machine::SharedMachine& machine) {
      return study::Subject(fused->on(name, machine));
    };
  request.combinations = setting_combinations(options.machine.set);
  request.sizes = requested_sizes(options.program);
  request.rounding = options.round_down           ? study::Rounding::down
                     : options.program.round_size ? study::Rounding::up
                                                  : study::Rounding::none;
  request.type = data_type_value(options.program.dtype);
  request.op = reduce_op_value(options.program.op);
  request.check = !options.no_check;
  request.options = engine_options(options.engine, 0);
  if (request.options.warmup > 0 && request.options.iterations == 0) {
    throw Failure("a warm-up needs measured repetitions after it",
                  SourceLocation{.file = "--warmup"}, "add --iterations N");
  }
  if (!options.skew.empty()) request.options.skew = skew_values(options.skew);
  request.options.threads = static_cast<int>(count_value("--threads", options.threads, 1, 4096));
  if (request.options.threads > 1 && request.options.engine != sim::Engine::line)
    notices.note("only the line engine uses more than one thread");
  if (count_value("--seed", options.seed, 0, INT64_MAX) > 0)
    notices.note("--seed has no effect: nothing in the engines is random");
  if (!options.trace_lines.empty()) {
    if (options.trace.empty()) {
      throw Failure("a window of requests needs a trace to stand in",
                    SourceLocation{.file = "--trace-lines"}, "add --trace FILE");
    }
    plan.trace_window = window_value(options.trace_lines);
  }
  const bool several = request.sizes.size() * request.combinations.size() > 1;
  for (const auto& [option, file] :
       {std::pair("--trace", &options.trace), std::pair("--record", &options.record)}) {
    if (several && !file->empty())
      throw Failure(std::string(option) + " is of one run, not of several",
                    SourceLocation{.file = option}, "give one --size and one value of each --set");
  }
  understand_recording(options, plan);
  request.machine = machine_choice(options.machine);
  request.parameters = parameters_of(options.program);
  request.promise = options.program.promise;
  return plan;
}

class Runner {
 public:
  Runner(const RunOptions& options, Session& session)
      : options_(options),
        session_(session),
        notices_(session),
        plan_(understand(options, notices_)) {}

  ExitCode run() {
    if (is_job_file(options_.program.program)) return run_job();
    {
      Progress progress(session_);
      watch_ = watch_of(session_, progress, notices_);
      tables_ = tables(progress);
      if (!options_.trace.empty()) trace();
      if (!options_.record.empty()) record();
      if (!options_.report.empty()) collect_extras();
    }
    for (const study::RunTable& table : tables_) print(table);
    write_files();
    return ExitCode::done;
  }

 private:
  ExitCode run_job();
  std::vector<study::RunTable> tables(Progress& progress);
  void trace();
  void record();
  void collect_extras();
  void write_report(const report::Run& run, const std::vector<sim::Result>& results) const;
  report::Run head(const study::RunTable& table) const;
  void print(const study::RunTable& table) const;
  void write_files() const;
  /// Of the last run: of several there is neither trace nor record.
  const program::Bound& last() const { return *tables_.back().last; }

  const RunOptions& options_;
  Session& session_;
  Notices notices_;
  Plan plan_;
  study::Watch watch_;
  std::vector<study::RunTable> tables_;
  std::string trace_text_, record_text_;
  report::RunPageExtras extras_;  ///< of --report
};

std::vector<study::RunTable> Runner::tables(Progress& progress) {
  try {
    return study::run_tables(
        session_.laboratory, plan_.request,
        {.experiments = watch_,
         .on_part = [&](double begin, double end) { progress.part(begin, end); },
         .on_runs = [&](std::int64_t done, std::int64_t all) { progress.parts(done, all, "runs"); },
         .on_result =
             [&](const study::RunTable& table) {
               const sim::Result& result = table.results.back();
               progress.finished(fmt::format("done: {} on {}, {} B: {:.3f} us",
                                             table.winners.back(), table.machine, result.size.count,
                                             result.time.us()));
             }});
  } catch (const study::WrongProgram& wrong) {
    report::print_proof(std::cout, wrong.proof());
    throw Failure("the program is wrong and was not simulated",
                  wrong.diagnostics().items().front().where, "--no-check simulates it all the same",
                  wrong.code());
  }
}

/// A job says sizes, types and operators of its launches itself.
ExitCode Runner::run_job() {
  refuse_options_of_programs(options_.program);
  if (plan_.request.combinations.size() > 1)
    throw Failure("a job is run with one value of each setting", {.file = "--set"});
  if (!options_.record.empty())
    throw Failure("a job is not recorded", {.file = "--record"}, "record a program that is alone");
  study::JobRequest request{.machine = plan_.request.machine,
                            .file = options_.program.program,
                            .check = plan_.request.check,
                            .options = plan_.request.options};
  if (!plan_.request.combinations.empty())
    request.machine.settings = plan_.request.combinations.front();
  std::optional<study::Outcome> outcome;
  {
    Progress progress(session_);
    watch_ = watch_of(session_, progress, notices_);
    try {
      outcome = study::run_job(session_.laboratory, request, watch_);
    } catch (const study::WrongProgram& wrong) {
      report::print_proof(std::cout, wrong.proof());
      throw Failure("the job is wrong and was not simulated",
                    wrong.diagnostics().items().front().where,
                    "--no-check simulates it all the same", wrong.code());
    }
    tables_ = {{.machine = outcome->bound.machine()->name,
                .results = {outcome->result},
                .winners = {outcome->bound.name()},
                .last = outcome->bound}};
    if (!options_.trace.empty()) trace();
    if (!options_.report.empty()) collect_extras();
  }
  const report::Run run{.command = session_.command,
                        .machine = outcome->bound.machine()->name,
                        .program = outcome->bound.name(),
                        .engine = options_.engine.engine,
                        .launch = options_.engine.launch,
                        .bound = outcome->bound};
  report::print_launches(std::cout, run, outcome->result);
  if (!session_.quiet) report::print_attribution(std::cout, outcome->result);
  if (!options_.json.empty()) write_file(options_.json, report::to_json(run, {outcome->result}));
  if (!options_.csv.empty()) write_file(options_.csv, report::to_csv(run, {outcome->result}));
  if (!options_.trace.empty()) write_file(options_.trace, trace_text_);
  write_report(run, {outcome->result});
  return ExitCode::done;
}

void Runner::trace() {
  report::PerfettoTrace trace(*last().machine(), plan_.trace_window.first,
                              plan_.trace_window.second);
  sim::Options options = plan_.request.options;
  options.trace = &trace;
  session_.laboratory.simulate(last(), options, watch_);
  trace_text_ = trace.serialize();
}

/// What the page says beside results. Of one run that is a timeline, too.
void Runner::collect_extras() {
  const sim::Options& asked = plan_.request.options;
  extras_.repetitions = asked.iterations > 0 ? asked.warmup + asked.iterations : 1;
  std::size_t runs = 0;
  for (const study::RunTable& table : tables_) {
    runs += table.results.size();
    extras_.remarks.insert(extras_.remarks.end(), table.remarks.begin(), table.remarks.end());
  }
  if (runs > 1) {
    extras_.no_timeline = "A timeline is of one run: one --size, and one value of each --set.";
  } else if (asked.engine == sim::Engine::sampled) {
    extras_.no_timeline =
        "The engine sampled leaves out most of a run, and so has no timeline; the engine line has.";
  } else {
    report::RunTimeline timeline(*last().machine());
    sim::Options options = asked;
    options.trace = &timeline;
    session_.laboratory.simulate(last(), options, watch_);
    extras_.timeline = timeline.panels();
    if (extras_.repetitions > 1) {
      extras_.timeline.left_out.insert(
          extras_.timeline.left_out.begin(),
          "All " + std::to_string(extras_.repetitions) + " repetitions are here.");
    }
  }
}

/// What came in at some ranks' GPUs.
void Runner::record() {
  sim::Profile profile;
  sim::Options options = plan_.request.options;
  options.record = &profile;
  options.watched = plan_.record_ranks;
  options.at_ports = plan_.record_at_ports;
  session_.laboratory.simulate(last(), options, watch_);
  const bool json = options_.record.ends_with(".json");
  record_text_ = json ? study::write_profile_json(profile) : study::write_profile_csv(profile);
}

report::Run Runner::head(const study::RunTable& table) const {
  return {.command = session_.command,
          .machine = table.machine,
          .program = study::program_name(plan_.request, table),
          .engine = options_.engine.engine,
          .launch = options_.engine.launch,
          .bound = last()};
}

void Runner::print(const study::RunTable& table) const {
  report::print_table(std::cout, head(table), table.results);
  for (const std::string& remark : table.remarks) std::cout << "# " << remark << '\n';
  if (!session_.quiet) report::print_attribution(std::cout, table.results.back());
  if (&table != &tables_.back()) std::cout << '\n';
}

void Runner::write_files() const {
  const study::RunTable all = study::joined_tables(plan_.request, tables_);
  const report::Run run = head(all);
  if (!options_.json.empty()) write_file(options_.json, report::to_json(run, all.results));
  if (!options_.csv.empty()) write_file(options_.csv, report::to_csv(run, all.results));
  if (!options_.trace.empty()) write_file(options_.trace, trace_text_);
  if (!options_.record.empty()) write_file(options_.record, record_text_);
  write_report(run, all.results);
}

void Runner::write_report(const report::Run& run, const std::vector<sim::Result>& results) const {
  if (options_.report.empty()) return;
  write_file(options_.report, report::page::render(report::run_page(run, results, extras_)));
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  CLI::App* verb =
      add_verb(app, "run", "how long a program takes on a machine, and why", kRunExamples);
  const auto options = std::make_shared<RunOptions>();
  add_options(*verb, *options, session);
  verb->callback([options, verb, &session] {
    options->engine_given = verb->count("--engine") > 0;
    session.action = [options, verb, &session] {
      const bool astra = !options->astra.empty() || options->engine.engine == "astra";
      if (astra || is_meant_as_trace(options->program.program)) {
        refuse_options_of_engines(*verb);
        if (!astra) return run_trace(*options, session);
        refuse_typed(*verb, sharing_options(), "is of our own model's runs",
                     "give the trace without --astra");
        return run_astra(*options, session);
      }
      refuse_options_of_workloads(*verb);
      refuse_binary(options->program.program);
      if (!options->network.empty()) return run_network(*verb, *options, session);
      return Runner(*options, session).run();
    };
  });
}

}  // namespace hemiola::cli
