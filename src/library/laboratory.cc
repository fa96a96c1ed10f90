#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "hemiola/experiment.h"
#include "hemiola/parts/registry.h"
#include "library/checker.h"
#include "library/convert.h"
#include "library/implementations.h"
#include "library/linked.h"
#include "library/named.h"
#include "library/watching.h"
#include "study/laboratory/experiment.h"
#include "study/laboratory/fastest.h"
#include "study/laboratory/job_run.h"
#include "study/support/task_pool.h"

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

/// Of a collective without an algorithm, at a size that all of its built-ins take.
study::Outcome fastest_of(study::Laboratory& laboratory, study::Experiment inner,
                          const std::vector<std::string>& names, const Watching& watching) {
  const machine::SharedMachine machine = laboratory.machine(inner.machine);
  const auto load = [&](const std::string& name, Bytes size) {
    study::Experiment one = inner;
    one.subject = name;
    one.size = size;
    one.round_size = true;
    return laboratory.program(one, machine, watching.inner);
  };
  inner.size = inner.size
                   ? study::rounded_for_all(
                         names, inner.round_size ? study::Rounding::up : study::Rounding::none,
                         {*inner.size, inner.type, inner.op}, load)
                         .size
                   : study::default_size_of_all(names, inner.type, load);
  std::vector<study::Experiment> candidates(names.size(), inner);
  for (std::size_t i = 0; i < names.size(); ++i) candidates[i].subject = names[i];
  study::Fastest found = study::find_fastest(laboratory, candidates, watching.inner);
  found.fastest.notices.push_back(
      {.severity = Severity::note, .message = found.remark(names.size()), .where = {}, .hint = {}});
  return std::move(found.fastest);
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
  return outcome_of([&] { return fastest_of(self_->inner, inner, program.built_ins, watching); });
}

std::vector<Point> Laboratory::run_all(std::span<const Experiment> experiments, int threads,
                                       const Watch& watch) {
  std::vector<std::optional<Point>> points(experiments.size());
  using Brought = std::pair<std::size_t, Point>;
  std::mutex mutex;
  const Watch each{.stop = watch.stop,
                   .on_step = watch.on_step ? [&](const std::string& step) {
                     const std::lock_guard lock(mutex);
                     watch.on_step(step);
                   } : watch.on_step};
  study::TaskPool<Brought>(threads, points.size())
      .run(
          [&](std::size_t, std::size_t task) -> Brought {
            try {
              return {task, {.outcome = run(experiments[task], each)}};
            } catch (const Failure&) {
              return {task, {.failure = std::current_exception()}};
            }
          },
          [&](std::vector<Brought> brought, const std::vector<std::size_t>&) {
            for (auto& [task, point] : brought) points[task] = std::move(point);
          },
          watch.stop);
  std::vector<Point> all;
  for (std::optional<Point>& point : points) {
    if (!point) throw Interrupted();
    all.push_back(*std::move(point));
  }
  return all;
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
