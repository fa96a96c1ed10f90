#include <algorithm>
#include <memory>
#include <utility>

#include "core/monitor.h"
#include "hemiola/experiment.h"
#include "library/contest.h"
#include "library/convert.h"
#include "library/implementations.h"
#include "library/points.h"
#include "plan/template.h"
#include "study/experiment.h"
#include "study/preparation.h"

namespace hemiola {
namespace {

study::Experiment inner_experiment(const Experiment& experiment) {
  study::Experiment inner;
  inner.machine.given = experiment.machine.implementation().machine;
  inner.parameters = experiment.program.parameters();
  if (experiment.size.count > 0) inner.size = experiment.size;
  inner.round_size = experiment.round_size;
  inner.type = experiment.type;
  inner.op = experiment.op;
  inner.check = experiment.check;
  inner.options = inner_options(experiment);
  return inner;
}

/// Of a program that is no built-in.
study::Subject subject_of(const Program::Implementation& program) {
  if (program.plan != nullptr) return program.plan;
  return program.program;
}

std::string title_of(const Machine& machine) {
  const Settings& set = machine.settings();
  return machine.name() + (set.empty() ? "" : ' ' + study::to_text(set));
}

Outcome public_outcome(const Experiment& asked, study::Outcome inner, const sim::Options& options) {
  const program::Bound& bound = inner.bound;
  Outcome outcome{.machine = title_of(asked.machine),
                  .program = bound.name(),
                  .collective = bound.collective(),
                  .ranks = bound.ranks(),
                  .experiment = asked,
                  .result = public_result(inner.result),
                  .notices = std::move(inner.notices)};
  if (inner.proof != nullptr) {
    outcome.proof = public_proof(*inner.proof, bound.name());
    outcome.proof->size = inner.proven_at;
  }
  const Settings& set = asked.machine.settings();
  inner.result.settings = {set.begin(), set.end()};
  outcome.self = std::make_shared<const Outcome::Implementation>(
      Outcome::Implementation{bound, options, std::move(inner.result)});
  return outcome;
}

/// Who watches, as the inner layers know it.
struct Watching {
  explicit Watching(const Watch& watch) {
    monitor.stop = watch.stop;
    inner.monitor = &monitor;
    if (watch.on_step)
      inner.on_step = [&watch](const study::Step& step) { watch.on_step(step.text()); };
  }
  Monitor monitor;
  study::Watch inner;
};

}  // namespace

struct Laboratory::Implementation {
  study::Laboratory inner;
};

Laboratory::Laboratory() : self_(std::make_unique<Implementation>()) {}
Laboratory::~Laboratory() = default;
Laboratory::Laboratory(Laboratory&&) noexcept = default;
Laboratory& Laboratory::operator=(Laboratory&&) noexcept = default;

Outcome Laboratory::run(const Experiment& experiment, const Watch& watch) {
  Watching watching(watch);
  const Program::Implementation& program = experiment.program.implementation();
  study::Experiment inner = inner_experiment(experiment);
  const auto run_one = [&](study::Subject subject) {
    inner.subject = std::move(subject);
    try {
      return public_outcome(experiment, self_->inner.run(inner, watching.inner), inner.options);
    } catch (const study::WrongProgram& wrong) {
      Proof proof = public_proof(wrong.proof(), experiment.program.name());
      proof.size = experiment.size;
      throw WrongProgram(wrong, std::move(proof));
    }
  };
  if (program.built_ins.empty()) return run_one(subject_of(program));
  if (program.built_ins.size() == 1) return run_one(program.built_ins.front());
  inner.size = size_for_all(self_->inner, inner, program.built_ins, watching.inner);
  return fastest(program.built_ins, *inner.size, run_one);
}

std::vector<Point> Laboratory::run_all(std::span<const Experiment> experiments, int threads,
                                       const Watch& watch) {
  return run_points(experiments, threads, watch,
                    [this](const Experiment& one, const Watch& each) { return run(one, each); });
}

namespace {

/// Proofs of one program: of its plan, if there is one that says more, and of what runs.
class Checker {
 public:
  Checker(study::Laboratory& laboratory, const CheckOptions& options)
      : laboratory_(laboratory), options_(options), watching_({.stop = options.stop}) {
    if (options.machine) inner_.machine.given = options.machine->implementation().machine;
    constexpr int kDefaultRanks = 8;
    const int ranks = options.ranks > 0 ? options.ranks : kDefaultRanks;
    if (!options.machine) inner_.machine.ranks = std::to_string(ranks);
    ranks_ = options.machine ? options.machine->ranks() : ranks;
    if (options.size.count > 0) inner_.size = options.size;
    inner_.type = options.type;
    inner_.op = options.op;
  }

  std::vector<Proof> check(const Program& program) {
    const Program::Implementation& self = program.implementation();
    inner_.parameters = program.parameters();
    if (self.plan != nullptr) check_plan(self.name, self.plan, self.plan);
    if (self.program != nullptr) check_program(self.name, self.program);
    for (const std::string& name : self.built_ins) {
      // Of a template of elements the plan says what the result has to be; its program does not.
      const plan::TemplateInfo* info = plan::find_template(name);
      if (info != nullptr && !info->in_chunks) {
        check_plan(name, made(name), name);
      } else {
        check_program(name, name);
      }
    }
    return std::move(proofs_);
  }

 private:
  std::shared_ptr<const plan::Plan> made(const std::string& name) {
    return std::make_shared<const plan::Plan>(plan::make(
        name, ranks_, inner_.parameters, inner_.machine.given.get(), {}, &watching_.monitor));
  }

  void check_plan(const std::string& name, const std::shared_ptr<const plan::Plan>& plan,
                  const study::Subject& subject) {
    watching_.monitor.leave_if_stopping();
    proofs_.push_back(public_proof(verify::check(*plan), name));
    proofs_.back().of_plan = true;
    const bool right = proofs_.back().verdict <= Verdict::partial;
    if (options_.machine && right) check_program(name, subject);
  }

  void check_program(const std::string& name, const study::Subject& subject) {
    watching_.monitor.leave_if_stopping();
    inner_.subject = subject;
    const program::Bound bound = laboratory_.prepare(inner_, watching_.inner);
    proofs_.push_back(public_proof(*laboratory_.proof(bound, {.calls = options_.calls}), name));
    proofs_.back().size = bound.size();
  }

  study::Laboratory& laboratory_;
  const CheckOptions& options_;
  Watching watching_;
  study::Experiment inner_;
  int ranks_ = 0;
  std::vector<Proof> proofs_;
};

}  // namespace

std::vector<Proof> Laboratory::check(const Program& program, const CheckOptions& options) {
  return Checker(self_->inner, options).check(program);
}

Outcome run(const Experiment& experiment, const Watch& watch) {
  return Laboratory().run(experiment, watch);
}

std::vector<Proof> check(const Program& program, const CheckOptions& options) {
  return Laboratory().check(program, options);
}

Verdict verdict_of(const std::vector<Proof>& proofs) {
  Verdict worst = Verdict::proven;
  for (const Proof& proof : proofs) worst = std::max(worst, proof.verdict);
  return worst;
}

}  // namespace hemiola
