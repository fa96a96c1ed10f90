// The page of `validate TABLE`.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/judged_rows.h"
#include "report/values/judged_tables.h"

namespace hemiola::report {
namespace {

using study::JudgedRow;

/// Measured and simulated times over the amount (bytes or flop), by group of rows; and the
/// intervals' ends.
page::Curves curves_of(const study::JudgedTable& table) {
  const bool bytes = table.kind.kind == study::RowKind::collective;
  page::Curves curves{"Measured and simulated times",
                      "The interval is where 9 of 10 measured times should lie, by the errors of "
                      "rows of other tables.",
                      {bytes ? "size" : "flop", true, bytes},
                      {"time (us)", true},
                      {}};
  std::map<std::string, std::vector<const JudgedRow*>> groups;
  for (const JudgedRow& row : table.rows)
    if (row.simulated_us && row.like.amount > 0)
      groups[fmt::format("{} {}, {} ranks", row.like.library, row.like.op, row.like.ranks)]
          .push_back(&row);
  for (auto& [name, rows] : groups) {
    std::ranges::stable_sort(rows, {}, [](const JudgedRow* row) { return row->like.amount; });
    page::Curves::Series measured{name + ", measured", {}}, simulated{name + ", simulated", {}};
    page::Curves::Series low{name + ", interval from", {}}, high{name + ", interval to", {}};
    for (const JudgedRow* row : rows) {
      measured.points.emplace_back(row->like.amount, row->measured_us);
      simulated.points.emplace_back(row->like.amount, *row->simulated_us);
      if (!row->evidence) continue;
      low.points.emplace_back(row->like.amount, *row->simulated_us * (1 + row->evidence->low));
      high.points.emplace_back(row->like.amount, *row->simulated_us * (1 + row->evidence->high));
    }
    for (page::Curves::Series* series : {&measured, &simulated, &low, &high})
      if (!series->points.empty()) curves.series.push_back(std::move(*series));
  }
  return curves;
}

page::Table rows_table(const study::JudgedTable& table) {
  page::Table rows{
      .heading = "Rows",
      .columns = page::columns_of(
          {"row", "machine", "program"},
          {"measured (us)", "simulated (us)", "error (%)", "interval from (us)", "to (us)"}, {""})};
  for (const JudgedRow& row : table.rows) {
    const auto number = [](double value) { return fmt::format("{:.2f}", value); };
    const bool has = row.simulated_us && row.evidence;
    rows.rows.push_back({row.name, row.machine, row.program, number(row.measured_us),
                         row.simulated_us ? number(*row.simulated_us) : "",
                         row.simulated_us ? fmt::format("{:+.1f}", 100 * *row.error()) : "",
                         has ? number(*row.simulated_us * (1 + row.evidence->low)) : "",
                         has ? number(*row.simulated_us * (1 + row.evidence->high)) : "",
                         row.refused});
  }
  return rows;
}

}  // namespace

page::Page judged_page(const std::string& command, const study::JudgedTable& table) {
  page::Page page{.title = table.file.substr(table.file.rfind('/') + 1), .subtitle = command};
  page.blocks.emplace_back(judged_groups_table(table));
  page.blocks.emplace_back(page::Text{"Coverage", judged_notes(table)});
  if (page::Curves curves = curves_of(table); !curves.series.empty())
    page.blocks.emplace_back(std::move(curves));
  page.blocks.emplace_back(rows_table(table));
  return page;
}

}  // namespace hemiola::report
