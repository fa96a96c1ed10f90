// The JSON and CSV of `validate`.
#include <fmt/format.h>

#include <algorithm>

#include "core/lists.h"
#include "report/validation.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using study::Judgement;
using study::RowResult;

std::string simulated_us(const RowResult& row) {
  if (!row.skipped.empty()) return "null";
  return fmt::format("{}.{:09}", row.simulated.fs / 1'000'000'000,
                     row.simulated.fs % 1'000'000'000);
}

JsonText row_object(const Judgement& judgement, const RowResult& row) {
  const bool simulated = row.skipped.empty();
  JsonObject object;
  object.add("entry", judgement.name, "line", row.measured.line, "size_bytes", row.measured.size,
             "ranks", row.ranks, "dtype", name_of(row.type), "measured_us", row.measured.time_us,
             "simulated_us", JsonText{simulated_us(row)}, "error",
             simulated ? std::optional(row.errors.simulated) : std::nullopt, "trivial_error",
             row.errors.trivial);
  if (simulated)
    object.add("program", row.program, "simulated_size_bytes", row.simulated_size);
  else
    object.add("not_simulated", row.skipped);
  return object.json();
}

JsonText summary_object(const study::Summaries& summaries, const std::string& indent) {
  JsonObject object(indent + "  ");
  for (std::size_t regime = 0; regime < summaries.size(); ++regime) {
    const study::Summary& summary = summaries[regime];
    const auto number = [&](double value) {
      return summary.n > 0 ? std::optional(value) : std::nullopt;
    };
    object.add(
        name_of(static_cast<study::Regime>(regime)),
        json_object("n", summary.n, "bias", number(summary.bias), "median", number(summary.median),
                    "worst", number(summary.worst), "geomean", number(summary.geomean),
                    "trivial_median", number(summary.trivial_median), "median_with_software",
                    number(summary.median_with_software)));
  }
  return object.json();
}

JsonText entry_object(const Judgement& judgement) {
  const study::TrivialModel& trivial = judgement.validation.trivial;
  const std::string indent = "      ";
  JsonObject object(indent);
  object.add("name", judgement.name, "kind",
             judgement.kind ? std::optional(name_of(*judgement.kind)) : std::nullopt, "table",
             judgement.table, "where", judgement.where, "machine", judgement.machine, "program",
             judgement.program, "launch", name_of(judgement.options.launch), "warmup",
             judgement.options.warmup, "iterations", judgement.options.iterations, "checked",
             judgement.validation.checked);
  object.add("trivial",
             json_object("latency_us", trivial.latency_us, "us_per_byte", trivial.us_per_byte,
                         "scale", trivial_scale(judgement.validation), "fitted_to",
                         trivial.fitted_to, "rows", trivial.rows));
  object.add("software_us", judgement.validation.software_us, "summary",
             summary_object(judgement.summaries, indent));
  return object.json();
}

JsonText order_object(const study::OrderResult& order) {
  return json_object("name", order.name, "sizes", order.sizes, "decided", order.decided, "right",
                     order.right, "measured_crossover_bytes", order.measured_crossover,
                     "simulated_crossover_bytes", order.simulated_crossover);
}

JsonText micro_object(const study::MicroResult& one) {
  return json_object("name", one.name, "hardware", one.measured.hardware, "metric",
                     one.measured.metric, "machine", one.machine, "program", one.program, "unit",
                     one.measured.unit, "measured", one.measured.value, "simulated", one.simulated,
                     "error", one.error, "checked", one.checked);
}

/// Distinct names in order of appearance, with commas.
template <typename Name>
std::string distinct(const std::vector<Judgement>& judgements, Name name) {
  std::vector<std::string> names;
  for (const Judgement& judgement : judgements)
    if (std::ranges::find(names, name(judgement)) == names.end()) names.push_back(name(judgement));
  return joined(names);
}

}  // namespace

std::string validation_json(const std::string& command, const std::vector<Judgement>& judgements,
                            const std::vector<study::OrderResult>& orders,
                            const std::vector<study::MicroResult>& micro, bool interrupted) {
  std::vector<JsonText> rows;
  std::vector<RowResult> all;
  for (const Judgement& judgement : judgements) {
    for (const RowResult& row : judgement.validation.rows) {
      rows.push_back(row_object(judgement, row));
      all.push_back(row);
    }
  }
  return json_file(
      "schema", "hemiola/1", "command", command, "machine",
      distinct(judgements, [](const Judgement& j) { return j.machine; }), "program",
      distinct(judgements, [](const Judgement& j) { return j.program; }), "engine",
      distinct(judgements,
               [](const Judgement& j) { return std::string(sim::name_of(j.options.engine)); }),
      "interrupted", interrupted, "rows", json_lines(rows, "  "), "summary",
      summary_object(study::summarise_regimes(all), "  "), "entries",
      json_lines(judgements, "  ", entry_object), "comparisons",
      json_list(orders, "  ", order_object), "micro", json_list(micro, "  ", micro_object));
}

std::string validation_csv(const std::vector<Judgement>& judgements) {
  std::string text =
      "entry,table,line,size_bytes,ranks,dtype,measured_us,simulated_us,error,trivial_error,"
      "program,"
      "simulated_size_bytes,not_simulated\n";
  for (const Judgement& judgement : judgements) {
    for (const RowResult& row : judgement.validation.rows) {
      const bool simulated = row.skipped.empty();
      text += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(judgement.name),
          csv_cell(judgement.table), row.measured.line, row.measured.size.count, row.ranks,
          name_of(row.type), row.measured.time_us, simulated ? simulated_us(row) : "",
          simulated ? json_of(row.errors.simulated) : "", row.errors.trivial, csv_cell(row.program),
          simulated ? std::to_string(row.simulated_size.count) : "", csv_cell(row.skipped));
    }
  }
  return text;
}

}  // namespace hemiola::report
