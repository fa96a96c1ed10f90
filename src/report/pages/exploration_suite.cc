// The page of `explore --suite --report`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "report/exploration_suite.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::ScenarioRow;
using explore::ScenarioStatus;
using explore::ScheduleRow;

bool has_family(const ScenarioRow& row, const std::string& family) {
  return std::ranges::any_of(
      row.schedules, [&](const ScheduleRow& schedule) { return schedule.family == family; });
}

/// Scenarios by families; a family that no scenario has is left out.
page::HeatMap speedup_map(const std::vector<ScenarioRow>& rows) {
  page::HeatMap map{.heading = "Speedup over serial",
                    .note = "Of the fastest schedule of each family that was simulated.",
                    .row_title = "scenario",
                    .column_title = "family",
                    .unit = "x"};
  std::map<std::string, std::size_t> columns;
  for (const explore::Family& family : explore::families()) {
    const std::string name = family.text();
    if (std::ranges::none_of(rows, [&](const ScenarioRow& row) { return has_family(row, name); }))
      continue;
    columns.emplace(name, map.columns.size());
    map.columns.push_back(name);
  }
  for (const ScenarioRow& row : rows) {
    if (row.status != ScenarioStatus::done) continue;
    map.rows.push_back(row.scenario.name);
    std::vector<std::optional<double>>& cells = map.values.emplace_back(map.columns.size());
    for (const ScheduleRow* schedule : fastest_of_families(row))
      cells.at(columns.at(schedule->family)) = std::round(row.speedup_of(*schedule) * 100) / 100;
  }
  return map;
}

page::Bars wins_of(const SuiteSummary& summary) {
  page::Bars bars{.heading = "The fastest family", .unit = "scenarios"};
  for (const auto& [family, count] : summary.wins)
    bars.rows.push_back({.label = family, .value = static_cast<double>(count)});
  bars.rows.push_back({.label = "serial", .value = static_cast<double>(summary.serial)});
  return bars;
}

page::Table scenarios_table(const std::vector<ScenarioRow>& rows) {
  page::Table table{
      .heading = "Scenarios",
      .columns = page::columns_of({"scenario", "operator"},
                                  {"M", "N", "K", "ranks", "serial (us)", "best (us)", "speedup"},
                                  {"best schedule"})};
  for (const ScenarioRow& row : rows) {
    if (row.status != ScenarioStatus::done) continue;
    const explore::Operator& op = row.scenario.op;
    table.rows.push_back({row.scenario.name, operator_text(op), std::to_string(op.m),
                          std::to_string(op.n), std::to_string(op.k), std::to_string(op.ranks),
                          table_us(row.serial_of_best()), table_us(row.best_time),
                          fmt::format("{:.3f}", row.speedup), row.best});
  }
  return table;
}

page::Table not_explored(const std::vector<ScenarioRow>& rows) {
  page::Table table{.heading = "Not explored", .columns = {{"scenario"}, {"why"}}};
  for (const ScenarioRow& row : rows)
    if (row.status != ScenarioStatus::done) table.rows.push_back({row.scenario.name, row.error});
  return table;
}

}  // namespace

page::Page suite_page(const std::string& command, const SuiteExploration& found) {
  const SuiteSummary summary = summary_of(found.rows);
  page::Page page{.title = "Suite " + found.suite, .subtitle = command};
  page.facts = {{"machine", found.head.machine},
                {"scenarios", fmt::format("{} of {} explored", summary.done, found.rows.size())},
                {"mean speedup", fmt::format("{:.3f}", summary.mean)},
                {"largest speedup", fmt::format("{:.3f}", summary.largest)},
                {"serial is best", std::to_string(summary.serial)}};
  if (summary.done > 0) {
    page.blocks.push_back(wins_of(summary));
    page.blocks.push_back(speedup_map(found.rows));
    page.blocks.push_back(scenarios_table(found.rows));
  }
  page::Table rest = not_explored(found.rows);
  if (!rest.rows.empty()) page.blocks.push_back(std::move(rest));
  return page;
}

}  // namespace hemiola::report
