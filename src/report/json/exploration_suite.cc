#include "report/exploration_suite.h"

#include <fmt/format.h>

#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::ScenarioRow;
using explore::ScenarioStatus;
using explore::ScheduleRow;

JsonText families_object(const ScenarioRow& row) {
  return json_object_of(
      fastest_of_families(row), [&](JsonObject& object, const ScheduleRow* schedule) {
        object.add(schedule->family,
                   json_object("schedule", schedule->schedule, "time", BothUnits{schedule->time},
                               "speedup", row.speedup_of(*schedule)));
      });
}

JsonText scenario_object(const ScenarioRow& row) {
  const explore::Operator& op = row.scenario.op;
  JsonObject object;
  object.add("name", row.scenario.name, "model", row.scenario.model, "set", row.scenario.set,
             "operator", name_of(op.kind), "gather", op.gathers_b ? "b" : "a", "m", op.m, "n", op.n,
             "k", op.k, "dtype", name_of(op.type), "ranks", op.ranks, "load", op.load, "status",
             name_of(row.status));
  if (row.status != ScenarioStatus::done) return object.add("error", row.error).json();
  return object
      .add("serial_program", row.serial_program, "serial", BothUnits{row.serial}, "collective",
           BothUnits{row.collective}, "product", BothUnits{row.product}, "serial_confirmed_fs",
           row.serial_confirmed, "best", row.best, "best_family", row.best_family, "best",
           BothUnits{row.best_time}, "speedup", row.speedup, "simulated", row.simulated, "space",
           row.space, "families", families_object(row))
      .json();
}

}  // namespace

std::string suite_csv(const SuiteExploration& found) {
  std::string text =
      "scenario,name,model,set,operator,gather,m,n,k,dtype,ranks,load,status,serial_program,"
      "serial_ns,collective_ns,product_ns,serial_confirmed_ns,best,best_family,best_ns,speedup,"
      "simulated,"
      "space,error\n";
  for (const ScenarioRow& row : found.rows) {
    const explore::Operator& op = row.scenario.op;
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},", row.number,
                        csv_cell(row.scenario.name), csv_cell(row.scenario.model), row.scenario.set,
                        name_of(op.kind), op.gathers_b ? "b" : "a", op.m, op.n, op.k,
                        name_of(op.type), op.ranks, op.load, name_of(row.status));
    if (row.status != ScenarioStatus::done) {
      text += ",,,,,,,,,,," + csv_cell(row.error) + '\n';
      continue;
    }
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},\n", row.serial_program,
                        exact_ns(row.serial), exact_ns(row.collective), exact_ns(row.product),
                        row.serial_confirmed ? exact_ns(*row.serial_confirmed) : "",
                        csv_cell(row.best), csv_cell(row.best_family), exact_ns(row.best_time),
                        json_of(row.speedup), row.simulated, row.space);
  }
  return text;
}

std::string suite_json(const std::string& command, const SuiteExploration& found) {
  const SuiteSummary summary = summary_of(found.rows);
  return json_file(
      "schema", "hemiola/1", "command", command, "suite", found.suite, "machine",
      found.head.machine, "options", found.head.options, "scenarios",
      json_lines(found.rows, "  ", scenario_object), "summary",
      json_object("done", summary.done, "serial", summary.serial, "wins", summary.wins,
                  "mean_speedup", summary.mean, "largest_speedup", summary.largest, "largest_at",
                  summary.at.empty() ? std::nullopt : std::optional(summary.at)));
}

}  // namespace hemiola::report
