#include "workload/hlo/reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "workload/hlo/groups.h"
#include "workload/hlo/module.h"
#include "workload/hlo/nodes.h"
#include "workload/traces/assembly.h"

namespace hemiola::workload {
namespace {

/// What a module says itself, or has no use for.
void refuse_options_of_traces(const TraceRequest& request) {
  const auto refuse = [](const char* option, const std::string& reason) {
    throw Failure(reason, {.file = option}, "leave it out");
  };
  if (request.replicate) refuse("--replicate", "an HLO module says on how many devices it runs");
  if (!request.groups.empty())
    refuse("--groups", "an HLO module has the groups of its collectives");
  if (!request.sizes.empty())
    refuse("--call-sizes", "an HLO module has the sizes of its collectives");
}

/// Ranks that send and receive the same messages, by these messages.
std::map<std::vector<std::int32_t>, std::vector<int>> ranks_by_messages(
    const std::vector<hlo::Permute>& permutes, int ranks) {
  std::map<std::vector<std::int32_t>, std::vector<int>> classes;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<std::int32_t> messages;
    messages.reserve(2 * permutes.size());
    for (const hlo::Permute& permute : permutes) {
      messages.push_back(permute.sends[index(rank)]);
      messages.push_back(permute.receives[index(rank)]);
    }
    classes[std::move(messages)].push_back(rank);
  }
  return classes;
}

/// The nodes of ranks with these messages; of others, nothing stands in the place of a message.
std::shared_ptr<const Trace> trace_of(const std::string& file, const hlo::ModuleWalk& walk,
                                      const std::vector<std::int32_t>& messages) {
  auto trace = std::make_shared<Trace>(walk.trace());
  trace->source = file;
  for (Node& node : trace->nodes) {
    if (node.kind != NodeKind::send && node.kind != NodeKind::receive) continue;
    const auto at = 2 * index(node.work);
    node.work = messages[node.kind == NodeKind::send ? at : at + 1];
    if (node.work < 0) node.kind = NodeKind::nothing;
  }
  return trace;
}

std::string summary(const hlo::Module& module, const hlo::Devices& devices,
                    const hlo::ModuleWalk& walk) {
  std::string text =
      fmt::format("module '{}' runs on {} device{} and makes {} nodes on each", module.name,
                  devices.ranks(), devices.ranks() == 1 ? "" : "s", walk.trace().nodes.size());
  if (walk.loops().empty()) return text;
  constexpr std::size_t kMostShown = 3;
  const std::size_t shown = std::min(kMostShown, walk.loops().size());
  text += fmt::format("; loops are unrolled: {}",
                      fmt::join(walk.loops().begin(),
                                walk.loops().begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < walk.loops().size()) text += fmt::format(" and {} more", walk.loops().size() - shown);
  return text;
}

}  // namespace

Workload read_hlo(const TraceRequest& request, const std::string& file, std::string text) {
  refuse_options_of_traces(request);
  const hlo::Module module = hlo::parse(file, std::move(text));
  const hlo::Devices devices = hlo::devices_of(module);
  WorkloadBuilder builder(request.name.empty() ? std::string(module.name) : request.name,
                          devices.ranks());
  builder.workload().source = file;
  Tally tally;
  tally.begin_file(file);
  hlo::ModuleWalk walk(module, devices, request.lenient, builder, tally);
  walk.run();
  for (auto& [messages, ranks] : ranks_by_messages(walk.permutes(), devices.ranks())) {
    const bool is_all = static_cast<int>(ranks.size()) == devices.ranks();
    std::string name = is_all ? "all" : fmt::format("rank {}", ranks.front());
    if (!is_all && ranks.size() > 1) name += fmt::format(" and {} more", ranks.size() - 1);
    builder.workload().classes.push_back({name, trace_of(file, walk, messages), std::move(ranks)});
  }
  std::vector<Diagnostic>& notices = builder.workload().notices;
  notices.push_back({Severity::note, summary(module, devices, walk), {.file = file}, {}});
  tally.report(notices);
  return builder.take();
}

}  // namespace hemiola::workload
