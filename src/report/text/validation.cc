// Tables of errors for the terminal.
#include "report/validation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include "report/values/columns.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using study::Judgement;
using study::Regime;
using study::RowResult;
using study::Summary;

std::string percent_of(double fraction) {
  return fmt::format("{:.1f}", 100 * fraction);
}
std::string signed_percent(double fraction) {
  return fmt::format("{:+.1f}", 100 * fraction);
}

std::string launch_of(const Judgement& judgement) {
  return judgement.options.launch == sim::Launch::graph ? "graph" : "stream";
}

std::string trivial_text(const study::Validation& validation) {
  const study::TrivialModel& model = validation.trivial;
  const std::string rate =
      model.us_per_byte > 0 ? fmt::format("{:.1f} GB/s", 1e-3 / model.us_per_byte) : "infinite";
  return fmt::format("{:.2f} us + {} / {}, fitted to {} rows of {}", model.latency_us,
                     trivial_scale(validation), rate, model.rows, model.fitted_to);
}

/// "12 of 23 rows: 8 not in the sample, 4 larger than 16 MiB"
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

void add_summary(std::vector<std::string>& cells, const Summary& summary) {
  cells.push_back(std::to_string(summary.n));
  cells.push_back(signed_percent(summary.bias));
  for (const double error :
       {summary.median, summary.worst, summary.geomean, summary.trivial_median})
    cells.push_back(percent_of(error));
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
    const std::string launch = launch_of(judgement);
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

void print_entries(std::ostream& out, const std::vector<Judgement>& judgements) {
  Columns columns(
      {kLeft, kLeft, kLeft, kRight, kRight, kRight, kRight, kRight, kRight, kRight, kLeft});
  columns.add_heading({"entry", "kind", "regime", "rows", "bias", "median", "worst", "geomean",
                       "trivial", "software", "mark"});
  columns.add_heading({"", "", "", "", "(%)", "(%)", "(%)", "(%)", "(%)", "(%)", "(%)"});
  int met = 0, marked = 0;
  std::vector<RowResult> all;
  const auto add = [&](const std::string& name, const std::string& kind,
                       const study::Summaries& summaries, const study::Marks& marks, bool software,
                       bool counts) {
    for (std::size_t i = 0; i < study::kRegimes; ++i) {
      if (summaries[i].n == 0) continue;
      std::vector<std::string> cells{name, kind, std::string(name_of(static_cast<Regime>(i)))};
      add_summary(cells, summaries[i]);
      cells.push_back(software ? percent_of(summaries[i].median_with_software) : "-");
      cells.push_back(mark_text(marks[i], summaries[i]));
      columns.add(std::move(cells));
      if (!counts) continue;
      ++marked;
      if (marks[i].met_by(summaries[i])) ++met;
    }
  };
  for (const Judgement& judgement : judgements) {
    add(judgement.name, std::string(name_of(*judgement.kind)), judgement.summaries,
        *judgement.marks, judgement.validation.software_us.has_value(), true);
    if (!study::any_simulated(judgement.validation.rows))
      columns.add({judgement.name, std::string(name_of(*judgement.kind)), "none", "0"});
    all.insert(all.end(), judgement.validation.rows.begin(), judgement.validation.rows.end());
  }
  for (const Total& total : totals_of(judgements)) {
    add("all, " + total.launch, total.kind, study::summarise_regimes(total.rows), *total.marks,
        total.software, false);
  }
  columns.print(out, "  ");
  out << fmt::format("# marks met: {} of {}; simulated {}\n", met, marked, simulated_text(all));
}

void print_orders(std::ostream& out, const std::vector<study::OrderResult>& orders) {
  if (orders.empty()) return;
  Columns columns({kLeft, kRight, kRight, kRight, kRight, kRight});
  columns.add_heading({"comparison", "sizes", "decided", "right", "crossover", "simulated"});
  const auto text = [](const std::optional<Bytes>& size) { return size ? to_string(*size) : "-"; };
  for (const study::OrderResult& order : orders) {
    columns.add({order.name, std::to_string(order.sizes), std::to_string(order.decided),
                 std::to_string(order.right), text(order.measured_crossover),
                 text(order.simulated_crossover)});
  }
  out << "#\n";
  columns.print(out, "  ");
}

void print_micro(std::ostream& out, const std::vector<study::MicroResult>& micro) {
  if (micro.empty()) return;
  Columns columns({kLeft, kRight, kRight, kLeft, kRight, kLeft, kLeft});
  columns.add_heading(
      {"microbenchmark", "measured", "simulated", "", "error (%)", "machine", "program"});
  std::vector<study::Errors> errors;
  for (const study::MicroResult& one : micro) {
    columns.add({one.name, fmt::format("{:.6g}", one.measured.value),
                 fmt::format("{:.5g}", one.simulated), one.measured.unit, signed_percent(one.error),
                 one.machine, one.program});
    errors.push_back({.simulated = one.error});
  }
  columns.print(out, "  ");
  const Summary summary = study::summarise(errors);
  out << fmt::format("# microbenchmarks: {}, median {} %, worst {} %, geomean {} %, bias {} %\n",
                     summary.n, percent_of(summary.median), percent_of(summary.worst),
                     percent_of(summary.geomean), signed_percent(summary.bias));
}

/// What a rank sends: bus_factor() in words.
std::string_view sent_text(Collective collective) {
  if (collective == Collective::all_reduce) return "2(n-1)/n x size";
  return bus_factor(collective, 2) < 1 ? "(n-1)/n x size" : "size";
}

}  // namespace

std::string trivial_scale(const study::Validation& validation) {
  std::set<std::string_view> texts;
  for (const RowResult& row : validation.rows) texts.insert(sent_text(row.collective));
  return fmt::format("{}", fmt::join(texts, " or "));
}

void print_validation(std::ostream& out, const Judgement& judgement) {
  const study::Validation& validation = judgement.validation;
  out << "# table    " << judgement.table;
  if (!judgement.where.empty()) out << ", where " << judgement.where;
  out << fmt::format(
      "\n# machine  {}\n# program  {}, checked: {}\n# engine   {}, {} after {} repetitions\n"
      "# launch   {}\n# trivial  {}\n#\n",
      judgement.machine, judgement.program, validation.checked,
      sim::name_of(judgement.options.engine), judgement.options.iterations,
      judgement.options.warmup, launch_of(judgement), trivial_text(validation));
  Columns columns({kRight, kRight, kLeft, kRight, kRight, kRight, kRight, kLeft, kLeft});
  columns.add_heading(
      {"size", "GPUs", "type", "measured", "simulated", "error", "trivial", "program", ""});
  columns.add_heading({"(B)", "", "", "(us)", "(us)", "(%)", "(%)", "", ""});
  for (const RowResult& row : validation.rows) {
    const bool simulated = row.skipped.empty();
    columns.add({std::to_string(row.measured.size.count), std::to_string(row.ranks),
                 std::string(name_of(row.type)), fmt::format("{:.3f}", row.measured.time_us),
                 simulated ? table_us(row.simulated) : "-",
                 simulated ? signed_percent(row.errors.simulated) : "-",
                 signed_percent(row.errors.trivial), row.program, note_of(row)});
  }
  columns.print(out, "  ");
  out << "#\n# errors in %, absolute but for the bias, " << simulated_text(validation.rows) << '\n';
  if (!study::any_simulated(validation.rows)) return;
  Columns table({kLeft, kRight, kRight, kRight, kRight, kRight, kRight});
  table.add({"regime", "rows", "bias", "median", "worst", "geomean", "trivial median"});
  for (std::size_t i = 0; i < study::kRegimes; ++i) {
    if (judgement.summaries[i].n == 0) continue;
    std::vector<std::string> cells{std::string(name_of(static_cast<Regime>(i)))};
    add_summary(cells, judgement.summaries[i]);
    table.add(std::move(cells));
  }
  table.print(out, "# ");
}

void print_suite(std::ostream& out, const std::vector<Judgement>& judgements,
                 const std::vector<study::OrderResult>& orders,
                 const std::vector<study::MicroResult>& micro) {
  if (!judgements.empty()) print_entries(out, judgements);
  print_orders(out, orders);
  if (!judgements.empty() && !micro.empty()) out << "#\n";
  print_micro(out, micro);
}

}  // namespace hemiola::report
