// hemiola check: is a program complete, free of races and of waits that cannot end?
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "core/text.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "report/report.h"
#include "study/preparation.h"
#include "verify/execute.h"
#include "verify/verify.h"

namespace hemiola::cli {
namespace {

constexpr const char* kCheckExamples =
    "  hemiola check all-reduce/ring --machine dgx-h100 --size 16MiB --param protocol=ll\n"
    "  hemiola check plan.json --data --seed 7 --rounds 10";

struct CheckOptions {
  MachineOptions machine;
  ProgramOptions program;
  bool data = false;
  verify::ExecuteOptions execute;
  int calls = 0;   ///< 0: again and again
  int rounds = 0;  ///< 0: as many as calls
  std::string json;
  bool warnings_as_errors = false;
};

/// Primitives after which no further size is looked at beside the one that was asked for.
constexpr std::int64_t kCheap = 300'000;
/// Of one rank that stands for many, a primitive takes the longer the more they are.
std::int64_t cost_of(const verify::Proof& proof, int ranks) {
  const std::int64_t many = ranks / 32;
  return proof.operations * std::max<std::int64_t>(1, many * many);
}

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

class Checker {
 public:
  Checker(const CheckOptions& options, Session& session)
      : options_(options), execute_(options.execute), notices_(session), progress_(session) {
    execute_.monitor = &session.monitor;
    if (options.rounds > 0 && options.calls > 0 && options.rounds != options.calls)
      throw Failure(
          "--rounds are calls in a row, and --calls says " + std::to_string(options.calls),
          SourceLocation{.file = "--rounds"}, "leave one of the two out");
    const int rounds = std::max(options.rounds, options.calls);
    if (rounds > 0) execute_.rounds = rounds;
    check_.calls = options.calls;
    command_ = session.command;
    if (!options.json.empty()) check_output("--json", options.json);
  }

  ExitCode run() {
    const std::vector<std::string> names = program_names(options_.program.program);
    load_machine_if_given();
    ExitCode worst = ExitCode::done;
    for (std::size_t i = 0; i < names.size(); ++i) {
      progress_.parts(static_cast<std::int64_t>(i), std::ssize(names), "programs");
      worst = std::max(worst, check_program(names[i]));
    }
    const bool warned =
        std::any_of(checks_.begin(), checks_.end(),
                    [](const report::Checked& check) { return !check.proof.warnings.empty(); });
    if (options_.warnings_as_errors && warned && worst == ExitCode::done) {
      std::cout << "warnings are errors here\n";
      worst = ExitCode::wrong_program;
    }
    if (!options_.json.empty())
      write_file(options_.json,
                 report::check_json(command_, machine_ ? machine_->name : "", checks_));
    return worst;
  }

 private:
  void load_machine_if_given() {
    const Settings settings = one_setting(options_.machine.set);
    if (!options_.machine.machine.empty()) {
      machine_ = load_machine_with_gpus(options_.machine, settings);
      notices_.show(machine_->warnings);
      return;
    }
    refuse_settings_of_no_machine(options_.machine);
  }

  /// A plan file, or a template of elements (whose program has computes).
  ExitCode check_plan(const std::string& name, const plan::Plan& plan) {
    progress_.doing("checking " + name);
    const verify::Proof proof = verify::check(plan);
    std::cout << name << ": " << name_of(plan.collective) << " on " << plan.ranks
              << " ranks, a plan\n";
    report::print_proof(std::cout, proof, "");
    const ExitCode code = code_of(proof.verdict);
    checks_.push_back(
        {.program = name, .plan = true, .of_elements = plan.of_elements(), .proof = proof});
    // Threads on a plan that orders too little would race themselves.
    if (!options_.data || code != ExitCode::done) return code;
    progress_.doing("running " + name);
    const verify::Execution execution = verify::execute(plan, execute_);
    report::print_execution(std::cout, execution, "");
    checks_.back().data = execution;
    return code_of(execution.outcome);
  }

  static ExitCode code_of(verify::Verdict verdict) {
    if (verdict == verify::Verdict::wrong) return ExitCode::wrong_program;
    if (verdict == verify::Verdict::deadlock) return ExitCode::deadlock;
    return ExitCode::done;
  }
  static ExitCode code_of(verify::Outcome outcome) {
    if (outcome == verify::Outcome::right) return ExitCode::done;
    return outcome == verify::Outcome::hang ? ExitCode::deadlock : ExitCode::wrong_program;
  }

  ExitCode check_program(const std::string& name) {
    std::optional<plan::Plan> plan = read_plan_file(name);
    // Of a template of elements the plan says what the result has to be; its program does not.
    if (const plan::TemplateInfo* info = plan::find_template(name); info && !info->in_chunks) {
      const int count = machine_ ? machine_->ranks()
                                 : ranks_without_machine(options_.machine.ranks, true, notices_);
      plan = plan::make(name, count, parameter_values(options_.program.parameters), machine_.get());
    }
    if (!plan) return check_bound(name, options_.data);
    const ExitCode code = check_plan(name, *plan);
    if (machine_ && code == ExitCode::done) return check_bound(name, false);
    if (!options_.program.size.empty() || !options_.program.sizes.empty())
      notices_.note("a plan is proven for all sizes: --size is for its program, with --machine");
    return code;
  }

  /// The program, of a plan the one it is lowered to: with a machine that its workgroups, queues
  /// and semaphores fit on it.
  ExitCode check_bound(const std::string& name, bool run_here) {
    const DataType type = data_type_value(options_.program.dtype);
    const ReduceOp op = reduce_op_value(options_.program.op);
    const int ranks = machine_ ? machine_->ranks()
                               : ranks_without_machine(options_.machine.ranks,
                                                       program::is_built_in(name), notices_);
    progress_.doing("reading " + name);
    std::vector<Bytes> sizes = requested_sizes(options_.program);
    const auto load = [&](Bytes size) {
      return load_program(name, options_.program, ranks, machine_, size);
    };
    program::Program program = load(sizes.empty() ? MiB(1) : sizes.front());
    notices_.show(program.warnings);
    asked_for_ = !sizes.empty();
    if (sizes.empty()) {
      sizes = {default_size(program, type)};
      notices_.note("no --size is given: " + to_string(sizes.front()));
    }
    ExitCode worst = ExitCode::done;
    for (const Bytes asked : sizes) {
      // A built-in may have chosen its schedule for the size.
      if (asked != sizes.front() && program::is_built_in(name)) program = load(asked);
      const Bytes size =
          options_.program.round_size ? study::round_up(program, {asked, type, op}) : asked;
      if (size != asked) notices_.note(study::rounding_note(asked, size, program.name));
      worst = std::max(worst, check_size(name, program, {size, type, op}, run_here));
    }
    return worst;
  }

  std::string title(const std::string& name, Bytes size) const {
    return name + " at " + to_string(size) + (machine_ ? " on " + machine_->name : "");
  }

  ExitCode check_size(const std::string& name, const program::Program& program,
                      const program::BindOptions& options, bool run_here) {
    progress_.doing("checking " + name + " at " + to_string(options.size));
    const program::Bound bound = program::bind(program, machine_, options);
    notices_.show(bound.warnings());
    report::Checked check{.program = name, .size = options.size};
    check.proof = verify::check(bound, check_);
    std::cout << title(name, options.size) << '\n';
    report::print_proof(std::cout, check.proof, "");
    ExitCode worst = code_of(check.proof.verdict);
    std::optional<report::Checked> other;
    if (worst == ExitCode::done) {
      check.sizes = verify::size_class(program, bound, check.proof);
      if (cost_of(check.proof, bound.ranks()) <= kCheap)
        other = look_beside(check, program, bound, options);
      report::print_sizes(std::cout, *check.sizes, check.beside, "");
    }
    if (run_here) {
      progress_.doing("running " + name + " at " + to_string(options.size));
      check.data = verify::execute(bound, execute_);
      report::print_execution(std::cout, *check.data, "");
      worst = std::max(worst, code_of(check.data->outcome));
    }
    checks_.push_back(std::move(check));
    if (other) worst = std::max(worst, tell_of(*other));
    return worst;
  }

  /// Sizes at which the program does something else than at the one that was proven: the first at
  /// which it is wrong, if there is one. The classes above are joined to that of the check as long
  /// as they are right, too.
  std::optional<report::Checked> look_beside(report::Checked& check,
                                             const program::Program& program,
                                             const program::Bound& bound,
                                             const program::BindOptions& options) {
    for (const Bytes size : verify::sizes_beside(program, bound, *check.sizes)) {
      if (size > check.sizes->max) continue;
      std::optional<program::Bound> there;
      report::Checked beside = check_beside(check, program, options, size, there);
      if (!there) continue;
      if (code_of(beside.proof.verdict) != ExitCode::done) return beside;
      check.beside.push_back(size);
    }
    std::int64_t spent = cost_of(check.proof, bound.ranks());
    while (spent <= kCheap && check.sizes->why.empty() && !check.sizes->open()) {
      const Bytes size = program.next_legal_size(check.sizes->max + Bytes{1}, bound.type());
      std::optional<program::Bound> there;
      report::Checked above = check_beside(check, program, options, size, there);
      if (!there) break;
      if (code_of(above.proof.verdict) != ExitCode::done) return above;
      spent += cost_of(above.proof, bound.ranks());
      const verify::SizeClass next = verify::size_class(program, *there, above.proof);
      if (!next.why.empty()) {
        check.beside.push_back(size);
        break;
      }
      check.sizes->max = next.max;
    }
    return std::nullopt;
  }

  /// `there` stays empty where the size is none for this program: a kernel of another algorithm,
  /// too much memory.
  report::Checked check_beside(const report::Checked& check, const program::Program& program,
                               program::BindOptions options, Bytes size,
                               std::optional<program::Bound>& there) {
    progress_.doing("checking " + check.program + " at " + to_string(size));
    options.size = size;
    report::Checked beside{.program = check.program, .size = size};
    try {
      there = program::bind(program, machine_, options);
      beside.proof = verify::check(*there, check_);
    } catch (const Failure&) {
      there.reset();
    }
    return beside;
  }

  /// Of a size that nobody asked for, where one was: a warning. Else the program is as wrong as it
  /// is there.
  ExitCode tell_of(report::Checked& other) {
    if (!asked_for_) {
      std::cout << title(other.program, other.size) << '\n';
      report::print_proof(std::cout, other.proof, "");
      const ExitCode code = code_of(other.proof.verdict);
      checks_.push_back(std::move(other));
      return code;
    }
    Diagnostics found;
    found.warning("at " + to_string(other.size) + " it is wrong: " + other.proof.summary,
                  {.file = other.program},
                  "--size " + std::to_string(other.size.count) + "B shows the counterexample");
    std::cout << found.render() << '\n';
    for (const Diagnostic& diagnostic : found.items())
      checks_.back().proof.warnings.warning(diagnostic.message, diagnostic.where, diagnostic.hint);
    return ExitCode::done;
  }

  const CheckOptions& options_;
  verify::ExecuteOptions execute_;
  verify::CheckOptions check_;
  std::string command_;
  std::vector<report::Checked> checks_;
  bool asked_for_ = false;  ///< a size
  Notices notices_;
  Progress progress_;
  machine::SharedMachine machine_;  ///< null: none is given
};

}  // namespace

void add_check(CLI::App& app, Session& session) {
  CLI::App* verb =
      add_verb(app, "check", "prove a program right, or show how it goes wrong", kCheckExamples);
  const auto options = std::make_shared<CheckOptions>();
  add_program_options(*verb, options->program);
  add_machine_options(*verb, options->machine);
  CLI::Option* data = verb->add_flag("--data", options->data,
                                     "run it here too, on real data: a thread for each workgroup");
  verb->add_option("--seed", options->execute.seed, "of the data and the delays (1)")->needs(data);
  verb->add_option("--rounds", options->rounds, "of --data: calls in a row without a reset (3)")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(data);
  verb->add_option("--calls", options->calls,
                   "calls in a row that have to be right; 1: it is called once (default: it is "
                   "called again and again)")
      ->check(CLI::Range(1, 1'000));
  verb->add_option("--json", options->json, "write one JSON object")->type_name("FILE");
  verb->add_flag("--warnings-as-errors", options->warnings_as_errors,
                 "exit code 3 where there are warnings");
  verb->add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
  verb->callback([options, &session] {
    session.action = [options, &session] { return Checker(*options, session).run(); };
  });
}

}  // namespace hemiola::cli
