// One line per size, for spreadsheets.
#include <fmt/format.h>

#include "core/data_type.h"
#include "report/report.h"
#include "report/values/numbers.h"

namespace hemiola::report {
std::string to_csv(const Run& run, const std::vector<sim::Result>& results) {
  std::string text =
      "size_bytes,count,type,redop,time_ns,algbw_GBps,busbw_GBps,bound_ns,percent_of_bound,checked,"
      "line_hops";
  for (std::size_t i = 0; i < sim::kReasons; ++i)
    text += fmt::format(",{}_ns", sim::name_of(static_cast<sim::Reason>(i)));
  const std::vector<std::string> names = setting_names(results);
  for (const std::string& name : names) text += ',' + csv_cell(name);
  text += '\n';
  const std::optional<program::Bound>& program = run.bound;
  for (const sim::Result& result : results) {
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{}", result.size.count, result.count,
        program ? name_of(program->type()) : "-", program ? name_of(program->op()) : "-",
        exact_ns(result.time), result.algbw_GBps, result.busbw_GBps, exact_ns(result.bound.time()),
        percent(result.bound.time(), result.time), result.checked, result.line_hops);
    const sim::Attribution attribution =
        result.attribution.empty() ? sim::Attribution{} : result.attribution[latest_rank(result)];
    for (const std::int64_t fs : attribution) text += ',' + exact_ns(Time{fs});
    for (const std::string& name : names) text += ',' + csv_cell(setting_of(result, name));
    text += '\n';
  }
  return text;
}

}  // namespace hemiola::report
