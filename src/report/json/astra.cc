#include "report/astra.h"

#include "report/values/json_text.h"

namespace hemiola::report {
namespace {

using workload::AstraResult;
using workload::Workload;

JsonText result_object(const char* engine, const AstraResult& result) {
  std::size_t number = 0;
  const JsonText ranks = json_rows(result.ranks, "        ", [&](const workload::AstraRank& rank) {
    return json_object("rank", number++, "finish_ns", rank.finish_ns, "compute_ns", rank.compute_ns,
                       "host_ns", rank.host_ns, "exposed_ns", rank.exposed_ns, "communication_ns",
                       rank.communication_ns);
  });
  return json_object("engine", engine, "time_fs", result.time_ns * 1'000'000, "time_ns",
                     result.time_ns, "messages", result.messages, "ranks", ranks);
}

}  // namespace

std::string astra_json(const std::string& command, const Workload& workload,
                       const AstraComparison& comparison) {
  std::vector<JsonText> results{result_object("astra-unaware", comparison.unaware)};
  if (comparison.aware) results.push_back(result_object("astra-aware", *comparison.aware));
  if (comparison.ours)
    results.push_back(json_object("engine", comparison.ours_engine, "machine",
                                  comparison.ours->machine->name, "time",
                                  BothUnits{comparison.ours->result.time}));
  return json_file("schema", "hemiola/1", "command", command, "program", workload.name, "engine",
                   "astra", "results", json_list(results, "  "));
}

}  // namespace hemiola::report
