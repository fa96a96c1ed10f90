#include "report/exploration_suite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "explore/first_of_each.h"
#include "report/values/columns.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using explore::ScenarioRow;
using explore::ScenarioStatus;
using explore::ScheduleRow;

void print_summary(std::ostream& out, const SuiteExploration& found) {
  const SuiteSummary summary = summary_of(found.rows);
  if (summary.done == 0) return;
  std::vector<std::string> wins;
  for (const auto& [family, count] : summary.wins)
    wins.push_back(fmt::format("{} of {}", count, family));
  if (summary.serial > 0) wins.push_back(fmt::format("{} of serial", summary.serial));
  out << fmt::format("# fastest   {}\n", fmt::join(wins, ", "));
  out << fmt::format("# speedup   {:.3f} in the geometric mean", summary.mean);
  if (!summary.at.empty()) out << fmt::format(", {:.3f} at most: {}", summary.largest, summary.at);
  out << '\n';
}

void print_rest(std::ostream& out, const SuiteExploration& found) {
  for (const ScenarioRow& row : found.rows)
    if (row.status != ScenarioStatus::done)
      out << fmt::format("# {}: {}: {}\n", row.scenario.name, name_of(row.status), row.error);
}

}  // namespace

std::string operator_text(const explore::Operator& op) {
  return std::string(name_of(op.kind)) + (op.gathers_b ? " (b)" : "");
}

std::vector<const ScheduleRow*> fastest_of_families(const ScenarioRow& row) {
  const auto family_of = [](const ScheduleRow& schedule) { return schedule.family; };
  std::vector<const ScheduleRow*> best;
  for (const std::size_t i : explore::first_of_each(row.schedules, family_of))
    best.push_back(&row.schedules[i]);
  return best;
}

SuiteSummary summary_of(const std::vector<ScenarioRow>& rows) {
  SuiteSummary summary;
  std::map<std::string, std::int64_t> wins;
  double logarithms = 0;
  for (const ScenarioRow& row : rows) {
    if (row.status != ScenarioStatus::done) continue;
    ++summary.done;
    if (row.best_family == "serial")
      ++summary.serial;
    else
      ++wins[row.best_family];
    logarithms += std::log(row.speedup);
    if (row.speedup > summary.largest) {
      summary.largest = row.speedup;
      summary.at = row.scenario.name;
    }
  }
  if (summary.done > 0) summary.mean = std::exp(logarithms / static_cast<double>(summary.done));
  summary.wins.assign(wins.begin(), wins.end());
  std::ranges::stable_sort(summary.wins,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  return summary;
}

void print_suite(std::ostream& out, const SuiteExploration& found) {
  out << fmt::format("# suite     {}: {} of {} scenarios in {}\n", found.suite, found.rows.size(),
                     found.head.scenarios, found.file);
  out << fmt::format("# machine   {}\n#\n", found.head.machine);
  Columns columns({kLeft, kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kLeft});
  columns.add_heading(
      {"scenario", "operator", "M", "N", "K", "serial", "best", "speedup", "best schedule"});
  columns.add_heading({"", "", "", "", "", "(us)", "(us)", "", ""});
  for (const ScenarioRow& row : found.rows) {
    if (row.status != ScenarioStatus::done) continue;
    const explore::Operator& op = row.scenario.op;
    columns.add({row.scenario.name, operator_text(op), std::to_string(op.m), std::to_string(op.n),
                 std::to_string(op.k), table_us(row.serial_of_best()), table_us(row.best_time),
                 fmt::format("{:.3f}", row.speedup), row.best});
  }
  columns.print(out, "  ");
  out << "#\n";
  print_summary(out, found);
  print_rest(out, found);
}

}  // namespace hemiola::report
