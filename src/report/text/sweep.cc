#include "report/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "report/values/columns.h"
#include "report/values/numbers.h"
#include "report/values/sweep_keys.h"

namespace hemiola::report {
namespace {

using study::SweepRow;
using study::SweepStatus;

bool differs(std::span<const SweepRow> rows, const SweepKey& key) {
  return std::ranges::any_of(
      rows, [&](const SweepRow& row) { return row.*key.member != rows.front().*key.member; });
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

void print_head(std::ostream& out, const std::string& file, const study::SweepDatabase::Head& head,
                std::span<const SweepRow> rows) {
  out << fmt::format("# sweep    {}: {} of {} points", file, rows.size(), head.points);
  if (head.shard.count > 1) out << ", shard " << head.shard.text();
  out << '\n';
  for (const SweepKey& key : kSweepKeys) {
    if (rows.empty() || differs(rows, key) || (rows.front().*key.member).empty()) continue;
    out << fmt::format("# {:<8} {}\n", key.name, rows.front().*key.member);
  }
  out << "#\n";
}

void print_failures(std::ostream& out, std::span<const SweepRow> rows) {
  for (const SweepRow& row : rows) {
    if (row.status == SweepStatus::done) continue;
    std::string what = row.program;
    if (!row.parameters.empty()) what += " (" + row.parameters + ")";
    what += fmt::format(" at {} on {}", to_string(row.size), row.machine);
    if (!row.set.empty()) what += " (" + row.set + ")";
    if (!row.ranks.empty()) what += ", ranks " + row.ranks;
    if (!row.skew.empty()) what += ", skew " + row.skew;
    out << fmt::format("# point {}, {}: {}: {}\n", row.number, what, name_of(row.status),
                       row.error);
  }
}

}  // namespace

void print_sweep(std::ostream& out, const std::string& file, const study::SweepDatabase::Head& head,
                 std::span<const SweepRow> rows) {
  print_head(out, file, head, rows);
  std::vector<SweepKey> keys;
  for (const SweepKey& key : kSweepKeys)
    if (differs(rows, key)) keys.push_back(key);
  std::vector<Align> alignment(keys.size(), Align::left);
  std::vector<std::string> names, units(keys.size());
  for (const SweepKey& key : keys) names.emplace_back(key.name);
  alignment.insert(alignment.end(), 9, Align::right);
  alignment.push_back(Align::left);
  names.insert(names.end(), {"size", "count", "type", "redop", "time", "algbw", "busbw", "bound",
                             "%bound", "checked"});
  units.insert(units.end(),
               {"(B)", "(elements)", "", "", "(us)", "(GB/s)", "(GB/s)", "(us)", "", ""});
  Columns columns(alignment);
  columns.add_heading(names);
  columns.add_heading(units);
  for (const SweepRow& row : rows) {
    if (row.status != SweepStatus::done) continue;
    std::vector<std::string> cells;
    for (const SweepKey& key : keys) cells.push_back(or_dash(row.*key.member));
    cells.insert(cells.end(),
                 {std::to_string(row.size.count), std::to_string(row.count), row.dtype, row.op,
                  table_us(row.time), table_rate(row.algbw_GBps), table_rate(row.busbw_GBps),
                  table_us(row.bound()), percent(row.bound(), row.time), row.checked});
    columns.add(std::move(cells));
  }
  columns.print(out, "  ");
  print_failures(out, rows);
}

}  // namespace hemiola::report
