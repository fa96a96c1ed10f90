#include "library/fastest.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "study/laboratory/preparation.h"

namespace hemiola {
namespace {

/// Calls `use` with each program that can be made.
void for_each_program(study::Laboratory& laboratory, const study::Experiment& experiment,
                      const std::vector<std::string>& names, const study::Watch& watch,
                      const std::function<void(const program::Program&)>& use) {
  const machine::SharedMachine machine = laboratory.machine(experiment.machine);
  std::optional<Failure> first;
  bool any = false;
  for (const std::string& name : names) {
    study::Experiment one = experiment;
    one.subject = name;
    try {
      use(*laboratory.program(one, machine, watch));
      any = true;
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::bad_input) throw;
      if (!first) first = failure;
    }
  }
  if (!any && first) throw *first;
}

}  // namespace

Bytes size_for_all(study::Laboratory& laboratory, const study::Experiment& experiment,
                   const std::vector<std::string>& names, const study::Watch& watch) {
  study::Experiment at = experiment;
  Bytes size{};
  if (!experiment.size) {
    at.size = MiB(1);
    at.round_size = true;  // a guess
    for_each_program(laboratory, at, names, watch, [&](const program::Program& program) {
      size = std::max(size, study::default_size(program, experiment.type));
    });
    return size;
  }
  size = *experiment.size;
  bool settled = !experiment.round_size;
  while (!settled) {  // a program may be another one at another size
    settled = true;
    at.size = size;
    for_each_program(laboratory, at, names, watch, [&](const program::Program& program) {
      const Bytes next = study::round_up(program, {size, experiment.type, experiment.op});
      settled = settled && next == size;
      size = next;
    });
  }
  return size;
}

Outcome fastest(const std::vector<std::string>& names, Bytes size,
                const std::function<Outcome(const std::string&)>& run) {
  std::optional<Outcome> best;
  std::optional<Failure> first;
  std::string others;
  const auto remark = [&others](const std::string& name, const std::string& text) {
    others += (others.empty() ? "" : ", ") + name + ' ' + text;
  };
  for (const std::string& name : names) {
    try {
      Outcome outcome = run(name);
      if (best && outcome.result.time >= best->result.time) {
        remark(outcome.program, to_string(outcome.result.time));
        continue;
      }
      if (best) remark(best->program, to_string(best->result.time));
      best = std::move(outcome);
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::bad_input) throw;
      remark(name, "cannot: " + failure.diagnostics().items().front().message);
      if (!first) first = failure;
    }
  }
  if (!best) throw *first;
  best->notices.push_back({.severity = Severity::note,
                           .message = to_string(size) + ": " + best->program + ' ' +
                                      to_string(best->result.time) + " is the fastest of " +
                                      std::to_string(names.size()) + "; " + others,
                           .where = {},
                           .hint = {}});
  return *std::move(best);
}

}  // namespace hemiola
