// The page of `validate`.
#include "report/validation.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "report/iteration_validation.h"
#include "report/values/result_tables.h"

namespace hemiola::report {
namespace {

using study::Judgement;
using study::RowResult;

/// Rows that differ in their size alone.
using Series = std::map<std::string, std::vector<const RowResult*>>;

Series series_of(const Judgement& judgement) {
  Series all;
  for (const RowResult& row : judgement.validation.rows)
    if (row.skipped.empty() && row.measured.size.count > 0)
      all[fmt::format("{} GPUs, {}", row.ranks, name_of(row.type))].push_back(&row);
  for (auto& [name, rows] : all)
    std::ranges::stable_sort(rows, {}, [](const RowResult* row) { return row->measured.size; });
  return all;
}

/// Measured beside simulated times, and how far they are apart.
void add_curves(page::Page& page, const Judgement& judgement) {
  const page::Curves::Axis sizes{"size", true, true};
  page::Curves times{judgement.name + ": time by size", "", sizes, {"time (us)", true}, {}};
  page::Curves errors{judgement.name + ": error by size",
                      "Above zero: the simulated time is longer than the measured one.",
                      sizes,
                      {"error (%)"},
                      {}};
  for (const auto& [name, rows] : series_of(judgement)) {
    page::Curves::Series measured{name + ", measured", {}}, simulated{name + ", simulated", {}};
    page::Curves::Series error{name, {}};
    for (const RowResult* row : rows) {
      const auto size = static_cast<double>(row->measured.size.count);
      measured.points.emplace_back(size, row->measured.time_us);
      simulated.points.emplace_back(size, row->simulated.us());
      error.points.emplace_back(size, 100 * row->errors.simulated);
    }
    times.series.push_back(std::move(measured));
    times.series.push_back(std::move(simulated));
    errors.series.push_back(std::move(error));
  }
  if (times.series.empty()) return;
  page.blocks.emplace_back(std::move(times));
  page.blocks.emplace_back(std::move(errors));
}

}  // namespace

page::Page validation_page(const std::string& command, const std::vector<Judgement>& judgements,
                           const std::vector<study::OrderResult>& orders,
                           const std::vector<study::MicroResult>& micro) {
  const bool is_suite = judgements.size() != 1 || judgements.front().kind;
  page::Page page{.title = is_suite ? "Measured and simulated times" : judgements.front().name,
                  .subtitle = command};
  if (!is_suite) {
    const Judgement& one = judgements.front();
    page.facts = {{"machine", one.machine},
                  {"program", one.program},
                  {"engine", std::string(sim::name_of(one.options.engine))},
                  {"launch", std::string(sim::name_of(one.options.launch))},
                  {"checked", one.validation.checked}};
    page.blocks.emplace_back(regimes_table(one));
  } else if (!judgements.empty()) {
    page.blocks.emplace_back(page::Text{"Summary", {marks_text(judgements) + "."}});
    page.blocks.emplace_back(entries_table(judgements));
  }
  for (const Judgement& judgement : judgements) {
    add_curves(page, judgement);
    page.blocks.emplace_back(validation_table(judgement));
  }
  if (!orders.empty()) page.blocks.emplace_back(orders_table(orders));
  if (!micro.empty()) page.blocks.emplace_back(micro_table(micro));
  return page;
}

page::Page iteration_validation_page(const std::string& command,
                                     const workload::IterationValidation& found) {
  page::Page page{
      .title = found.file,
      .subtitle = command,
      .facts = {{"machine", found.machine}, {"rows", std::to_string(found.rows.size())}}};
  page.blocks.emplace_back(page::Text{"Errors", iteration_summary(found)});
  page::Bars bars{.heading = "Measured and simulated",
                  .note = "Rows that were simulated, in the order of the table.",
                  .unit = "ms"};
  for (const workload::IterationCheck& check : found.rows) {
    if (!check.refused.empty()) continue;
    if (bars.rows.size() >= 64) {
      bars.note += " The first 32 are shown.";
      break;
    }
    bars.rows.push_back({check.row.text + ": measured", check.row.measured.us() / 1e3});
    bars.rows.push_back({check.row.text + ": simulated", check.simulated.us() / 1e3});
  }
  page.blocks.emplace_back(std::move(bars));
  page.blocks.emplace_back(iterations_table(found));
  return page;
}

}  // namespace hemiola::report
