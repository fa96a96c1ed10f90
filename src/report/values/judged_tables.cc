#include "report/values/judged_tables.h"

#include <fmt/format.h>

#include "report/values/result_tables.h"
#include "study/tables/row_summary.h"

namespace hemiola::report {

page::Table judged_groups_table(const study::JudgedTable& table) {
  page::Table groups{
      .heading = "Errors",
      .note = "In per cent: simulated / measured - 1; absolute but for the bias.",
      .columns = page::columns_of({"rows of"}, {"rows", "simulated", "bias", "median", "worst"})};
  for (const study::RowSummary& one : study::summarise_groups(table.rows)) {
    const auto percent = [&](double share, bool sign) {
      if (one.errors.n == 0) return std::string("-");
      return sign ? fmt::format("{:+.1f}", 100 * share) : fmt::format("{:.1f}", 100 * share);
    };
    groups.rows.push_back({one.name, std::to_string(one.all), std::to_string(one.errors.n),
                           percent(one.errors.bias, true), percent(one.errors.median, false),
                           percent(one.errors.worst, false)});
  }
  return groups;
}

std::vector<std::string> judged_notes(const study::JudgedTable& table) {
  std::vector<std::string> notes;
  const study::Coverage coverage = study::coverage_of(table.rows);
  const int judged = coverage.rows - coverage.none;
  if (judged > 0)
    notes.push_back(
        fmt::format("{} of {} measured times lie within the interval that rows of other tables "
                    "give (90 % should); median width {:.0f} %, median error {:.0f} %",
                    coverage.within, judged, 100 * coverage.width, 100 * coverage.error));
  if (coverage.none > 0)
    notes.push_back(fmt::format("of {} rows no other table has any like them", coverage.none));
  for (const std::string& reason : study::refusals_of(table.rows))
    notes.push_back("not simulated: " + reason);
  if (table.interrupted) notes.emplace_back("interrupted: this is not all that was asked for");
  return notes;
}

}  // namespace hemiola::report
