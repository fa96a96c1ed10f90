#include "hemiola/workload.h"

#include <ostream>
#include <utility>

#include "library/implementations.h"
#include "library/watching.h"
#include "report/iteration.h"
#include "workload/iteration/iteration_options.h"
#include "workload/iteration/job_text.h"
#include "workload/iteration/search.h"
#include "workload/models/make_options.h"
#include "workload/scheduler/fold.h"
#include "workload/trace_reader.h"
#include "workload/traces/chakra/writer.h"

namespace hemiola {
namespace {

workload::IterationRequest inner_request(const Machine& machine, std::string_view phase,
                                         const IterationOptions& options, Watching& watching,
                                         const Watch& watch) {
  workload::IterationRequest request;
  request.machine.given = machine.implementation().machine;
  apply(options, phase, "", request);
  request.costs.monitor = request.schedule.monitor = &watching.monitor;
  if (watch.on_step)
    request.costs.on_simulation = [&watch](const std::string& what) {
      watch.on_step("simulating " + what);
    };
  return request;
}

std::vector<RankTime> rank_times(const workload::IterationOutcome& outcome) {
  std::vector<RankTime> classes;
  const workload::Workload& of = *outcome.workload;
  for (std::size_t c = 0; c < of.classes.size(); ++c) {
    const workload::ClassTime& times = outcome.result.classes[c];
    RankTime one{.name = of.classes[c].name,
                 .ranks = {of.classes[c].ranks.begin(), of.classes[c].ranks.end()},
                 .compute = times.compute,
                 .exposed = times.exposed(),
                 .copies = times.memory,
                 .waiting = times.waiting(),
                 .host = times.host,
                 .idle = times.idle,
                 .hidden = times.hidden,
                 .slowed = times.slowed,
                 .memory_bytes = {}};
    if (of.facts && c < of.facts->memory.size()) one.memory_bytes = of.facts->memory[c];
    classes.push_back(std::move(one));
  }
  return classes;
}

}  // namespace

struct Workload::Implementation {
  std::shared_ptr<const workload::Workload> workload;
};

struct Iteration::Implementation {
  workload::IterationOutcome outcome;
  std::string engine;
};

Workload Workload::make(const ModelIteration& iteration) {
  return Workload(std::make_shared<const Implementation>(
      Implementation{std::make_shared<const workload::Workload>(
          make_workload(workload::make_request(iteration, "")))}));
}

Workload Workload::read(const std::string& path, const TraceOptions& options) {
  workload::TraceRequest request{
      .path = path, .lenient = options.lenient, .sizes = options.sizes, .groups = options.groups};
  if (options.replicate != 0) request.replicate = options.replicate;
  return Workload(std::make_shared<const Implementation>(
      Implementation{std::make_shared<const workload::Workload>(
          workload::fold(workload::read_workload(request)))}));
}

const std::string& Workload::name() const {
  return self_->workload->name;
}
int Workload::ranks() const {
  return self_->workload->ranks;
}
std::int64_t Workload::nodes() const {
  return self_->workload->nodes();
}
const std::vector<Diagnostic>& Workload::notices() const {
  return self_->workload->notices;
}
void Workload::write_chakra(const std::string& prefix) const {
  workload::write_chakra(*self_->workload, prefix);
}

Iteration run_iteration(const Machine& machine, const Workload& workload,
                        const IterationOptions& options, const Watch& watch) {
  Watching watching(watch);
  study::Laboratory laboratory;
  const auto& inner = workload.implementation().workload;
  workload::IterationRequest request =
      inner_request(machine, inner->facts ? inner->facts->phase : "", options, watching, watch);
  request.workload = inner;
  auto self = std::make_shared<Iteration::Implementation>();
  self->outcome = workload::run_iteration(laboratory, request);
  self->engine = options.engine;
  const workload::IterationOutcome& outcome = self->outcome;
  Iteration result{.machine = outcome.machine->name,
                   .workload = inner->name,
                   .ranks = inner->ranks,
                   .time = outcome.result.time,
                   .recorded = outcome.recorded,
                   .tokens_per_second_and_gpu = outcome.tokens_per_second_and_gpu(),
                   .model_flop_utilisation = outcome.model_flop_utilisation(),
                   .classes = rank_times(outcome),
                   .calls = {},
                   .path = {},
                   .simulations = outcome.simulations,
                   .notices = outcome.notices,
                   .self = self};
  for (const workload::CallRow& row : outcome.calls)
    result.calls.push_back(
        {.name = report::call_name(*inner, workload::call_key(*inner, row.kind, row.work)),
         .group = row.group,
         .groups = row.groups,
         .calls = row.calls,
         .size = {workload::call_of(*inner, row.kind, row.work).bytes},
         .alone = row.alone});
  for (const workload::PathName& one : outcome.path_by_name())
    result.path.push_back({one.name, one.nodes, one.time});
  return result;
}

void print_iteration(std::ostream& out, const Iteration& iteration) {
  report::print_iteration(out, {.engine = iteration.self->engine}, iteration.self->outcome);
}

std::string iteration_json(const Iteration& iteration, const std::string& command) {
  return report::iteration_json({.command = command, .engine = iteration.self->engine},
                                iteration.self->outcome);
}

std::string iteration_trace(const Iteration& iteration) {
  return report::iteration_trace(iteration.self->outcome);
}

std::string iteration_page(const Iteration& iteration, const std::string& command) {
  report::page::require_rendering();
  return report::page::render(report::iteration_page(
      {.command = command, .engine = iteration.self->engine}, iteration.self->outcome));
}

std::string iteration_job(const Iteration& iteration) {
  const workload::IterationOutcome& outcome = iteration.self->outcome;
  workload::Places places(*outcome.workload);
  return workload::job_text(*outcome.workload, places, outcome.result);
}

std::vector<ParallelismRow> search_parallelism(const Machine& machine,
                                               const ModelIteration& iteration,
                                               const IterationOptions& options, std::int64_t memory,
                                               const Watch& watch) {
  Watching watching(watch);
  study::Laboratory laboratory;
  const workload::IterationRequest asked =
      inner_request(machine, iteration.phase, options, watching, watch);
  const workload::SearchOutcome found =
      workload::search(laboratory, {.make = workload::make_request(iteration, ""),
                                    .machine = asked.machine,
                                    .costs = asked.costs,
                                    .schedule = asked.schedule,
                                    .memory = memory});
  std::vector<ParallelismRow> rows;
  for (const workload::SearchRow& row : found.rows)
    rows.push_back({.tp = row.parallelism.tp,
                    .pp = row.parallelism.pp,
                    .dp = row.parallelism.dp,
                    .cp = row.parallelism.cp,
                    .ep = row.parallelism.ep,
                    .zero = row.parallelism.zero,
                    .memory = row.memory,
                    .refused = row.refused,
                    .time = row.time,
                    .tokens_per_second_and_gpu = row.tokens_per_second_and_gpu,
                    .model_flop_utilisation = row.model_flop_utilisation});
  return rows;
}

}  // namespace hemiola
