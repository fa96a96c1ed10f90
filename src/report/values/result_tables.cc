#include "report/values/result_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "report/iteration.h"
#include "report/values/difference_text.h"
#include "report/values/numbers.h"
#include "study/results/difference.h"
#include "study/tables/micro.h"
#include "study/tables/suite_runner.h"
#include "workload/iteration/iteration_table.h"

namespace hemiola::report {
namespace {

using study::FigureChange;
using study::Judgement;
using study::Regime;
using study::ResultChange;
using study::RowResult;
using study::Summary;

std::string percent_of(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}
std::string error_text(double fraction) {
  return fmt::format("{:+.1f}", 100 * fraction);
}

std::string note_of(const RowResult& row) {
  if (!row.skipped.empty()) return "not simulated: " + row.skipped;
  if (row.simulated_size == row.measured.size) return {};
  return "simulated at " + std::to_string(row.simulated_size.count) + " B";
}

std::string mark_text(const study::Mark& mark, const Summary& summary) {
  if (!mark.median && !mark.worst) return "-";
  std::string wanted;
  if (mark.median) wanted += fmt::format("median {:g}", 100 * *mark.median);
  if (mark.worst)
    wanted += fmt::format("{}worst {:g}", wanted.empty() ? "" : ", ", 100 * *mark.worst);
  return (mark.met_by(summary) ? "met     " : "missed  ") + wanted;
}

/// The rows of a kind and way of launching, over all entries.
struct Total {
  std::string kind, launch;
  const study::Marks* marks = nullptr;
  bool software = false;  ///< some rows have a constant added
  std::vector<RowResult> rows;
};

std::vector<Total> totals_of(const std::vector<Judgement>& judgements) {
  std::vector<Total> totals;
  for (const Judgement& judgement : judgements) {
    const std::string kind(name_of(*judgement.kind));
    const std::string launch(sim::name_of(judgement.options.launch));
    auto total = std::ranges::find_if(
        totals, [&](const Total& other) { return other.kind == kind && other.launch == launch; });
    if (total == totals.end())
      total = totals.insert(total, {kind, launch, &*judgement.marks, false, {}});
    total->software |= judgement.validation.software_us.has_value();
    const std::vector<RowResult>& rows = judgement.validation.rows;
    total->rows.insert(total->rows.end(), rows.begin(), rows.end());
  }
  return totals;
}

/// Its regimes that have rows.
void add_entry(page::Table& table, const std::string& name, const std::string& kind,
               const study::Summaries& summaries, const study::Marks& marks, bool software) {
  for (std::size_t i = 0; i < study::kRegimes; ++i) {
    if (summaries[i].n == 0) continue;
    std::vector<std::string> cells{name, kind, std::string(name_of(static_cast<Regime>(i)))};
    for (std::string& cell : summary_cells(summaries[i])) cells.push_back(std::move(cell));
    cells.push_back(software ? percent_of(summaries[i].median_with_software) : "-");
    cells.push_back(mark_text(marks[i], summaries[i]));
    table.rows.push_back(std::move(cells));
  }
}

std::string what(const sim::PeerWait& wait) {
  if (wait.kind == sim::ProfileKind::acknowledgement) return "acknowledgements of stores";
  if (wait.kind == sim::ProfileKind::response) return "data of loads";
  std::string text = wait.kind == sim::ProfileKind::add ? "flag" : std::string(name_of(wait.kind));
  if (!wait.buffer.empty()) text += ' ' + wait.buffer;
  if (wait.offset >= 0) text += fmt::format("+{}", wait.offset);
  if (!wait.name.empty()) text += fmt::format(" ({})", wait.name);
  return text;
}

}  // namespace

Columns printed(const page::Table& table, Units where) {
  std::vector<Align> alignment;
  std::vector<std::string> names, units;
  for (const page::Table::Column& column : table.columns) {
    alignment.push_back(column.numeric ? kRight : kLeft);
    const std::size_t unit = where == Units::beside ? std::string::npos : column.name.find('(');
    names.push_back(unit == 0 ? "" : column.name.substr(0, unit - (unit != std::string::npos)));
    units.push_back(unit == std::string::npos ? "" : column.name.substr(unit));
  }
  Columns columns(alignment);
  if (where == Units::below) {
    columns.add_heading(names);
    if (std::ranges::any_of(units, [](const std::string& unit) { return !unit.empty(); }))
      columns.add_heading(units);
  } else {
    columns.add(names);
  }
  for (const std::vector<std::string>& row : table.rows) columns.add(row);
  return columns;
}

std::string moved_text(const study::RankChange& change) {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> parts;
  std::size_t more = 0;
  for (const FigureChange& reason : change.reasons) {
    if (reason.difference() == 0) continue;
    if (parts.size() < kMost)
      parts.push_back(fmt::format("{} us {}", signed_us(Time{reason.difference()}), reason.name));
    else
      ++more;
  }
  if (parts.empty()) return "nothing moved";
  if (more > 0) parts.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string rank_text(const study::RankChange& change) {
  if (change.a_rank == change.b_rank) return fmt::format("rank {}", change.a_rank);
  return fmt::format("rank {} of A, rank {} of B", change.a_rank, change.b_rank);
}

const ResultChange& moved_most(const std::vector<ResultChange>& results) {
  const auto key = [](const ResultChange& change) {
    return std::pair(std::abs(change.relative().value_or(0)), !change.same());
  };
  return *std::ranges::max_element(
      results, [&](const ResultChange& x, const ResultChange& y) { return key(x) < key(y); });
}

page::Table difference_table(const study::Difference& difference) {
  const bool settings = std::ranges::any_of(difference.results, [](const ResultChange& one) {
    return !one.a_settings.empty() || !one.b_settings.empty();
  });
  page::Table table{
      .heading = "Results",
      .note = "B - A above zero: B takes longer. Reasons are of the latest rank.",
      .columns = page::columns_of({}, {"size (B)", "A (us)", "B (us)", "B - A (us)", "(%)"},
                                  settings ? std::vector<std::string>{"settings", "where it went"}
                                           : std::vector<std::string>{"where it went"})};
  for (const ResultChange& change : difference.results) {
    std::vector<std::string>& cells = table.rows.emplace_back(std::vector<std::string>{
        std::to_string(change.size.count), table_us(change.a), table_us(change.b),
        signed_us(change.difference()), signed_percent(change.relative())});
    if (settings) cells.push_back(settings_text(change));
    cells.push_back(change.latest ? moved_text(*change.latest) + "; " + rank_text(*change.latest)
                                  : "no attribution to compare");
  }
  return table;
}

std::string result_name(const ResultChange& change) {
  const std::string settings = settings_text(change);
  return to_string(change.size) + (settings.empty() ? "" : ", " + settings);
}

page::Table moved_reasons(const ResultChange& change) {
  page::Table table{.heading = "Reasons: " + result_name(change),
                    .note = rank_text(*change.latest) + ", the latest.",
                    .columns = page::columns_of({"reason"}, {"A (ns)", "B (ns)", "B - A (ns)"})};
  for (const FigureChange& reason : change.latest->reasons)
    if (reason.a != 0 || reason.b != 0)
      table.rows.push_back({reason.name, exact_ns(Time{reason.a}), exact_ns(Time{reason.b}),
                            signed_ns(Time{reason.difference()})});
  table.rows.push_back(
      {"sum", exact_ns(change.a), exact_ns(change.b), signed_ns(change.difference())});
  return table;
}

page::Table moved_links(const ResultChange& change) {
  page::Table table{
      .heading = "Links that moved: " + result_name(change),
      .columns = page::columns_of({"from", "to", ""},
                                  {"busy A (us)", "B (us)", "B - A (us)", "wire B - A (B)"})};
  for (const study::LinkChange& link : change.links)
    table.rows.push_back(
        {link.from, link.to, link.lane > 0 ? fmt::format("lane {}", link.lane) : "",
         table_us(link.a_busy), table_us(link.b_busy), signed_us(link.b_busy - link.a_busy),
         fmt::format("{:+}", link.b_wire_bytes - link.a_wire_bytes)});
  return table;
}

page::Table moved_counters(const ResultChange& change) {
  page::Table table{.heading = "Counters that moved: " + result_name(change),
                    .columns = page::columns_of({"counter"}, {"A", "B", "B - A"})};
  for (const FigureChange& counter : change.counters)
    table.rows.push_back({counter.name, std::to_string(counter.a), std::to_string(counter.b),
                          fmt::format("{:+}", counter.difference())});
  return table;
}

std::string simulated_text(const std::vector<RowResult>& rows) {
  std::map<std::string, int> reasons;
  int simulated = 0;
  for (const RowResult& row : rows)
    if (row.skipped.empty())
      ++simulated;
    else
      ++reasons[row.skipped];
  std::string text = fmt::format("{} of {} rows", simulated, rows.size());
  for (const auto& [reason, count] : reasons)
    text += fmt::format("{} {} {}", reason == reasons.begin()->first ? ":" : ",", count, reason);
  return text;
}

std::string marks_text(const std::vector<Judgement>& judgements) {
  int met = 0, marked = 0;
  std::vector<RowResult> all;
  for (const Judgement& judgement : judgements) {
    for (std::size_t i = 0; i < study::kRegimes; ++i) {
      if (judgement.summaries[i].n == 0) continue;
      ++marked;
      if ((*judgement.marks)[i].met_by(judgement.summaries[i])) ++met;
    }
    all.insert(all.end(), judgement.validation.rows.begin(), judgement.validation.rows.end());
  }
  return fmt::format("marks met: {} of {}; simulated {}", met, marked, simulated_text(all));
}

std::vector<std::string> summary_cells(const Summary& summary) {
  std::vector<std::string> cells{std::to_string(summary.n), error_text(summary.bias)};
  for (const double error :
       {summary.median, summary.worst, summary.geomean, summary.trivial_median})
    cells.push_back(percent_of(error));
  return cells;
}

page::Table regimes_table(const Judgement& judgement) {
  page::Table table{.heading = "Errors",
                    .note = "In per cent, absolute but for the bias; simulated " +
                            simulated_text(judgement.validation.rows) + ".",
                    .columns = page::columns_of({"regime"}, {"rows", "bias", "median", "worst",
                                                             "geomean", "trivial median"})};
  for (std::size_t i = 0; i < study::kRegimes; ++i) {
    if (judgement.summaries[i].n == 0) continue;
    std::vector<std::string> cells = summary_cells(judgement.summaries[i]);
    cells.insert(cells.begin(), std::string(name_of(static_cast<Regime>(i))));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

page::Table validation_table(const Judgement& judgement) {
  page::Table table{.heading = judgement.name,
                    .columns = {{"size (B)", true},
                                {"GPUs", true},
                                {"type"},
                                {"measured (us)", true},
                                {"simulated (us)", true},
                                {"error (%)", true},
                                {"trivial (%)", true},
                                {"program"},
                                {""}}};
  for (const RowResult& row : judgement.validation.rows) {
    const bool simulated = row.skipped.empty();
    table.rows.push_back({std::to_string(row.measured.size.count), std::to_string(row.ranks),
                          std::string(name_of(row.type)),
                          fmt::format("{:.3f}", row.measured.time_us),
                          simulated ? table_us(row.simulated) : "-",
                          simulated ? error_text(row.errors.simulated) : "-",
                          error_text(row.errors.trivial), row.program, note_of(row)});
  }
  return table;
}

page::Table entries_table(const std::vector<Judgement>& judgements) {
  page::Table table{.heading = "Entries",
                    .note = "Errors are absolute but for the bias.",
                    .columns = page::columns_of({"entry", "kind", "regime"},
                                                {"rows", "bias (%)", "median (%)", "worst (%)",
                                                 "geomean (%)", "trivial (%)", "software (%)"},
                                                {"mark (%)"})};
  for (const Judgement& judgement : judgements) {
    const std::string kind(name_of(*judgement.kind));
    add_entry(table, judgement.name, kind, judgement.summaries, *judgement.marks,
              judgement.validation.software_us.has_value());
    if (!study::any_simulated(judgement.validation.rows))
      table.rows.push_back({judgement.name, kind, "none", "0"});
  }
  for (const Total& total : totals_of(judgements))
    add_entry(table, "all, " + total.launch, total.kind, study::summarise_regimes(total.rows),
              *total.marks, total.software);
  return table;
}

page::Table orders_table(const std::vector<study::OrderResult>& orders) {
  page::Table table{.heading = "Comparisons",
                    .columns = page::columns_of(
                        {"comparison"}, {"sizes", "decided", "right", "crossover", "simulated"})};
  const auto text = [](const std::optional<Bytes>& size) { return size ? to_string(*size) : "-"; };
  for (const study::OrderResult& order : orders)
    table.rows.push_back({order.name, std::to_string(order.sizes), std::to_string(order.decided),
                          std::to_string(order.right), text(order.measured_crossover),
                          text(order.simulated_crossover)});
  return table;
}

page::Table micro_table(const std::vector<study::MicroResult>& micro) {
  page::Table table{.heading = "Microbenchmarks",
                    .columns = {{"microbenchmark"},
                                {"measured", true},
                                {"simulated", true},
                                {""},
                                {"error (%)", true},
                                {"machine"},
                                {"program"}}};
  for (const study::MicroResult& one : micro)
    table.rows.push_back({one.name, fmt::format("{:.6g}", one.measured.value),
                          fmt::format("{:.5g}", one.simulated), one.measured.unit,
                          error_text(one.error), one.machine, one.program});
  return table;
}

page::Table iterations_table(const workload::IterationValidation& found) {
  page::Table table{.heading = "Iterations",
                    .columns = page::columns_of({"iteration"}, {"measured (ms)", "simulated (ms)",
                                                                "error (%)", "regression (%)"})};
  for (const workload::IterationCheck& check : found.rows) {
    const bool simulated = check.refused.empty();
    table.rows.push_back(
        {check.row.text, table_ms(check.row.measured), simulated ? table_ms(check.simulated) : "-",
         simulated ? error_text(check.error) : "-", error_text(check.regression_error)});
  }
  return table;
}

std::vector<std::string> iteration_summary(const workload::IterationValidation& found) {
  const auto share_of = [](const workload::PairOrder& order) -> std::string {
    if (order.pairs == 0) return "none";
    return fmt::format("{} of {} right, {:.1f} %", order.right, order.pairs,
                       100.0 * order.right / order.pairs);
  };
  const Summary& summary = found.summary;
  return {fmt::format("regime iteration: {} rows, median {:.1f} %, worst {:.1f} %, geometric mean "
                      "{:.1f} %, bias {:+.1f} %; regression median {:.1f} %",
                      summary.n, 100 * summary.median, 100 * summary.worst, 100 * summary.geomean,
                      100 * summary.bias, 100 * summary.trivial_median),
          fmt::format("order of pairs that differ by more than 10 %: {}; by 3 to 10 %: {}",
                      share_of(found.beyond_10), share_of(found.from_3_to_10))};
}

page::Table replays_table(const std::vector<sim::Result>& results) {
  const std::vector<std::string> names = setting_names(results);
  std::vector<std::string> numbers{"time (us)"};
  for (const ReplayCount& count : kReplayCounts) numbers.emplace_back(count.heading);
  page::Table table{.heading = "Results", .columns = page::columns_of(names, numbers, {"answers"})};
  for (const sim::Result& result : results) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    for (const std::string& name : names) cells.push_back(setting_of(result, name));
    cells.push_back(table_us(result.time));
    for (const ReplayCount& count : kReplayCounts)
      cells.push_back(std::to_string(result.counters.at(count.counter)));
    cells.push_back(result.answers);
  }
  return table;
}

page::Table peer_waits_table(const sim::Result& result) {
  page::Table table{
      .heading = "What it waited for",
      .note = "The reason 'peer', by peer and flag.",
      .columns = {{"rank", true}, {"peer", true}, {"what"}, {"time (ns)", true}, {"waits", true}}};
  std::vector<sim::PeerWait> waits = result.peer_waits;
  std::ranges::stable_sort(
      waits, [](const sim::PeerWait& a, const sim::PeerWait& b) { return a.time > b.time; });
  for (const sim::PeerWait& wait : waits)
    table.rows.push_back({std::to_string(wait.rank), std::to_string(wait.peer), what(wait),
                          exact_ns(wait.time), std::to_string(wait.waits)});
  return table;
}

}  // namespace hemiola::report
