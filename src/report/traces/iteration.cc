// The Perfetto trace of an iteration.
#include <fmt/format.h>

#include <map>

#include "report/iteration.h"
#include "report/traces/perfetto_writer.h"

namespace hemiola::report {
namespace {

using workload::IterationOutcome;
using workload::NodeTimes;
using workload::Workload;

}  // namespace

std::string iteration_trace(const IterationOutcome& outcome) {
  const Workload& workload = *outcome.workload;
  PerfettoWriter writer;
  for (std::size_t c = 0; c < workload.classes.size(); ++c) {
    const auto& one = workload.classes[c];
    const std::uint64_t process = writer.process(
        static_cast<int>(c) + 1, fmt::format("{} ({} ranks)", one.name, one.ranks.size()));
    std::map<std::uint16_t, std::uint64_t> tracks;
    for (std::size_t n = 0; n < one.trace->nodes.size(); ++n) {
      const workload::Node& node = one.trace->nodes[n];
      const NodeTimes& times = outcome.result.nodes[c][n];
      if (times.end == times.begin) continue;
      auto [track, is_new] = tracks.emplace(node.stream, 0);
      if (is_new) track->second = writer.track(process, workload.streams[node.stream].name);
      writer.begin(track->second, workload.names[node.name], times.begin, times.end);
      writer.end(track->second, times.begin, times.end);
    }
  }
  const std::uint64_t process =
      writer.process(static_cast<int>(workload.classes.size()) + 1, "critical path");
  const std::uint64_t track = writer.track(process, "nodes");
  for (const workload::PathStep& step : outcome.path) {
    const auto c = index(step.rank_class);
    const NodeTimes& times = outcome.result.nodes[c][step.node];
    writer.begin(track,
                 fmt::format("{}: {}", workload.classes[c].name,
                             workload.names[workload.classes[c].trace->nodes[step.node].name]),
                 times.begin, times.end);
    writer.end(track, times.begin, times.end);
  }
  return writer.finish();
}

}  // namespace hemiola::report
