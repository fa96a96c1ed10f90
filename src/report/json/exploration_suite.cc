#include "report/exploration_suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/values/exploration_fields.h"
#include "report/values/json_lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::ScenarioRow;
using explore::ScenarioStatus;
using explore::ScheduleRow;

std::string families_object(const ScenarioRow& row) {
  return "{" +
         joined(fastest_of_families(row),
                [&](const ScheduleRow* schedule) {
                  return fmt::format("{}: {{\"schedule\": {}, {}, \"speedup\": {}}}",
                                     json_string(schedule->family), json_string(schedule->schedule),
                                     time_fields("time", schedule->time),
                                     json_number(row.speedup_of(*schedule)));
                }) +
         "}";
}

std::string scenario_object(const ScenarioRow& row) {
  const explore::Operator& op = row.scenario.op;
  std::string text = fmt::format(
      "    {{\"name\": {}, \"model\": {}, \"set\": {}, \"operator\": \"{}\", \"gather\": {}, "
      "\"m\": {}, \"n\": {}, \"k\": {}, \"dtype\": \"{}\", \"ranks\": {}, "
      "\"load\": {}, \"status\": \"{}\"",
      json_string(row.scenario.name), json_string(row.scenario.model),
      json_string(row.scenario.set), name_of(op.kind), op.gathers_b ? "\"b\"" : "\"a\"", op.m, op.n,
      op.k, name_of(op.type), op.ranks, json_string(op.load), name_of(row.status));
  if (row.status != ScenarioStatus::done)
    return text + fmt::format(", \"error\": {}}}", json_string(row.error));
  return text + fmt::format(
                    ", \"serial_program\": {}, {}, {}, {}, \"serial_confirmed_fs\": {}, "
                    "\"best\": {}, \"best_family\": {}, {}, \"speedup\": {}, \"simulated\": {}, "
                    "\"space\": {}, \"families\": {}}}",
                    json_string(row.serial_program), time_fields("serial", row.serial),
                    time_fields("collective", row.collective), time_fields("product", row.product),
                    row.serial_confirmed ? std::to_string(row.serial_confirmed->fs) : "null",
                    json_string(row.best), json_string(row.best_family),
                    time_fields("best", row.best_time), json_number(row.speedup), row.simulated,
                    row.space, families_object(row));
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
                        json_number(row.speedup), row.simulated, row.space);
  }
  return text;
}

std::string suite_json(const std::string& command, const SuiteExploration& found) {
  const SuiteSummary summary = summary_of(found.rows);
  const std::string wins = joined(summary.wins, [](const auto& one) {
    return fmt::format("{}: {}", json_string(one.first), one.second);
  });
  std::string text = fmt::format(
      "{{\n  \"schema\": 1,\n  \"command\": {},\n  \"suite\": {},\n  \"machine\": {},\n"
      "  \"options\": {},\n  \"scenarios\": [\n",
      json_string(command), json_string(found.suite), json_string(found.head.machine),
      json_object(found.head.options, json_string));
  text += json_lines(found.rows, scenario_object);
  return text + fmt::format(
                    "  ],\n  \"summary\": {{\"done\": {}, \"serial\": {}, \"wins\": {{{}}}, "
                    "\"mean_speedup\": {}, \"largest_speedup\": {}, \"largest_at\": {}}}\n}}\n",
                    summary.done, summary.serial, wins, json_number(summary.mean),
                    json_number(summary.largest),
                    summary.at.empty() ? "null" : json_string(summary.at));
}

}  // namespace hemiola::report
