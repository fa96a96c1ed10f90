#include "report/workload_search.h"

#include "report/values/json_text.h"

namespace hemiola::report {

std::string search_json(const std::string& command, const workload::SearchOutcome& outcome) {
  return json_file("schema", "hemiola/1", "command", command, "machine", outcome.machine, "program",
                   outcome.model, "ranks", outcome.ranks, "memory_bytes", outcome.memory, "results",
                   json_lines(outcome.rows, "  ", [](const workload::SearchRow& row) {
                     const auto& p = row.parallelism;
                     return json_object(
                         "tp", p.tp, "pp", p.pp, "dp", p.dp, "ep", p.ep, "cp", p.cp, "zero", p.zero,
                         "memory_bytes", row.memory, "time_fs", row.time, "tokens_per_s_per_gpu",
                         row.tokens_per_second_and_gpu, "mfu", row.model_flop_utilisation,
                         "refused",
                         row.refused.empty() ? std::nullopt : std::optional(row.refused));
                   }));
}

}  // namespace hemiola::report
