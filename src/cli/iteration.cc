#include "cli/iteration.h"

#include <cmath>
#include <iostream>
#include <utility>

#include "cli/notices.h"
#include "core/text.h"
#include "report/iteration.h"
#include "workload/collective_rules.h"
#include "workload/job_text.h"

namespace hemiola::cli {
namespace {

workload::Level level_value(std::string_view option, const std::string& text) {
  const std::string word = choice_value(option, text, {"estimate", "fluid", "sampled", "line"});
  if (word == "estimate") return workload::Level::estimate;
  if (word == "sampled") return workload::Level::sampled;
  return word == "line" ? workload::Level::line : workload::Level::fluid;
}

Collective collective_value(std::string_view option, const std::string& text) {
  if (text == "messages") return Collective::send_recv;
  const auto kind = parse_collective(text);
  if (!kind || *kind == Collective::custom)
    throw Failure(
        "'" + text + "' is no collective", {.file = std::string(option)},
        "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, messages");
  return *kind;
}

/// "0.5": kernels take half of their time.
std::int64_t permille_value(const std::string& text) {
  try {
    std::size_t used = 0;
    const double factor = std::stod(text, &used);
    if (used == text.size() && factor >= 0.001 && factor <= 1000)
      return std::llround(factor * 1000);
  } catch (const std::exception&) {  // the message below says it
  }
  throw Failure("'" + text + "' is no factor", {.file = "--scale-compute"},
                "from 0.001 to 1000: 0.5 halves the time of kernels");
}

}  // namespace

void add_iteration_options(CLI::App& verb, IterationOptions& options) {
  verb.add_option("--detail", options.detail,
                  "of a workload: how exactly one kind of call is timed, all-reduce=line")
      ->type_name("KIND=ENGINE ...");
  verb.add_option("--collectives", options.collectives,
                  "of a workload: which programs its collectives run")
      ->type_name("FILE");
  verb.add_option("--compute", options.compute,
                  "of a workload: where the time of kernels is from; automatic: models where "
                  "shapes, or bytes and flop, are known, else what was recorded")
      ->type_name("automatic|recorded|model|roofline")
      ->capture_default_str();
  verb.add_option("--scale-compute", options.scale_compute,
                  "of a workload: the time of kernels times this")
      ->type_name("FACTOR")
      ->capture_default_str();
  verb.add_option("--without", options.without,
                  "of a workload: calls of this kind take no time: all-reduce, messages")
      ->type_name("KIND ...");
  verb.add_option("--job", options.job,
                  "of a workload: write its launches as a job, to be simulated in one go")
      ->type_name("FILE");
  verb.add_flag("--no-contention", options.no_contention,
                "of a workload: launches beside each other are as fast as alone");
}

void add_iteration_basics(CLI::App& verb, IterationOptions& options) {
  const TextOptions add(verb);
  add("--engine", options.engine, "how launches are timed: estimate|fluid|sampled|line", "ENGINE");
  add("--launch", options.launch, "graph|stream", "MODE");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per class of ranks", "FILE");
  add("--trace", options.trace, "write a timeline for ui.perfetto.dev", "FILE");
  add("--report", options.report, "write a page with charts, for a browser", "FILE");
}

workload::IterationRequest iteration_request(std::shared_ptr<const workload::Workload> workload,
                                             const MachineOptions& machine,
                                             const IterationOptions& options, Session& session) {
  workload::IterationRequest request{.workload = std::move(workload)};
  request.machine = machine_choice(machine, one_setting(machine.set));
  workload::CostOptions& costs = request.costs;
  costs.level = level_value("--engine", options.engine);
  for (const auto& [kind, level] : pairs_of("--detail", options.detail))
    costs.detail[collective_value("--detail", kind)] = level_value("--detail", level);
  if (!options.collectives.empty())
    costs.rules = workload::read_collective_rules(options.collectives);
  costs.launch = choice_value("--launch", options.launch, {"graph", "stream"}) == "graph"
                     ? sim::Launch::graph
                     : sim::Launch::stream;
  costs.contention = !options.no_contention;
  costs.monitor = &session.monitor;
  const std::string compute =
      choice_value("--compute", options.compute, {"automatic", "recorded", "model", "roofline"});
  costs.roofline = compute == "roofline";
  workload::ScheduleOptions& schedule = request.schedule;
  schedule.compute = compute == "recorded"    ? workload::ComputeSource::recorded
                     : compute == "automatic" ? workload::ComputeSource::automatic
                                              : workload::ComputeSource::model;
  schedule.compute_permille = permille_value(options.scale_compute);
  for (const std::string& kind : options.without)
    schedule.without.push_back(collective_value("--without", kind));
  schedule.monitor = &session.monitor;
  return request;
}

ExitCode run_iteration_verb(std::shared_ptr<const workload::Workload> workload,
                            const MachineOptions& machine, const IterationOptions& options,
                            Session& session) {
  check_output("--json", options.json);
  check_output("--csv", options.csv);
  check_output("--trace", options.trace);
  check_output("--report", options.report);
  check_output("--job", options.job);
  if (!options.report.empty()) report::page::require_rendering();
  workload::IterationRequest request =
      iteration_request(std::move(workload), machine, options, session);
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
  notices.show(outcome.notices);
  const report::IterationRun run{.command = session.command, .engine = options.engine};
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
  return ExitCode::done;
}

}  // namespace hemiola::cli
