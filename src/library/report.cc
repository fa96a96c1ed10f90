#include "hemiola/report.h"

#include <algorithm>
#include <ostream>

#include "core/monitor.h"
#include "library/convert.h"
#include "library/explored.h"
#include "library/implementations.h"
#include "report/exploration.h"
#include "report/machine_page.h"
#include "report/page.h"
#include "report/report.h"
#include "report/run_page.h"

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

report::Checked inner_check(const Proof& proof) {
  report::Checked check{.program = proof.program,
                        .plan = proof.of_plan,
                        .size = proof.size,
                        .proof = inner_proof(proof),
                        .beside = proof.looked_at};
  if (proof.sizes)
    check.sizes = verify::SizeClass{proof.sizes->min, proof.sizes->max.value_or(Bytes{INT64_MAX}),
                                    proof.sizes->why_one, proof.sizes->multiple};
  return check;
}

/// For what it did when, which no result keeps.
void simulate_again(const Outcome& outcome, sim::TraceSink& into, const Watch& watch) {
  Monitor monitor;
  monitor.stop = watch.stop;
  sim::Options options = outcome.self->options;
  options.trace = &into;
  options.monitor = &monitor;
  sim::simulate(outcome.self->bound, options);
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
  const report::Checked inner = inner_check(proof);
  report::print_proof(out, inner.proof, "");
  if (inner.sizes) report::print_sizes(out, *inner.sizes, inner.beside, "");
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
  report::PerfettoTrace trace(*outcome.self->bound.machine(), lines_begin, lines_end);
  simulate_again(outcome, trace, watch);
  return trace.serialize();
}

bool has_pages() {
  return report::page::can_render();
}

std::string page(std::span<const Outcome> outcomes, const std::string& command,
                 const Watch& watch) {
  report::page::require_rendering();
  if (outcomes.empty()) throw Failure("there is no outcome, and so nothing for a page");
  const sim::Options& options = outcomes.back().self->options;
  report::RunPageExtras extras{
      .repetitions = options.iterations > 0 ? options.warmup + options.iterations : 1,
      .no_timeline =
          report::why_no_timeline(outcomes.size(), options.engine == sim::Engine::sampled)};
  if (extras.no_timeline.empty()) {
    report::RunTimeline timeline(*outcomes.back().self->bound.machine());
    simulate_again(outcomes.back(), timeline, watch);
    extras.timeline = timeline.panels();
  }
  return report::page::render(
      report::run_page(head_of(outcomes, command), results_of(outcomes), extras));
}

std::string page(const Exploration& found, const std::string& command) {
  report::page::require_rendering();
  if (found.self == nullptr)
    throw Failure("a scenario of a suite has no page of its own", {}, "explore its operator");
  return report::page::render(report::exploration_page(command, found.self->found, {}));
}

std::string page(std::span<const Proof> proofs, const std::string& command) {
  std::vector<report::Checked> checks;
  for (const Proof& proof : proofs) checks.push_back(inner_check(proof));
  return report::page::render(report::check_page(command, "", checks));
}

std::string page(const Machine& machine, const std::string& command) {
  report::page::require_rendering();
  return report::page::render(report::machine_page(*machine.implementation().machine, command));
}

}  // namespace hemiola
