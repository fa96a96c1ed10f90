// The JSON and CSV of `validate`.
#include <fmt/format.h>

#include <algorithm>

#include "report/validation.h"
#include "report/values/json_lists.h"
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

std::string row_object(const Judgement& judgement, const RowResult& row) {
  const bool simulated = row.skipped.empty();
  std::string text = fmt::format(
      "{{\"entry\": {}, \"line\": {}, \"size_bytes\": {}, \"ranks\": {}, \"dtype\": {}, "
      "\"measured_us\": {}, \"simulated_us\": {}, \"error\": {}, \"trivial_error\": {}",
      json_string(judgement.name), row.measured.line, row.measured.size.count, row.ranks,
      json_string(name_of(row.type)), json_number(row.measured.time_us), simulated_us(row),
      simulated ? json_number(row.errors.simulated) : "null", json_number(row.errors.trivial));
  if (simulated) {
    text += fmt::format(", \"program\": {}, \"simulated_size_bytes\": {}", json_string(row.program),
                        row.simulated_size.count);
  } else {
    text += fmt::format(", \"not_simulated\": {}", json_string(row.skipped));
  }
  return text + "}";
}

std::string summary_object(const study::Summaries& summaries, const std::string& indent) {
  std::size_t regime = 0;
  return json_list(
      summaries, indent,
      [&](const study::Summary& summary) {
        const auto number = [&](double value) {
          return summary.n > 0 ? json_number(value) : "null";
        };
        return fmt::format(
            "{}: {{\"n\": {}, \"bias\": {}, \"median\": {}, \"worst\": {}, \"geomean\": {}, "
            "\"trivial_median\": {}, \"median_with_software\": {}}}",
            json_string(name_of(static_cast<study::Regime>(regime++))), summary.n,
            number(summary.bias), number(summary.median), number(summary.worst),
            number(summary.geomean), number(summary.trivial_median),
            number(summary.median_with_software));
      },
      "{}");
}

std::string entry_object(const Judgement& judgement) {
  const study::TrivialModel& trivial = judgement.validation.trivial;
  std::string text = fmt::format(
      "    {{\n      \"name\": {},\n      \"kind\": {},\n      \"table\": {},\n      \"where\": "
      "{},\n"
      "      \"machine\": {},\n      \"program\": {},\n      \"launch\": \"{}\",\n"
      "      \"warmup\": {},\n      \"iterations\": {},\n      \"checked\": {},\n",
      json_string(judgement.name), judgement.kind ? json_string(name_of(*judgement.kind)) : "null",
      json_string(judgement.table), json_string(judgement.where), json_string(judgement.machine),
      json_string(judgement.program),
      judgement.options.launch == sim::Launch::graph ? "graph" : "stream", judgement.options.warmup,
      judgement.options.iterations, json_string(judgement.validation.checked));
  text += fmt::format(
      "      \"trivial\": {{\"latency_us\": {}, \"us_per_byte\": {}, \"scale\": {}, "
      "\"fitted_to\": {}, \"rows\": {}}},\n",
      json_number(trivial.latency_us), json_number(trivial.us_per_byte),
      json_string(trivial_scale(judgement.validation)), json_string(trivial.fitted_to),
      trivial.rows);
  const std::optional<double> software = judgement.validation.software_us;
  text += fmt::format("      \"software_us\": {},\n", software ? json_number(*software) : "null");
  return text + "      \"summary\": " + summary_object(judgement.summaries, "      ") + "\n    }";
}

std::string order_object(const study::OrderResult& order) {
  const auto bytes = [](const std::optional<Bytes>& size) {
    return size ? std::to_string(size->count) : "null";
  };
  return fmt::format(
      "{{\"name\": {}, \"sizes\": {}, \"decided\": {}, \"right\": {}, "
      "\"measured_crossover_bytes\": {}, \"simulated_crossover_bytes\": {}}}",
      json_string(order.name), order.sizes, order.decided, order.right,
      bytes(order.measured_crossover), bytes(order.simulated_crossover));
}

std::string micro_object(const study::MicroResult& one) {
  return fmt::format(
      "{{\"name\": {}, \"hardware\": {}, \"metric\": {}, \"machine\": {}, \"program\": {}, "
      "\"unit\": {}, \"measured\": {}, \"simulated\": {}, \"error\": {}, \"checked\": {}}}",
      json_string(one.name), json_string(one.measured.hardware), json_string(one.measured.metric),
      json_string(one.machine), json_string(one.program), json_string(one.measured.unit),
      json_number(one.measured.value), json_number(one.simulated), json_number(one.error),
      json_string(one.checked));
}

/// Distinct names in order of appearance, with commas.
template <typename Name>
std::string distinct(const std::vector<Judgement>& judgements, Name name) {
  std::vector<std::string> names;
  for (const Judgement& judgement : judgements)
    if (std::ranges::find(names, name(judgement)) == names.end()) names.push_back(name(judgement));
  return json_string(joined(names));
}

}  // namespace

std::string validation_json(const std::string& command, const std::vector<Judgement>& judgements,
                            const std::vector<study::OrderResult>& orders,
                            const std::vector<study::MicroResult>& micro, bool interrupted) {
  std::string rows, entries;
  std::vector<RowResult> all;
  for (const Judgement& judgement : judgements) {
    entries += (entries.empty() ? "\n" : ",\n") + entry_object(judgement);
    for (const RowResult& row : judgement.validation.rows) {
      rows += (rows.empty() ? "\n    " : ",\n    ") + row_object(judgement, row);
      all.push_back(row);
    }
  }
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"machine\": {},\n"
      "  \"program\": {},\n  \"engine\": {},\n  \"interrupted\": {},\n  \"rows\": [{}\n  ],\n"
      "  \"summary\": {},\n  \"entries\": [{}\n  ],\n"
      "  \"comparisons\": {},\n  \"micro\": {}\n}}\n",
      json_string(command), distinct(judgements, [](const Judgement& j) { return j.machine; }),
      distinct(judgements, [](const Judgement& j) { return j.program; }),
      distinct(judgements,
               [](const Judgement& j) { return std::string(sim::name_of(j.options.engine)); }),
      interrupted, rows, summary_object(study::summarise_regimes(all), "  "), entries,
      json_list(orders, "  ", order_object), json_list(micro, "  ", micro_object));
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
          simulated ? json_number(row.errors.simulated) : "", row.errors.trivial,
          csv_cell(row.program), simulated ? std::to_string(row.simulated_size.count) : "",
          csv_cell(row.skipped));
    }
  }
  return text;
}

}  // namespace hemiola::report
