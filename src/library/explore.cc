#include "hemiola/explore.h"

#include <algorithm>

#include "explore/suite/suite_run.h"
#include "library/explored.h"
#include "library/implementations.h"
#include "library/watching.h"

namespace hemiola {
namespace {

void require_words(const char* option, const std::vector<std::string>& given,
                   const std::vector<std::string>& known) {
  for (const std::string& word : given)
    if (std::ranges::find(known, word) == known.end())
      throw Failure("'" + word + "' is none of them", {.file = option}, suggest(word, known));
}

explore::Operator inner_operator(const OverlapOperator& op, int ranks) {
  explore::Operator inner{.kind = explore::operator_named(op.kind, {.file = "operator"}),
                          .ranks = ranks,
                          .m = op.m,
                          .n = op.n,
                          .k = op.k,
                          .gathers_b = op.gathers_b,
                          .type = op.type,
                          .load = op.load};
  explore::check_load(inner, {.file = "load"});
  if (op.gathers_b) explore::check_gathers_b(inner.kind, {.file = "gather"});
  if (op.local) return explore::from_local(inner, {.file = "gemm"});
  explore::check(inner, {.file = "gemm"});
  return inner;
}

OverlapOperator public_operator(const explore::Operator& op) {
  return {.kind = std::string(name_of(op.kind)),
          .m = op.m,
          .n = op.n,
          .k = op.k,
          .gathers_b = op.gathers_b,
          .type = op.type,
          .load = op.load};
}

ExploredSchedule public_schedule(const explore::ScenarioRow& row,
                                 const explore::ScheduleRow& schedule) {
  return {.text = schedule.schedule,
          .family = schedule.family,
          .degree = schedule.degree,
          .program = schedule.program,
          .parameters = schedule.parameters,
          .time = schedule.time,
          .fluid = schedule.fluid,
          .confirmed = schedule.confirmed,
          .speedup = row.speedup_of(schedule),
          .bound = schedule.bound,
          .estimate = schedule.estimate,
          .buffers = schedule.buffers,
          .extra_traffic = schedule.extra_traffic,
          .dil_product = schedule.dil_product,
          .dil_communication = schedule.dil_communication,
          .cil_product = schedule.cil_product,
          .cil_communication = schedule.cil_communication,
          .losses = {schedule.losses.begin(), schedule.losses.end()}};
}

Exploration public_exploration(const std::string& machine, const explore::ScenarioRow& row) {
  Exploration found{.machine = machine,
                    .op = public_operator(row.scenario.op),
                    .ranks = row.scenario.op.ranks,
                    .serial = {.program = row.serial_program,
                               .time = row.serial,
                               .collective = row.collective,
                               .product = row.product,
                               .confirmed = row.serial_confirmed},
                    .ideal = row.ideal,
                    .space = row.space};
  for (const explore::ScheduleRow& schedule : row.schedules)
    found.schedules.push_back(public_schedule(row, schedule));
  return found;
}

ExploredScenario public_scenario(const std::string& machine, const explore::ScenarioRow& row) {
  ExploredScenario scenario{.name = row.scenario.name,
                            .model = row.scenario.model,
                            .set = row.scenario.set,
                            .op = public_operator(row.scenario.op),
                            .ranks = row.scenario.op.ranks,
                            .error = row.error};
  if (row.status == explore::ScenarioStatus::done)
    scenario.found = public_exploration(machine, row);
  return scenario;
}

/// All but what is explored. Failure: words that are none of the known ones.
explore::Request exploration_request(const Machine& machine, const ExploreOptions& options) {
  require_words("realizations", options.realizations, explore::kRealizations);
  require_words("places", options.places, explore::kPlaces);
  require_words("transfers", options.transfers, explore::kTransfers);
  require_words("copies", options.copies, explore::kCopies);
  explore::Request request;
  request.machine.given = machine.implementation().machine;
  request.options.launch = static_cast<sim::Launch>(options.launch);
  request.options.warmup = options.iterations > 0 ? std::max(0, options.warmup) : 0;
  request.options.iterations = std::max(0, options.iterations);
  request.options.threads = std::max(1, options.threads);
  request.limits = {.degrees = options.degrees,
                    .realizations = options.realizations,
                    .places = options.places,
                    .transfers = options.transfers,
                    .copies = options.copies};
  request.fluid = std::max(1, options.fluid);
  request.top = options.top;
  request.exhaustive = options.exhaustive;
  request.losses = explore::losses_of(options.losses, {.file = "losses"});
  return request;
}

}  // namespace

const ExploredSchedule* Exploration::best() const {
  return schedules.empty() || schedules.front().speedup <= 1 ? nullptr : &schedules.front();
}

Exploration explore_operator(const Machine& machine, const OverlapOperator& op,
                             const ExploreOptions& options, const Watch& watch) {
  Watching watching(watch);
  study::Laboratory laboratory;
  explore::Request request = exploration_request(machine, options);
  request.op = inner_operator(op, machine.ranks());
  explore::Exploration found = explore::explore(laboratory, request, {.watch = watching.inner});
  Exploration made =
      public_exploration(machine.name(), explore::row_of(0, {.op = request.op}, found));
  made.self = std::make_shared<const Exploration::Implementation>(
      Exploration::Implementation{std::move(found)});
  return made;
}

std::vector<ExploredScenario> explore_suite(const Machine& machine, const std::string& suite,
                                            const ExploreOptions& options,
                                            const std::string& database, const Watch& watch) {
  study::Laboratory laboratory;
  const explore::Request request = exploration_request(machine, options);
  const explore::Suite scenarios = explore::read_scenarios(suite);
  explore::SuiteDatabase rows(database.empty() ? ":memory:" : database,
                              explore::head_of(laboratory, scenarios, request, HEMIOLA_VERSION));
  explore::run_suite(laboratory, scenarios, request, rows,
                     {.threads = request.options.threads,
                      .stop = watch.stop,
                      .on_progress = [&](const explore::SuiteProgress& now) {
                        if (watch.on_step && !now.doing.empty()) watch.on_step(now.doing);
                      }});
  std::vector<ExploredScenario> all;
  for (const explore::ScenarioRow& row : rows.read())
    all.push_back(public_scenario(machine.name(), row));
  return all;
}

std::vector<std::string> exploration_suites() {
  return explore::shipped_suites();
}

}  // namespace hemiola
