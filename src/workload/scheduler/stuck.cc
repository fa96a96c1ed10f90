#include "workload/scheduler/stuck.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/diagnostics.h"
#include "core/lists.h"

namespace hemiola::workload {
namespace {

std::string ranks_of(const RankClass& one) {
  if (one.ranks.size() == 1) return fmt::format("rank {}", one.ranks.front());
  const auto [least, most] = std::ranges::minmax_element(one.ranks);
  if (*most - *least + 1 == static_cast<int>(one.ranks.size()))
    return fmt::format("ranks {}-{}", *least, *most);
  return fmt::format("ranks {} and {} more", one.ranks.front(), one.ranks.size() - 1);
}

const RankClass& class_at(const Workload& workload, std::int32_t number) {
  return workload.classes[index(number)];
}

/// Nodes of a class that wait for each other in a circle; empty: there is none.
std::vector<std::uint32_t> circle_of(const Workload& workload, std::int32_t number,
                                     const std::vector<std::int32_t>& open) {
  const Trace& trace = *class_at(workload, number).trace;
  std::vector<std::uint32_t> previous(trace.nodes.size(), kNoNode);
  std::vector<std::uint32_t> last(workload.streams.size(), kNoNode);
  for (std::uint32_t n = 0; n < trace.nodes.size(); ++n) {
    const Node& node = trace.nodes[n];
    if (workload.streams[node.stream].in_order) {
      previous[n] = last[node.stream];
      last[node.stream] = n;
    }
  }
  // Whatever waits has one before it that waits, too: going back comes to a circle, or to a call.
  const auto waits = [&](std::uint32_t n) { return open[n] > 0; };
  const auto start = std::ranges::find_if(open, [](auto count) { return count > 0; });
  if (start == open.end()) return {};
  std::vector<std::uint32_t> path;
  std::vector<bool> seen(trace.nodes.size());
  auto at = static_cast<std::uint32_t>(start - open.begin());
  while (!seen[at]) {
    seen[at] = true;
    path.push_back(at);
    std::uint32_t next = kNoNode;
    for (const std::uint32_t before : trace.dependencies_of(trace.nodes[at]))
      if (open[before] >= 0 && (next == kNoNode || waits(before))) next = before;
    if (next == kNoNode && previous[at] != next && open[previous[at]] >= 0) next = previous[at];
    if (next == kNoNode || !waits(next)) return {};
    at = next;
  }
  path.erase(path.begin(), std::ranges::find(path, at));
  return path;
}

}  // namespace

std::string title(const Workload& workload, const Member& member) {
  const RankClass& one = class_at(workload, member.rank_class);
  const Node& node = one.trace->nodes[member.node];
  return fmt::format("{}'s node {} '{}'", ranks_of(one), node.id, workload.names[node.name]);
}

std::string inference(const Workload& workload, const Node& node) {
  const Call call = call_of(workload, node.kind, node.work);
  const GroupFamily& family = workload.families[index(call.family)];
  if (family.inferred.empty()) return {};
  return fmt::format("; the ranks of '{}' are inferred: {} (--groups says otherwise)", family.name,
                     family.inferred);
}

void report_stuck(const Workload& workload, const std::vector<Stuck>& stuck,
                  const OpenNodes& open) {
  Diagnostics found;
  const SourceLocation where{.file = workload.source};
  constexpr std::size_t kMost = 8;
  for (std::size_t s = 0; s < stuck.size() && s < kMost; ++s) {
    std::string missing;
    for (const std::int32_t c : stuck[s].missing)
      missing += (missing.empty() ? "" : ", ") + ranks_of(class_at(workload, c));
    const Member& first = stuck[s].members.front();
    const Node& node = class_at(workload, first.rank_class).trace->nodes[first.node];
    if (node.kind == NodeKind::send || node.kind == NodeKind::receive) {
      if (missing.empty()) missing = ranks_of(class_at(workload, first.rank_class));
      found.error(fmt::format("{} ({}) waits for ever for the {} of {}{}", title(workload, first),
                              name_of(node.kind), node.kind == NodeKind::send ? "receive" : "send",
                              missing, inference(workload, node)),
                  where);
    } else {
      found.error(fmt::format("{} waits for ever for {} to call it, too{}", title(workload, first),
                              missing, inference(workload, node)),
                  where);
    }
  }
  for (std::size_t c = 0; c < open.size() && !found.has_errors(); ++c) {
    const auto number = static_cast<std::int32_t>(c);
    const std::vector<std::uint32_t> circle = circle_of(workload, number, open[c]);
    if (circle.empty()) continue;
    std::string text;
    for (const std::uint32_t n : circle) text += title(workload, {number, n}) + " after ";
    found.error("nodes wait for each other in a circle: " + text +
                    title(workload, {number, circle.front()}),
                where);
  }
  if (!found.has_errors()) found.error("nodes never begin, and nothing says why", where);
  throw Failure(found, ExitCode::deadlock);
}

}  // namespace hemiola::workload
