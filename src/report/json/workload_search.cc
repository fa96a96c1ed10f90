#include "report/workload_search.h"

#include <fmt/format.h>

#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::SearchOutcome;
using workload::SearchRow;

}  // namespace

std::string search_json(const std::string& command, const SearchOutcome& outcome) {
  std::string rows;
  for (const SearchRow& row : outcome.rows) {
    const auto& p = row.parallelism;
    rows += fmt::format(
        "{}\n    {{\"tp\": {}, \"pp\": {}, \"dp\": {}, \"ep\": {}, \"cp\": {}, \"zero\": {}, "
        "\"memory_bytes\": {}, \"time_fs\": {}, \"tokens_per_s_per_gpu\": {}, \"mfu\": {}, "
        "\"refused\": {}}}",
        rows.empty() ? "" : ",", p.tp, p.pp, p.dp, p.ep, p.cp, p.zero, row.memory, row.time.fs,
        json_number(row.tokens_per_second_and_gpu), json_number(row.model_flop_utilisation),
        row.refused.empty() ? "null" : json_string(row.refused));
  }
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"machine\": {},\n  \"program\": "
      "{},\n  \"ranks\": {},\n  \"memory_bytes\": {},\n  \"results\": [{}\n  ]\n}}\n",
      json_string(command), json_string(outcome.machine), json_string(outcome.model), outcome.ranks,
      outcome.memory, rows);
}

}  // namespace hemiola::report
