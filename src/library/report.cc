#include "hemiola/report.h"

#include <algorithm>
#include <ostream>

#include "core/monitor.h"
#include "library/convert.h"
#include "library/implementations.h"
#include "report/report.h"

namespace hemiola {
namespace {

/// The name that all of them have, or one that says that they differ.
std::string common(std::span<const Outcome> outcomes, std::string Outcome::*name,
                   const std::string& otherwise) {
  const auto differs = [&](const Outcome& other) { return other.*name != outcomes.front().*name; };
  return std::ranges::any_of(outcomes, differs) ? otherwise : outcomes.front().*name;
}

report::Run head_of(std::span<const Outcome> outcomes, const std::string& command = {}) {
  const Outcome& last = outcomes.back();
  const sim::Options& options = last.self->options;
  const std::string asked = last.experiment.program.name();
  return {.command = command,
          .machine = common(outcomes, &Outcome::machine, last.experiment.machine.name()),
          .program =
              common(outcomes, &Outcome::program, asked + " (the fastest built-in of each size)"),
          .engine = std::string(sim::name_of(options.engine)),
          .launch = std::string(sim::name_of(options.launch)),
          .bound = last.self->bound};
}

std::vector<sim::Result> results_of(std::span<const Outcome> outcomes) {
  std::vector<sim::Result> all;
  for (const Outcome& outcome : outcomes) all.push_back(outcome.self->result);
  return all;
}

}  // namespace

void print_table(std::ostream& out, std::span<const Outcome> outcomes) {
  if (outcomes.empty()) return;
  const report::Run head = head_of(outcomes);
  if (outcomes.size() == 1 && !outcomes.front().result.launches.empty())
    report::print_launches(out, head, outcomes.front().self->result);
  else
    report::print_table(out, head, results_of(outcomes));
}

void print_table(std::ostream& out, const Outcome& outcome) {
  print_table(out, std::span(&outcome, 1));
}

void print_attribution(std::ostream& out, const Outcome& outcome) {
  report::print_attribution(out, outcome.self->result);
}

void print_proof(std::ostream& out, const Proof& proof) {
  report::print_proof(out, inner_proof(proof), "");
  if (!proof.sizes) return;
  const verify::SizeClass sizes{proof.sizes->min, proof.sizes->max.value_or(Bytes{INT64_MAX}),
                                proof.sizes->why_one, proof.sizes->multiple};
  report::print_sizes(out, sizes, proof.looked_at, "");
}

void print_machine(std::ostream& out, const Machine& machine) {
  report::print_machine(out, *machine.implementation().machine);
}

std::string to_json(std::span<const Outcome> outcomes, const std::string& command,
                    bool volatile_fields) {
  const report::Run head = outcomes.empty() ? report::Run{} : head_of(outcomes, command);
  return report::to_json(head, results_of(outcomes), volatile_fields);
}

std::string to_csv(std::span<const Outcome> outcomes) {
  return report::to_csv(outcomes.empty() ? report::Run{} : head_of(outcomes), results_of(outcomes));
}

std::string perfetto_trace(const Outcome& outcome, Time lines_begin, Time lines_end,
                           const Watch& watch) {
  const program::Bound& bound = outcome.self->bound;
  report::PerfettoTrace trace(*bound.machine(), lines_begin, lines_end);
  Monitor monitor;
  monitor.stop = watch.stop;
  sim::Options options = outcome.self->options;
  options.trace = &trace;
  options.monitor = &monitor;
  sim::simulate(bound, options);
  return trace.serialize();
}

}  // namespace hemiola
