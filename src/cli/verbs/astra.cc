#include "cli/verbs/astra.h"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "cli/notices.h"
#include "core/lists.h"
#include "core/text.h"
#include "report/astra.h"
#include "workload/scheduler/fold.h"
#include "workload/trace_reader.h"

namespace hemiola::cli {
namespace {

using Files = std::map<std::string, std::string>;

Files files_of(const AstraOptions& astra) {
  Files files = pairs_of("--astra", astra.files);
  static const std::vector<std::string> kKeys{"workload", "system", "network", "memory", "groups"};
  for (const auto& [key, file] : files) {
    if (std::ranges::find(kKeys, key) == kKeys.end())
      throw Failure("'" + key + "' is no input of ASTRA-sim", {.file = "--astra"},
                    "there are: " + joined(kKeys));
  }
  if (!astra.workload.empty()) files["workload"] = astra.workload;
  for (const char* key : {"workload", "system", "network"}) {
    if (files.count(key) == 0)
      throw Failure(fmt::format("no {} is given", key), {.file = "--astra"},
                    fmt::format("add {}=FILE", key));
  }
  return files;
}

/// A machine like the network: its links, the default GPU. Nothing: no built-in is like it.
std::optional<MachineOptions> machine_like(const workload::AstraNetwork& network) {
  if (network.dimensions.size() != 1) return std::nullopt;
  const auto& dimension = network.dimensions.front();
  if (dimension.topology == workload::AstraNetwork::Topology::fully_connected) return std::nullopt;
  const bool is_ring = dimension.topology == workload::AstraNetwork::Topology::ring;
  const double bytes = dimension.bandwidth * 1073741824.0;
  return MachineOptions{
      .machine = fmt::format("{}:{}", is_ring ? "ring" : "switch", dimension.npus),
      .set = {fmt::format("link.*.bandwidth={:.0f} B/s", bytes),
              fmt::format("link.*.latency={:.0f} ps", dimension.latency_ns * 1000)}};
}

}  // namespace

ExitCode run_astra_verb(const AstraOptions& astra, const MachineOptions& machine,
                        const IterationOptions& iteration, Session& session) {
  const Files files = files_of(astra);
  const auto file = [&](const char* key) {
    const auto at = files.find(key);
    return at == files.end() ? std::string() : at->second;
  };
  Diagnostics found;
  workload::AstraConfiguration configuration;
  configuration.system =
      workload::read_astra_system(read_file(file("system")), file("system"), found);
  configuration.network = workload::read_astra_network(read_file(file("network")), file("network"));
  if (!file("memory").empty())
    configuration.memory =
        workload::read_astra_memory(read_file(file("memory")), file("memory"), found);
  auto workload = std::make_shared<const workload::Workload>(workload::read_workload(
      {.path = file("workload"), .lenient = astra.lenient, .groups = file("groups")}));
  Notices notices(session);
  notices.show(found);
  report::AstraComparison comparison;
  comparison.unaware = workload::run_astra(*workload, configuration, {.monitor = &session.monitor});
  notices.show(comparison.unaware.notices);
  if (configuration.network.dimensions.size() == 1) {
    configuration.aware = true;
    comparison.aware = workload::run_astra(*workload, configuration, {.monitor = &session.monitor});
  }
  const auto like =
      machine.machine.empty() ? machine_like(configuration.network) : std::optional(machine);
  if (astra.only) {
    comparison.not_ours = "not asked for with --engine astra";
  } else if (!like) {
    comparison.not_ours = "no built-in machine is like the network: say --machine";
  } else {
    Progress progress(session);
    progress.doing("running " + workload->name);
    auto folded = std::make_shared<const workload::Workload>(workload::fold(*workload));
    const auto request = iteration_request(std::move(folded), "", *like, iteration, session);
    comparison.ours = workload::run_iteration(session.laboratory, request);
    comparison.ours_engine = iteration.words.engine;
  }
  report::print_astra(std::cout, *workload, comparison);
  if (!iteration.json.empty())
    write_file(iteration.json, report::astra_json(session.command, *workload, comparison));
  return ExitCode::done;
}

}  // namespace hemiola::cli
