#include "cli/verbs/iteration.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "cli/notices.h"
#include "core/checked.h"
#include "core/text.h"
#include "report/iteration.h"
#include "study/laboratory/database_head.h"
#include "study/support/digest.h"
#include "workload/iteration/iteration_options.h"
#include "workload/iteration/job_text.h"

namespace hemiola::cli {
namespace {

/// "0.5": kernels take half of their time.
double factor_value(const std::string& text) {
  if (const std::optional<double> factor = finite_number(text)) return *factor;
  throw Failure("'" + text + "' is no factor", {.file = "--scale-compute"},
                "from 0.001 to 1000: 0.5 halves the time of kernels");
}

/// All that simulations of launches depend on, but the launches. So runs of other workloads, and
/// what-ifs that change no simulation, find in a folder what was simulated before.
std::string head_of_simulations(const machine::Machine& machine,
                                const workload::IterationRequest& request) {
  const study::DatabaseHead of_machine =
      study::head_of_machine(request.machine, machine, HEMIOLA_VERSION);
  std::string head = fmt::format("launches of workloads\n{}\n{}\n{}{}\n", of_machine.version,
                                 of_machine.machine_digest,
                                 request.costs.launch == sim::Launch::graph ? "graph" : "stream",
                                 request.costs.roofline ? ", roofline" : "");
  for (const workload::CollectiveRule& rule : request.costs.rules) {
    head += fmt::format("{}{} {} {} {}", rule.is_fused ? "fused " : "", name_of(rule.kind),
                        rule.ranks, rule.least, rule.program);
    if (rule.product)
      head += fmt::format(" of {} {} {}", rule.product->m, rule.product->n, rule.product->k);
    if (is_file(rule.program)) head += ' ' + study::digest(read_file(rule.program));
    for (const auto& [name, value] : rule.parameters) head += fmt::format(" {}={}", name, value);
    head += '\n';
  }
  return head;
}

}  // namespace

void add_iteration_options(CLI::App& verb, IterationOptions& options) {
  const AddOptions add(verb);
  verb.add_option("--detail", options.detail,
                  "of a workload: how exactly one kind of call is timed, all-reduce=line")
      ->type_name("KIND=ENGINE ...");
  add("--collectives", options.words.collectives,
      "of a workload: which programs its collectives run", "FILE");
  add("--compute", options.words.compute,
      "of a workload: where the time of kernels is from; automatic: models where "
      "shapes, or bytes and flop, are known, else what was recorded",
      "automatic|recorded|model|roofline");
  add("--calls", options.words.calls,
      "of a trace: whether communication is simulated, or takes what was recorded; "
      "automatic: recorded with --compute recorded on the recorded kind of GPU",
      "automatic|simulated|recorded");
  add("--scale-recorded", options.words.scale_recorded,
      "of a trace from another GPU: recorded times of kernels are scaled by models of "
      "both, by the bandwidth of the memories, or not at all",
      "model|bytes|none");
  add.read(
      "--scale-compute", "1",
      [&options](const std::string& text) { options.words.scale_compute = factor_value(text); },
      "of a workload: the time of kernels times this", "FACTOR");
  verb.add_option(
          "--without", options.words.without,
          "of a workload: such nodes take no time: all-reduce, messages; compute, products, "
          "attention, kernels, copies, host; or kernels by name: '*norm*'")
      ->type_name("KIND ...");
  add("--job", options.job, "of a workload: write its launches as a job, to be simulated in one go",
      "FILE");
  verb.add_flag_callback(
      "--no-contention", [&options] { options.words.contention = false; },
      "of a workload: launches beside each other are as fast as alone");
  add_together(verb, options.together);
}

void add_iteration_basics(CLI::App& verb, IterationOptions& options) {
  const AddOptions add(verb);
  add("--engine", options.words.engine, "how launches are timed: estimate|fluid|sampled|line",
      "ENGINE");
  add.read(
      "--launch", {},
      [&options](const std::string& text) {
        options.words.launch = static_cast<LaunchMode>(launch_value(text));
      },
      "graph|stream; without it a graph for decode, else a stream", "MODE");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per class of ranks", "FILE");
  add("--trace", options.trace, "write a timeline for ui.perfetto.dev", "FILE");
  add("--report", options.report, "write a page with charts, for a browser", "FILE");
}

workload::IterationRequest iteration_request(std::shared_ptr<const workload::Workload> workload,
                                             std::string_view phase, const MachineOptions& machine,
                                             const IterationOptions& options, Session& session) {
  workload::IterationRequest request{.workload = std::move(workload)};
  request.machine = machine_choice(machine, one_setting(machine.set));
  hemiola::IterationOptions words = options.words;
  words.detail = pairs_of("--detail", options.detail);
  apply(words, phase, "--", request);
  request.costs.monitor = request.schedule.monitor = &session.monitor;
  return request;
}

ExitCode run_iteration_verb(std::shared_ptr<const workload::Workload> workload,
                            const MachineOptions& machine, const IterationOptions& options,
                            Session& session, const std::function<void()>& write_more) {
  const Together together(options.together, session, {});
  if (together.submitted()) return ExitCode::done;
  const std::string phase = workload->facts ? workload->facts->phase : "";
  workload::IterationRequest request =
      iteration_request(std::move(workload), phase, machine, options, session);
  std::unique_ptr<study::Parts> parts;
  if (together.shares()) {
    const machine::SharedMachine known = session.laboratory.machine(request.machine);
    if (known != nullptr) parts = together.open(head_of_simulations(*known, request));
    request.costs.parts = parts.get();
  }
  Notices notices(session);
  workload::IterationOutcome outcome;
  {
    Progress progress(session);
    progress.doing("running " + request.workload->name);
    request.costs.on_simulation = [&](const std::string& what) {
      progress.doing("simulating " + what);
    };
    outcome = workload::run_iteration(session.laboratory, request);
  }
  if (!together.is_first()) return ExitCode::done;
  notices.show(outcome.notices);
  const report::IterationRun run{.command = session.command, .engine = options.words.engine};
  report::print_iteration(std::cout, run, outcome);
  if (!options.json.empty()) write_file(options.json, report::iteration_json(run, outcome));
  if (!options.csv.empty()) write_file(options.csv, report::iteration_csv(outcome));
  if (!options.trace.empty()) write_file(options.trace, report::iteration_trace(outcome));
  if (!options.job.empty()) {
    workload::Places places(*outcome.workload);
    write_file(options.job, workload::job_text(*outcome.workload, places, outcome.result));
  }
  if (!options.report.empty())
    write_file(options.report, report::page::render(report::iteration_page(run, outcome)));
  if (write_more) write_more();
  return ExitCode::done;
}

}  // namespace hemiola::cli
