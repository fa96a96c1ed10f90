#include "report/sweep.h"

#include <fmt/format.h>

#include "report/values/json_text.h"
#include "report/values/numbers.h"
#include "report/values/sweep_keys.h"

namespace hemiola::report {
namespace {

using study::SweepRow;
using study::SweepStatus;

JsonText sweep_row_object(const SweepRow& row) {
  JsonObject object("      ");
  object.add("point", row.number);
  for (const SweepKey& key : kSweepKeys) object.add(key.name, row.*key.member);
  object.add("size_bytes", row.size, "type", row.dtype, "redop", row.op, "status",
             name_of(row.status));
  if (row.status != SweepStatus::done) return object.add("error", row.error).json();
  return object
      .add("time_fs", row.time, "time_ns", JsonText{exact_ns(row.time)}, "algbw_GBps",
           row.algbw_GBps, "busbw_GBps", row.busbw_GBps, "bound_ns",
           json_object("bandwidth", JsonText{exact_ns(row.bound_bandwidth)}, "latency",
                       JsonText{exact_ns(row.bound_latency)}),
           "ideal_ns", JsonText{exact_ns(row.ideal)}, "checked", row.checked, "line_hops",
           row.line_hops, "counters", JsonText{row.counters})
      .json();
}

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
  return json_file("schema", "hemiola/1", "command", command, "points",
                   json_list(rows, "  ", sweep_row_object));
}

}  // namespace hemiola::report
