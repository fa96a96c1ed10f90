#include <algorithm>
#include <memory>
#include <utility>

#include "hemiola/experiment.h"
#include "hemiola/parts/registry.h"
#include "library/checker.h"
#include "library/convert.h"
#include "library/fastest.h"
#include "library/implementations.h"
#include "library/linked.h"
#include "library/named.h"
#include "library/points.h"
#include "library/watching.h"
#include "study/laboratory/experiment.h"
#include "study/laboratory/job_run.h"
#include "study/laboratory/preparation.h"

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

study::JobRequest request_of(const Job& job, const study::Experiment& inner) {
  return {.machine = inner.machine,
          .file = job.file(),
          .text = job.text(),
          .check = inner.check,
          .options = inner.options};
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

}  // namespace

struct Laboratory::Implementation {
  explicit Implementation(parts::Registry known) : registry(std::move(known)) {}

  const parts::Registry registry;
  study::Laboratory inner{&registry};
};

Laboratory::Laboratory() : Laboratory(parts::built_ins()) {}
Laboratory::Laboratory(parts::Registry registry)
    : self_(std::make_unique<Implementation>(std::move(registry))) {
  if (!self_->registry.problems().empty()) throw Failure(self_->registry.problems());
}
Laboratory::~Laboratory() = default;
Laboratory::Laboratory(Laboratory&&) noexcept = default;
Laboratory& Laboratory::operator=(Laboratory&&) noexcept = default;

Outcome Laboratory::run(const Experiment& experiment, const Watch& watch) {
  Watching watching(watch);
  const Program::Implementation& program = experiment.program.implementation();
  study::Experiment inner = inner_experiment(experiment);
  const auto outcome_of = [&](const auto& run) {
    try {
      return public_outcome(experiment, run(), inner.options);
    } catch (const study::WrongProgram& wrong) {
      Proof proof = public_proof(wrong.proof(), experiment.program.name());
      proof.size = experiment.size;
      throw WrongProgram(wrong, std::move(proof));
    }
  };
  const auto run_one = [&](study::Subject subject) {
    inner.subject = std::move(subject);
    return outcome_of([&] { return self_->inner.run(inner, watching.inner); });
  };
  if (program.job) {
    refuse_settings_of_jobs(*program.job, inner);
    return outcome_of([&] {
      return study::run_job(self_->inner, request_of(*program.job, inner), watching.inner);
    });
  }
  if (program.built_ins.empty())
    return run_one(subject_of(self_->inner, program, inner, watching.inner));
  if (program.built_ins.size() == 1) return run_one(program.built_ins.front());
  inner.size = size_for_all(self_->inner, inner, program.built_ins, watching.inner);
  return fastest(program.built_ins, *inner.size, run_one);
}

std::vector<Point> Laboratory::run_all(std::span<const Experiment> experiments, int threads,
                                       const Watch& watch) {
  return run_points(experiments, threads, watch,
                    [this](const Experiment& one, const Watch& each) { return run(one, each); });
}

Program Laboratory::program(const std::string& name_or_file, const Settings& parameters) const {
  return loaded(name_or_file, parameters, &self_->registry);
}

Plan Laboratory::plan(const std::string& name, int ranks, const Settings& parameters,
                      const std::optional<Machine>& machine) const {
  return made(self_->inner, name, ranks, parameters, machine, nullptr);
}

std::vector<Proof> Laboratory::check(const Program& program, const CheckOptions& options) {
  return check_with(self_->inner, program, options);
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
