// Of a run's page: the table and the curves by size.
#include "report/pages/run_blocks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/data_type.h"
#include "core/lists.h"
#include "report/values/evidence_json.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

std::string result_settings(const sim::Result& result) {
  return joined(result.settings, [](const auto& one) { return one.first + "=" + one.second; });
}

}  // namespace

std::string label_of(const sim::Result& result, const std::vector<sim::Result>& results) {
  const bool sizes_differ = std::ranges::any_of(
      results, [&](const sim::Result& other) { return other.size != result.size; });
  std::string text = result_settings(result);
  if (sizes_differ || text.empty())
    text = to_string(result.size) + (text.empty() ? "" : ", ") + text;
  return text;
}

page::Table results_table(const Run& run, const std::vector<sim::Result>& results) {
  page::Table table{"Results", "", {}, {}};
  const std::vector<std::string> settings = setting_names(results);
  for (const std::string& setting : settings) table.columns.push_back({setting});
  for (const char* name : {"size (B)", "count (elements)"}) table.columns.push_back({name, true});
  for (page::Table::Column& column : page::columns_of(
           {"type", "redop"},
           {"time (us)", "algbw (GB/s)", "busbw (GB/s)", "bound (us)", "% of bound"}, {"checked"}))
    table.columns.push_back(std::move(column));
  for (const sim::Result& result : results) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const std::string& setting : settings) row.push_back(setting_of(result, setting));
    row.insert(row.end(), {std::to_string(result.size.count), std::to_string(result.count),
                           std::string(run.bound ? name_of(run.bound->type()) : "-"),
                           std::string(run.bound ? name_of(run.bound->op()) : "-"),
                           table_us(result.time), table_rate(result.algbw_GBps),
                           table_rate(result.busbw_GBps), table_us(result.bound.time()),
                           percent(result.bound.time(), result.time), result.checked});
  }
  return table;
}

std::vector<page::Block> size_curves(const Run& run, const std::vector<sim::Result>& results) {
  std::map<std::string, std::vector<const sim::Result*>> by_settings;
  for (const sim::Result& result : results) by_settings[result_settings(result)].push_back(&result);
  std::size_t most = 0;
  bool has_rates = false;
  for (auto& [name, series] : by_settings) {
    std::ranges::stable_sort(
        series, [](const sim::Result* a, const sim::Result* b) { return a->size < b->size; });
    most = std::max(most, series.size());
    for (const sim::Result* result : series) has_rates |= result->busbw_GBps > 0;
  }
  if (most < 3) return {};
  const page::Curves::Axis sizes{"size", true, true};
  page::Curves rates{"Bus bandwidth by size", "", sizes, {"busbw (GB/s)"}, {}};
  page::Curves times{"Time by size", "", sizes, {"time (us)", true}, {}};
  const bool one = by_settings.size() == 1;
  if (one)
    times.note =
        "The bound is what no engine can be below. 9 of 10 measured times should lie between from "
        "and to.";
  for (const auto& [name, series] : by_settings) {
    page::Curves::Series rate{name.empty() ? "busbw" : name, {}};
    page::Curves::Series time{name.empty() ? "time" : name, {}}, bound{"bound", {}};
    page::Curves::Series from{"9 of 10 measured: from", {}}, to{"9 of 10 measured: to", {}};
    for (const sim::Result* result : series) {
      if (result->size.count <= 0 || result->time.fs <= 0) continue;
      const auto size = static_cast<double>(result->size.count);
      rate.points.emplace_back(size, result->busbw_GBps);
      time.points.emplace_back(size, result->time.us());
      if (result->bound.time().fs > 0) bound.points.emplace_back(size, result->bound.time().us());
      const auto found = evidence_of_result(run, *result);
      if (!found || found->rows == 0) continue;
      from.points.emplace_back(size, result->time.us() * (1 + found->low));
      to.points.emplace_back(size, result->time.us() * (1 + found->high));
    }
    rates.series.push_back(std::move(rate));
    times.series.push_back(std::move(time));
    if (!one) continue;
    for (page::Curves::Series* more : {&bound, &from, &to})
      if (!more->points.empty()) times.series.push_back(std::move(*more));
  }
  std::vector<page::Block> blocks;
  if (has_rates) blocks.emplace_back(std::move(rates));
  blocks.emplace_back(std::move(times));
  return blocks;
}

}  // namespace hemiola::report
