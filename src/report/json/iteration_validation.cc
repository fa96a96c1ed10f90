#include "report/iteration_validation.h"

#include <fmt/format.h>

#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::IterationCheck;
using workload::PairOrder;

JsonText check_object(const IterationCheck& check) {
  const auto us = [](Time time) { return static_cast<double>(time.fs) * 1e-9; };
  const auto if_simulated = [&](double value) {
    return check.refused.empty() ? std::optional(value) : std::nullopt;
  };
  JsonObject object;
  object.add("line", check.row.line, "name", check.row.text, "measured_us", us(check.row.measured),
             "simulated_us", if_simulated(us(check.simulated)), "error", if_simulated(check.error),
             "trivial_error", check.regression_error);
  if (!check.refused.empty()) object.add("not_simulated", check.refused);
  return object.json();
}

JsonText pairs_object(const PairOrder& order) {
  return json_object("pairs", order.pairs, "right", order.right);
}

}  // namespace

std::string iteration_validation_json(const std::string& command,
                                      const workload::IterationValidation& found) {
  const study::Summary& summary = found.summary;
  JsonObject of_kind("    ");
  of_kind.add("iteration", json_object("n", summary.n, "bias", summary.bias, "median",
                                       summary.median, "worst", summary.worst, "geomean",
                                       summary.geomean, "trivial_median", summary.trivial_median));
  return json_file("schema", "hemiola/1", "command", command, "machine", found.machine, "rows",
                   json_lines(found.rows, "  ", check_object), "summary", of_kind.json(), "order",
                   json_object("beyond_10_percent", pairs_object(found.beyond_10),
                               "from_3_to_10_percent", pairs_object(found.from_3_to_10)));
}

std::string iteration_validation_csv(const workload::IterationValidation& found) {
  std::string text = "line,name,measured_us,simulated_us,error,trivial_error,not_simulated\n";
  for (const IterationCheck& check : found.rows) {
    const bool simulated = check.refused.empty();
    text += fmt::format("{},{},{},{},{},{},{}\n", check.row.line, csv_cell(check.row.text),
                        check.row.measured.us(),
                        simulated ? fmt::format("{}", check.simulated.us()) : "",
                        simulated ? fmt::format("{}", check.error) : "", check.regression_error,
                        csv_cell(check.refused));
  }
  return text;
}

}  // namespace hemiola::report
