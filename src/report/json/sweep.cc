#include "report/sweep.h"

#include <fmt/format.h>

#include "report/values/numbers.h"
#include "report/values/sweep_keys.h"

namespace hemiola::report {
namespace {

using study::SweepRow;
using study::SweepStatus;

}  // namespace

std::string sweep_csv(std::span<const SweepRow> rows) {
  std::string text = "point";
  for (const SweepKey& key : kSweepKeys) text += fmt::format(",{}", key.name);
  text +=
      ",size_bytes,type,redop,status,count,time_ns,algbw_GBps,busbw_GBps,bound_ns,"
      "percent_of_bound,checked,line_hops,error\n";
  for (const SweepRow& row : rows) {
    text += std::to_string(row.number);
    for (const SweepKey& key : kSweepKeys) text += ',' + csv_cell(row.*key.member);
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
    for (const SweepKey& key : kSweepKeys) field(key.name, json_string(row.*key.member));
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
