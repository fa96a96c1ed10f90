// The page of `diff`.
#include "report/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/values/difference_text.h"
#include "report/values/numbers.h"
#include "report/values/result_tables.h"

namespace hemiola::report {
namespace {

using study::FigureChange;
using study::ResultChange;

constexpr std::size_t kMostRows = 32;

page::Bars::Row row_of(const ResultChange& change, const char* side,
                       std::int64_t FigureChange::*time) {
  page::Bars::Row row{.label = result_name(change) + side};
  for (const FigureChange& reason : change.latest->reasons)
    if (reason.*time > 0) row.parts.push_back({reason.name, Time{reason.*time}.us()});
  return row;
}

/// Two bars for each result that has an attribution.
page::Bars bars_of(const std::vector<ResultChange>& results) {
  page::Bars bars{.heading = "Where the time goes",
                  .note = "Of each result in A and in B, its latest rank.",
                  .unit = "us"};
  for (const ResultChange& change : results) {
    if (!change.latest) continue;
    if (bars.rows.size() == 2 * kMostRows) {
      bars.note += fmt::format(" The first {} results are shown.", kMostRows);
      break;
    }
    bars.rows.push_back(row_of(change, ": A", &FigureChange::a));
    bars.rows.push_back(row_of(change, ": B", &FigureChange::b));
  }
  return bars;
}

}  // namespace

page::Page difference_page(const std::string& command, const study::Difference& difference) {
  const auto both = [](const std::string& a, const std::string& b) {
    return a == b ? a : "A " + a + ", B " + b;
  };
  page::Page page{.title = difference.b.file + " against " + difference.a.file,
                  .subtitle = command,
                  .facts = {{"machine", both(difference.a.machine, difference.b.machine)},
                            {"program", both(difference.a.program, difference.b.program)},
                            {"engine", both(difference.a.engine, difference.b.engine)}}};
  page::Text commands{"The two runs", {}};
  for (const auto& [side, file] : {std::pair{"A", &difference.a}, std::pair{"B", &difference.b}})
    commands.paragraphs.push_back(fmt::format("{}: {}: {}", side, file->file, file->command));
  if (difference.a.models != difference.b.models)
    commands.paragraphs.emplace_back("The models changed between them.");
  for (const auto& [side, only] :
       {std::pair{"A", &difference.only_a}, std::pair{"B", &difference.only_b}})
    for (const study::Unmatched& one : *only)
      commands.paragraphs.push_back(fmt::format("Only in {}: {}", side, to_text(one)));
  page.blocks = {std::move(commands), difference_table(difference)};
  if (page::Bars bars = bars_of(difference.results); !bars.rows.empty())
    page.blocks.emplace_back(std::move(bars));
  const ResultChange& most = moved_most(difference.results);
  if (most.latest) page.blocks.emplace_back(moved_reasons(most));
  if (!most.links.empty()) page.blocks.emplace_back(moved_links(most));
  if (!most.counters.empty()) page.blocks.emplace_back(moved_counters(most));
  return page;
}

}  // namespace hemiola::report
