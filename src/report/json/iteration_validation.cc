#include "report/iteration_validation.h"

#include <fmt/format.h>

#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::IterationCheck;
using workload::IterationValidation;
using workload::PairOrder;

}  // namespace

std::string iteration_validation_json(const std::string& command,
                                      const IterationValidation& found) {
  std::string rows;
  for (const IterationCheck& check : found.rows) {
    const bool is_simulated = check.refused.empty();
    rows += fmt::format(
        "{}\n    {{\"line\": {}, \"name\": {}, \"measured_us\": {}, \"simulated_us\": {}, "
        "\"error\": {}, \"trivial_error\": {}{}}}",
        rows.empty() ? "" : ",", check.row.line, json_string(check.row.text),
        json_number(static_cast<double>(check.row.measured.fs) * 1e-9),
        is_simulated ? json_number(static_cast<double>(check.simulated.fs) * 1e-9) : "null",
        is_simulated ? json_number(check.error) : "null", json_number(check.regression_error),
        is_simulated ? "" : fmt::format(", \"not_simulated\": {}", json_string(check.refused)));
  }
  const study::Summary& summary = found.summary;
  const auto order = [](const PairOrder& one) {
    return fmt::format("{{\"pairs\": {}, \"right\": {}}}", one.pairs, one.right);
  };
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"machine\": {},\n  \"rows\": "
      "[{}\n  ],\n  \"summary\": {{\n    \"iteration\": {{\"n\": {}, \"bias\": {}, \"median\": {}, "
      "\"worst\": {}, \"geomean\": {}, \"trivial_median\": {}}}}},\n  \"order\": "
      "{{\"beyond_10_percent\": {}, \"from_3_to_10_percent\": {}}}\n}}\n",
      json_string(command), json_string(found.machine), rows, summary.n, json_number(summary.bias),
      json_number(summary.median), json_number(summary.worst), json_number(summary.geomean),
      json_number(summary.trivial_median), order(found.beyond_10), order(found.from_3_to_10));
}

}  // namespace hemiola::report
