#include "report/astra.h"

#include <fmt/format.h>

#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using workload::AstraResult;
using workload::Workload;

std::string result_object(const char* engine, const AstraResult& result) {
  std::string ranks;
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const workload::AstraRank& rank = result.ranks[r];
    ranks += fmt::format(
        "{}\n        {{\"rank\": {}, \"finish_ns\": {}, \"compute_ns\": {}, "
        "\"host_ns\": {}, \"exposed_ns\": {}, \"communication_ns\": {}}}",
        r > 0 ? "," : "", r, rank.finish_ns, rank.compute_ns, rank.host_ns, rank.exposed_ns,
        rank.communication_ns);
  }
  return fmt::format(
      "    {{\"engine\": \"{}\", \"time_fs\": {}, \"time_ns\": {}, \"messages\": "
      "{}, \"ranks\": [{}]}}",
      engine, result.time_ns * 1'000'000, result.time_ns, result.messages, ranks);
}

}  // namespace

std::string astra_json(const std::string& command, const Workload& workload,
                       const AstraComparison& comparison) {
  std::string results = result_object("astra-unaware", comparison.unaware);
  if (comparison.aware) results += ",\n" + result_object("astra-aware", *comparison.aware);
  if (comparison.ours)
    results += fmt::format(
        ",\n    {{\"engine\": {}, \"machine\": {}, \"time_fs\": {}, "
        "\"time_ns\": {}}}",
        json_string(comparison.ours_engine), json_string(comparison.ours->machine->name),
        comparison.ours->result.time.fs, exact_ns(comparison.ours->result.time));
  return fmt::format(
      "{{\n  \"schema\": \"hemiola/1\",\n  \"command\": {},\n  \"program\": {},\n"
      "  \"engine\": \"astra\",\n  \"results\": [\n{}\n  ]\n}}\n",
      json_string(command), json_string(workload.name), results);
}

}  // namespace hemiola::report
