#include <algorithm>

#include "workload/scheduler/schedule.h"

namespace hemiola::workload {

std::vector<PathStep> critical_path(const Workload& workload, const ScheduleResult& schedule) {
  std::vector<PathStep> path;
  PathStep at;
  Time latest{-1};
  for (std::size_t c = 0; c < schedule.nodes.size(); ++c) {
    for (std::size_t n = 0; n < schedule.nodes[c].size(); ++n) {
      if (schedule.nodes[c][n].end <= latest) continue;
      latest = schedule.nodes[c][n].end;
      at = {static_cast<std::int32_t>(c), static_cast<std::uint32_t>(n)};
    }
  }
  if (latest.fs < 0) return path;
  const auto times_of = [&](const PathStep& step) -> const NodeTimes& {
    return schedule.nodes[index(step.rank_class)][step.node];
  };
  for (;;) {
    // Who came last to a call is why it began.
    if (times_of(at).meeting != kNoNode) {
      const Meeting& meeting = schedule.meetings[times_of(at).meeting];
      at = {meeting.last_class, meeting.last_node};
    }
    const NodeTimes& times = times_of(at);
    const bool takes_time = times.end > times.begin;
    if (takes_time) path.push_back(at);
    if (times.ready.fs == 0) break;
    if (times.cause != kNoNode) {
      at.node = times.cause;
      continue;
    }
    // The CPU came to it late: on with what the CPU waited for last.
    const Trace& trace = *workload.classes[index(at.rank_class)].trace;
    std::uint32_t node = at.node;
    while (node > 0 && trace.nodes[node - 1].kind != NodeKind::host) --node;
    if (node == 0) break;
    at.node = node - 1;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace hemiola::workload
