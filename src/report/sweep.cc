#include "report/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <vector>

#include "report/columns.h"
#include "report/numbers.h"

namespace hemiola::report {
namespace {

using study::SweepRow;
using study::SweepStatus;

/// What a point is, beside size, type and reduction.
struct Key {
  const char* name;
  std::string SweepRow::*member;
};
constexpr Key kKeys[] = {{"machine", &SweepRow::machine}, {"gpu", &SweepRow::gpu},
                         {"set", &SweepRow::set},         {"ranks", &SweepRow::ranks},
                         {"program", &SweepRow::program}, {"param", &SweepRow::parameters},
                         {"engine", &SweepRow::engine},   {"launch", &SweepRow::launch},
                         {"skew", &SweepRow::skew}};

bool differs(std::span<const SweepRow> rows, const Key& key) {
  return std::any_of(rows.begin(), rows.end(), [&](const SweepRow& row) {
    return row.*key.member != rows.front().*key.member;
  });
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

void print_head(std::ostream& out, const std::string& file, const study::SweepDatabase::Head& head,
                std::span<const SweepRow> rows) {
  out << fmt::format("# sweep    {}: {} of {} points", file, rows.size(), head.points);
  if (head.shard.count > 1) out << ", shard " << head.shard.text();
  out << '\n';
  for (const Key& key : kKeys) {
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
  std::vector<Key> keys;
  for (const Key& key : kKeys) {
    if (differs(rows, key)) keys.push_back(key);
  }
  std::vector<Align> alignment(keys.size(), Align::left);
  std::vector<std::string> names, units(keys.size());
  for (const Key& key : keys) names.emplace_back(key.name);
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
    for (const Key& key : keys) cells.push_back(or_dash(row.*key.member));
    cells.insert(cells.end(),
                 {std::to_string(row.size.count), std::to_string(row.count), row.dtype, row.op,
                  table_us(row.time), table_rate(row.algbw_GBps), table_rate(row.busbw_GBps),
                  table_us(row.bound()), percent(row.bound(), row.time), row.checked});
    columns.add(std::move(cells));
  }
  columns.print(out, "  ");
  print_failures(out, rows);
}

std::string sweep_csv(std::span<const SweepRow> rows) {
  std::string text = "point";
  for (const Key& key : kKeys) text += fmt::format(",{}", key.name);
  text +=
      ",size_bytes,type,redop,status,count,time_ns,algbw_GBps,busbw_GBps,bound_ns,"
      "percent_of_bound,checked,line_hops,error\n";
  for (const SweepRow& row : rows) {
    text += std::to_string(row.number);
    for (const Key& key : kKeys) text += ',' + csv_cell(row.*key.member);
    text += fmt::format(",{},{},{},{},", row.size.count, row.dtype, row.op, name_of(row.status));
    if (row.status == SweepStatus::done) {
      text += fmt::format("{},{},{},{},{},{},{},{},\n", row.count, exact_ns(row.time),
                          row.algbw_GBps, row.busbw_GBps, exact_ns(row.bound()),
                          percent(row.bound(), row.time), row.checked, row.line_hops);
    } else {
      text += ",,,,,,,," + csv_cell(row.error) + '\n';
    }
  }
  return text;
}

std::string sweep_json(const std::string& command, std::span<const SweepRow> rows) {
  std::string text =
      fmt::format("{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"points\": [",
                  json_string(command));
  for (const SweepRow& row : rows) {
    text += text.back() == '[' ? "\n    {" : ",\n    {";
    const auto field = [&](std::string_view key, const std::string& value) {
      text += fmt::format("{}\n      \"{}\": {}", text.back() == '{' ? "" : ",", key, value);
    };
    field("point", std::to_string(row.number));
    for (const Key& key : kKeys) field(key.name, json_string(row.*key.member));
    field("size_bytes", std::to_string(row.size.count));
    field("type", json_string(row.dtype));
    field("redop", json_string(row.op));
    field("status", json_string(name_of(row.status)));
    if (row.status == SweepStatus::done) {
      field("time_fs", std::to_string(row.time.fs));
      field("time_ns", exact_ns(row.time));
      field("algbw_GBps", json_number(row.algbw_GBps));
      field("busbw_GBps", json_number(row.busbw_GBps));
      field("bound_ns", fmt::format("{{\"bandwidth\": {}, \"latency\": {}}}",
                                    exact_ns(row.bound_bandwidth), exact_ns(row.bound_latency)));
      field("ideal_ns", exact_ns(row.ideal));
      field("checked", json_string(row.checked));
      field("line_hops", std::to_string(row.line_hops));
      field("counters", row.counters);
    } else {
      field("error", json_string(row.error));
    }
    text += "\n    }";
  }
  return text + (rows.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace hemiola::report
