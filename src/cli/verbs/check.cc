// hemiola check: is a program complete, free of races and of waits that cannot end?
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/fused_program.h"
#include "cli/options/inputs.h"
#include "cli/verbs/check_kernel.h"
#include "core/text.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/jobs/job.h"
#include "report/kernel_description.h"
#include "report/page.h"
#include "report/report.h"
#include "study/laboratory/job_file.h"
#include "study/laboratory/preparation.h"
#include "study/laboratory/size_check.h"
#include "verify/execute.h"

namespace hemiola::cli {
namespace {

constexpr const char* kCheckExamples =
    "  hemiola check all-reduce/ring --machine dgx-h100 --size 16MiB --param protocol=ll\n"
    "  hemiola check fused.py    # a Triton kernel: its order of memory, and the program that it "
    "is";

struct CheckOptions {
  MachineOptions machine;
  ProgramOptions program;
  bool data = false;
  verify::ExecuteOptions execute;
  int calls = 0;   ///< 0: again and again
  int rounds = 0;  ///< 0: as many as calls
  std::string json, trace, report;
  bool warnings_as_errors = false;
  bool allow_partial = false;
  CheckKernelOptions kernel;
};

/// Without a machine, --ranks is the number of ranks of a built-in.
int ranks_without_machine(const std::string& ranks, bool built_in, Notices& notices) {
  constexpr int kDefault = 8;
  if (ranks.empty()) {
    if (built_in) notices.note("no --ranks is given: " + std::to_string(kDefault));
    return kDefault;
  }
  const int count = rank_count_value(ranks);
  if (count == 0) {
    throw Failure("a list of ranks needs a machine to place them on",
                  SourceLocation{.file = "--ranks"}, "give a number, or --machine");
  }
  return count;
}

/// Of what is no fused file. Failure: one is given.
void refuse_trace(const CheckOptions& options) {
  if (!options.trace.empty())
    throw Failure("a trace is of a file that 'hemiola compile KERNEL.py --plan PLAN' wrote",
                  {.file = "--trace"});
}

class Checker {
 public:
  Checker(const CheckOptions& options, Session& session)
      : options_(options),
        session_(session),
        laboratory_(session.laboratory),
        execute_(options.execute),
        notices_(session),
        progress_(session) {
    execute_.monitor = &session.monitor;
    if (options.rounds > 0 && options.calls > 0 && options.rounds != options.calls)
      throw Failure(
          "--rounds are calls in a row, and --calls says " + std::to_string(options.calls),
          SourceLocation{.file = "--rounds"}, "leave one of the two out");
    const int rounds = std::max(options.rounds, options.calls);
    if (rounds > 0) execute_.rounds = rounds;
    check_.calls = options.calls;
    check_.monitor = &session.monitor;
  }

  /// A Triton kernel: its rules, and of a fused file the program that it is.
  ExitCode run_kernel() {
    const std::string& name = options_.program.program;
    const bool is_fused = is_fused_file(name) && options_.kernel.kernel.empty();
    if (!is_fused)
      refuse_typed(session_, {"--report"}, "is for programs, and this is a kernel",
                   "--json FILE has what breaks which rule");
    const KernelCheck rules = check_kernel(name, options_.kernel, is_fused);
    if (!is_fused) refuse_trace(options_);
    ExitCode worst = rules.code;
    std::string program;
    if (is_fused && worst == ExitCode::done) {
      load_machine_if_given();
      worst = prove_fused(name);
      program = report::check_json(session_.command, machine_name(), checks_);
    }
    write_page();
    if (!options_.json.empty())
      write_file(options_.json, report::rules_json(session_.command, name, rules.reports, program));
    return worst;
  }

  /// On a machine with the workgroups that it has places for; else with one for each tile, where
  /// accesses are ordered least, and with one alone, which waits longest.
  ExitCode prove_fused(const std::string& name) {
    if (!parameters_of(options_.program).empty() || !options_.program.size.empty())
      throw Failure("a fused file has its sizes in itself, and nothing of it is chosen any more",
                    {.file = name}, "leave --size, --param and --executor out");
    progress_.doing("reading " + name);
    FusedPrograms fused;
    study::SharedProgram program;
    try {
      program = fused.on(name, machine_);
    } catch (const compile::NotReadBack& failure) {
      Diagnostics unread;
      const Diagnostic& why = failure.diagnostics().items().front();
      unread.warning(why.message + "; only the rules were checked", why.where, why.hint);
      std::cout << "check: the program is not proven: " << why.message << '\n';
      notices_.show(unread);
      return options_.warnings_as_errors ? ExitCode::wrong_program : ExitCode::not_proven;
    }
    notices_.show(program->warnings);
    const program::BindOptions at{program->fixed_size, options_.program.dtype, ReduceOp::sum};
    asked_for_ = true;
    ExitCode worst = check_size(name, program, at, options_.data);
    if (worst == ExitCode::done)
      std::cout
          << "values: some elements of every tile are what reference() says, with values that "
             "were drawn\n";
    if (machine_ == nullptr && !is_wrong(worst) && fused.is_persistent(name))
      worst =
          study::worse(worst, check_size(name + ", one workgroup", fused.with(name, 1), at, false));
    if (!is_wrong(worst) && !options_.trace.empty())
      worst = study::worse(worst, compare_trace(name));
    return worst;
  }

  ExitCode compare_trace(const std::string& name) {
    const compile::TraceComparison found =
        compile::compare_trace(name, read_file(name), options_.trace, read_file(options_.trace));
    std::cout << fmt::format(
        "{}: {} tiles, {} waits and {} signals of {} calls on {} ranks; {}\n", options_.trace,
        found.tiles, found.waits, found.signals, found.calls, found.ranks,
        found.difference.empty() ? "the text says the same" : "the text differs");
    if (found.difference.empty()) return ExitCode::done;
    std::cout << fmt::format("{}:{}: error: {}\n", name, found.line, found.difference);
    return ExitCode::wrong_program;
  }

  ExitCode run() {
    const bool is_job = is_job_file(options_.program.program, session_);
    std::vector<std::string> names =
        is_job ? std::vector<std::string>{} : program_names(options_.program.program, session_);
    load_machine_if_given();
    if (machine_ == nullptr && names.size() > 1)
      std::erase_if(names, [&](const std::string& name) {
        const bool needs = plan::needs_machine(name, &session_.registry);
        if (needs)
          notices_.note(name + " needs a machine: it is left out", "name one with --machine");
        return needs;
      });
    ExitCode worst = is_job ? check_job() : ExitCode::done;
    for (std::size_t i = 0; i < names.size(); ++i) {
      progress_.parts(static_cast<std::int64_t>(i), std::ssize(names), "programs");
      worst = study::worse(worst, check_program(names[i]));
    }
    const bool warned = std::ranges::any_of(
        checks_, [](const report::Checked& check) { return !check.proof.warnings.empty(); });
    if (options_.warnings_as_errors && warned && !is_wrong(worst)) {
      std::cout << "warnings are errors here\n";
      worst = ExitCode::wrong_program;
    }
    if (!options_.json.empty())
      write_file(options_.json, report::check_json(session_.command, machine_name(), checks_));
    write_page();
    return worst;
  }

 private:
  std::string machine_name() const { return machine_ ? machine_->name : ""; }

  void write_page() {
    if (!options_.report.empty())
      write_file(options_.report, report::page::render(report::check_page(
                                      session_.command, machine_name(), checks_)));
  }

  ExitCode check_job() {
    refuse_options_of_programs(session_);
    if (machine_ == nullptr)
      throw Failure("a job needs a machine: its launches name ranks of it", {.file = "--machine"},
                    "add --machine NAME");
    if (options_.data)
      throw Failure("the launches of a job are not run on real data", {.file = "--data"},
                    "check the programs that it launches by themselves");
    const std::string& name = options_.program.program;
    progress_.doing("checking " + name);
    const program::Bound bound =
        program::link(study::read_job(name, machine_, laboratory_), machine_);
    const auto proof = laboratory_.proof(bound, check_);
    std::cout << bound.name() << ": " << bound.linked()->launches.size() << " launches on "
              << bound.ranks() << " GPUs, a job\n";
    report::print_proof(std::cout, *proof, "");
    checks_.push_back({.program = name, .proof = *proof});
    return study::exit_code_of(proof->verdict);
  }

  void load_machine_if_given() {
    const Settings settings = one_setting(options_.machine.set);
    if (!options_.machine.machine.empty()) {
      machine_ = laboratory_.machine(machine_choice(options_.machine, settings));
      notices_.show(machine_->warnings);
      return;
    }
    refuse_typed(session_, {"--set", "--gpu"}, "needs a machine", "add --machine NAME");
  }

  /// A plan file, or a template of elements (whose program has computes).
  ExitCode check_plan(const std::string& name, const plan::Plan& plan) {
    progress_.doing("checking " + name);
    const verify::Proof proof = verify::check(plan, check_.monitor);
    std::cout << name << ": " << name_of(plan.collective) << " on " << plan.ranks
              << " ranks, a plan\n";
    report::print_proof(std::cout, proof, "");
    const ExitCode code = study::exit_code_of(proof.verdict);
    checks_.push_back(
        {.program = name, .plan = true, .of_elements = plan.of_elements(), .proof = proof});
    // Threads on a plan that orders too little would race themselves.
    if (!options_.data || is_wrong(code)) return code;
    progress_.doing("running " + name);
    const verify::Execution execution = verify::execute(plan, execute_);
    report::print_execution(std::cout, execution, "");
    checks_.back().data = execution;
    return study::worse(code, code_of(execution.outcome));
  }

  static bool is_wrong(ExitCode code) {
    return code != ExitCode::done && code != ExitCode::not_proven;
  }

  static ExitCode code_of(verify::Outcome outcome) {
    if (outcome == verify::Outcome::right) return ExitCode::done;
    return outcome == verify::Outcome::hang ? ExitCode::deadlock : ExitCode::wrong_program;
  }

  ExitCode check_program(const std::string& name) {
    std::optional<plan::Plan> plan = read_plan_file(name, session_);
    // Of a template of elements the plan says what the result has to be; its program does not.
    if (const plan::TemplateInfo* info = plan::find_template(name, &session_.registry);
        info && !info->in_chunks) {
      const int count = machine_ ? machine_->ranks()
                                 : ranks_without_machine(options_.machine.ranks, true, notices_);
      plan = plan::make(name, count, parameters_of(options_.program), machine_.get(), {}, nullptr,
                        &session_.registry);
    }
    if (!plan || !options_.program.promise.empty()) return check_bound(name, options_.data);
    const ExitCode code = check_plan(name, *plan);
    if (machine_ && !is_wrong(code)) return study::worse(code, check_bound(name, false));
    if (!options_.program.size.empty())
      notices_.note("a plan is proven for all sizes: --size is for its program, with --machine");
    return code;
  }

  /// The program, of a plan the one it is lowered to: with a machine that its workgroups, queues
  /// and semaphores fit on it.
  ExitCode check_bound(const std::string& name, bool run_here) {
    study::Experiment experiment = experiment_of(name, options_.program);
    if (machine_ == nullptr)
      experiment.machine.ranks = std::to_string(ranks_without_machine(
          options_.machine.ranks, program::is_built_in(name, &session_.registry), notices_));
    progress_.doing("reading " + name);
    std::vector<Bytes> sizes = requested_sizes(options_.program);
    const auto load = [&](Bytes size, bool is_guess) {
      study::Experiment at = experiment;
      at.size = size;
      at.round_size = at.round_size || is_guess;
      return laboratory_.program(at, machine_);
    };
    study::SharedProgram program = load(sizes.empty() ? MiB(1) : sizes.front(), sizes.empty());
    notices_.show(program->warnings);
    asked_for_ = !sizes.empty();
    if (sizes.empty()) {
      sizes = {study::default_size(*program, experiment.type)};
      notices_.note("no --size is given: " + to_string(sizes.front()));
    }
    ExitCode worst = ExitCode::done;
    for (const Bytes asked : sizes) {
      // A built-in may have chosen its schedule for the size.
      if (asked != sizes.front() && program::is_built_in(name, &session_.registry))
        program = load(asked, false);
      program::BindOptions at{asked, experiment.type, experiment.op};
      if (experiment.round_size) at.size = study::round_up(*program, at);
      if (at.size != asked) notices_.note(study::rounding_note(asked, at.size, program->name));
      worst = study::worse(worst, check_size(name, program, at, run_here));
    }
    return worst;
  }

  std::string title(const std::string& name, Bytes size) const {
    return name + " at " + to_string(size) + (machine_ ? " on " + machine_->name : "");
  }

  ExitCode check_size(const std::string& name, const study::SharedProgram& program,
                      const program::BindOptions& at, bool run_here) {
    const study::SizeCheck found = study::check_size(
        laboratory_, program, machine_, at, check_,
        {.on_step =
             [&](const study::Step& step) {
               progress_.doing("checking " + name + " at " + to_string(step.bound->size()));
             },
         .on_notices = [&](const study::Notices& notices) { notices_.show(notices); }});
    report::Checked check{.program = name,
                          .size = at.size,
                          .proof = *found.proof,
                          .sizes = found.sizes,
                          .beside = found.beside};
    std::cout << title(name, at.size) << '\n';
    report::print_proof(std::cout, check.proof, "");
    if (check.sizes) report::print_sizes(std::cout, *check.sizes, check.beside, "");
    ExitCode worst = study::exit_code_of(check.proof.verdict);
    if (run_here) {
      progress_.doing("running " + name + " at " + to_string(at.size));
      check.data = verify::execute(found.bound, execute_);
      report::print_execution(std::cout, *check.data, "");
      worst = study::worse(worst, code_of(check.data->outcome));
    }
    checks_.push_back(std::move(check));
    if (found.wrong_beside) worst = study::worse(worst, tell_of(name, *found.wrong_beside));
    return worst;
  }

  /// Of a size that nobody asked for, where one was: a warning. Else the program is as wrong as it
  /// is there.
  ExitCode tell_of(const std::string& name, const study::SizeCheck::Other& other) {
    if (!asked_for_) {
      std::cout << title(name, other.size) << '\n';
      report::print_proof(std::cout, *other.proof, "");
      checks_.push_back({.program = name, .size = other.size, .proof = *other.proof});
      return study::exit_code_of(other.proof->verdict);
    }
    Diagnostics found;
    found.warning("at " + to_string(other.size) + " it is wrong: " + other.proof->summary,
                  {.file = name},
                  "--size " + std::to_string(other.size.count) + "B shows the counterexample");
    std::cout << found.render() << '\n';
    for (const Diagnostic& diagnostic : found.items())
      checks_.back().proof.warnings.warning(diagnostic.message, diagnostic.where, diagnostic.hint);
    return ExitCode::done;
  }

  const CheckOptions& options_;
  const Session& session_;
  study::Laboratory& laboratory_;
  verify::ExecuteOptions execute_;
  verify::CheckOptions check_;
  std::vector<report::Checked> checks_;
  bool asked_for_ = false;  ///< a size
  Notices notices_;
  Progress progress_;
  machine::SharedMachine machine_;  ///< null: none is given
};

ExitCode check(const CheckOptions& options, Session& session) {
  const bool is_kernel = is_kernel_file(options.program.program);
  if (!is_kernel) refuse_trace(options);
  Checker checker(options, session);
  const ExitCode code = is_kernel ? checker.run_kernel() : checker.run();
  return options.allow_partial && code == ExitCode::not_proven ? ExitCode::done : code;
}

void add_options(CLI::App& verb, CheckOptions& options, Session& session) {
  const AddOptions add(verb);
  add_program_options(verb, options.program);
  add_promise_option(verb, options.program);
  add_machine_options(verb, options.machine);
  CLI::Option* data = verb.add_flag("--data", options.data,
                                    "run it here too, on real data: a thread for each workgroup");
  verb.add_option("--seed", options.execute.seed, "of the data and the delays (1)")->needs(data);
  verb.add_option("--rounds", options.rounds, "of --data: calls in a row without a reset (3)")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(data);
  verb.add_option("--calls", options.calls,
                  "calls in a row that have to be right; 1: it is called once (default: it is "
                  "called again and again)")
      ->check(CLI::Range(1, 1'000));
  add("--json", options.json, "write one JSON object", "FILE");
  add("--report", options.report,
      "write a page with the verdicts and what goes wrong, for a browser", "FILE");
  add("--trace", options.trace,
      "of a fused file: what its kernels did in Triton's interpreter (python -m "
      "hemiola_rt FILE --trace TRACE), compared with the text",
      "TRACE");
  verb.add_flag("--warnings-as-errors", options.warnings_as_errors,
                "exit code 3 where there are warnings");
  verb.add_flag("--allow-partial", options.allow_partial,
                "exit code 0, not 6, where nothing is wrong and something is not proven");
  verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
  add("--kernel", options.kernel.kernel, "of a Python file: which kernel (all)", "NAME");
  add("--constexpr", options.kernel.constants, "of a kernel: the value of a parameter",
      "NAME=VALUE");
  add("--helper", options.kernel.helpers, "of a kernel: a file with functions that it calls",
      "FILE");
  add("--target", options.kernel.target, "of a kernel: cuda, cdna or rdna (hip: cdna)", "NAME");
  add("--triton", options.kernel.triton,
      "of a kernel: the compiler's version, 3.3 to 3.9 (all of them)", "VERSION");
  add("--protocol", options.kernel.protocol,
      "of a kernel: ranks, programs and what its parameters are", "FILE");
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  add_verb<CheckOptions>(app, session, "check", "prove a program right, or show how it goes wrong",
                         kCheckExamples, add_options, check);
}

}  // namespace hemiola::cli
