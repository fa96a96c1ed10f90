// hemiola check: is a program complete, free of races and of waits that cannot end?
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "report/report.h"
#include "study/preparation.h"
#include "verify/execute.h"
#include "verify/verify.h"

namespace hemiola::cli {
namespace {

constexpr const char* kExamples =
    "  hemiola check all-reduce/ring --machine dgx-h100 --size 16MiB --param protocol=ll\n"
    "  hemiola check plan.json --data --seed 7 --rounds 10";

struct CheckOptions {
  MachineOptions machine;
  ProgramOptions program;
  bool data = false;
  verify::ExecuteOptions execute;
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

class Checker {
 public:
  Checker(const CheckOptions& options, Session& session)
      : options_(options), execute_(options.execute), notices_(session), progress_(session) {
    execute_.monitor = &session.monitor;
  }

  ExitCode run() {
    const std::vector<std::string> names = program_names(options_.program.program);
    load_machine_if_given();
    ExitCode worst = ExitCode::done;
    for (std::size_t i = 0; i < names.size(); ++i) {
      progress_.parts(static_cast<std::int64_t>(i), std::ssize(names), "programs");
      worst = std::max(worst, check_program(names[i]));
    }
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
    // Threads on a plan that orders too little would race themselves.
    if (!options_.data || code != ExitCode::done) return code;
    progress_.doing("running " + name);
    const verify::Execution execution = verify::execute(plan, execute_);
    report::print_execution(std::cout, execution, "");
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
      plan = plan::make(name, count, parameter_values(options_.program.parameters),
                        machine_ ? &*machine_ : nullptr);
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
    const program::Program program =
        load_program(name, options_.program, ranks, machine_ ? &*machine_ : nullptr,
                     sizes.empty() ? MiB(1) : sizes.front());
    notices_.show(program.warnings);
    if (sizes.empty()) {
      sizes = {default_size(program, type)};
      notices_.note("no --size is given: " + to_string(sizes.front()));
    }
    ExitCode worst = ExitCode::done;
    for (const Bytes asked : sizes) {
      const Bytes size =
          options_.program.round_size ? study::round_up(program, {asked, type, op}) : asked;
      if (size != asked) notices_.note(study::rounding_note(asked, size, program.name));
      progress_.doing("checking " + name + " at " + to_string(size));
      const program::Program bound =
          program::bind(program, machine_ ? &*machine_ : nullptr, {size, type, op});
      notices_.show(bound.warnings);
      const verify::Proof proof = verify::check(bound);
      std::cout << name << " at " << to_string(size);
      if (machine_) std::cout << " on " << machine_->name;
      std::cout << '\n';
      report::print_proof(std::cout, proof, "");
      worst = std::max(worst, code_of(proof.verdict));
      if (!run_here) continue;
      progress_.doing("running " + name + " at " + to_string(size));
      const verify::Execution execution = verify::execute(bound, execute_);
      report::print_execution(std::cout, execution, "");
      worst = std::max(worst, code_of(execution.outcome));
    }
    return worst;
  }

  const CheckOptions& options_;
  verify::ExecuteOptions execute_;
  Notices notices_;
  Progress progress_;
  std::optional<machine::Machine> machine_;
};

}  // namespace

void add_check(CLI::App& app, Session& session) {
  CLI::App* verb =
      add_verb(app, "check", "prove a program right, or show how it goes wrong", kExamples);
  const auto options = std::make_shared<CheckOptions>();
  add_program_options(*verb, options->program);
  add_machine_options(*verb, options->machine);
  CLI::Option* data = verb->add_flag("--data", options->data,
                                     "run it here too, on real data: a thread for each workgroup");
  verb->add_option("--seed", options->execute.seed, "of the data and the delays (1)")->needs(data);
  verb->add_option("--rounds", options->execute.rounds, "runs in a row without a reset (3)")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(data);
  verb->add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
  verb->callback([options, &session] {
    session.action = [options, &session] { return Checker(*options, session).run(); };
  });
}

}  // namespace hemiola::cli
