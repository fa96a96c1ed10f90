#include "workload/traces/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "core/diagnostics.h"
#include "workload/followers.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {
namespace {

using NodeIndices = std::vector<std::uint32_t>;

bool are_ordered(const Trace& trace) {
  for (std::uint32_t i = 0; i < trace.nodes.size(); ++i)
    if (std::ranges::any_of(trace.dependencies_of(trace.nodes[i]),
                            [&](std::uint32_t other) { return other >= i; }))
      return false;
  return true;
}

/// `left[i]` is not zero for nodes in a cycle or behind one: from any of them, one of its
/// dependencies is such a node too, so that the way ends in a cycle.
[[noreturn]] void fail_with_cycle(const Trace& trace, const NodeIndices& left,
                                  const std::vector<std::string>& names) {
  const std::vector<Node>& nodes = trace.nodes;
  std::uint32_t at = 0;
  while (left[at] == 0) ++at;
  std::vector<bool> seen(nodes.size());
  NodeIndices way;
  while (!seen[at]) {
    seen[at] = true;
    way.push_back(at);
    const auto waited = trace.dependencies_of(nodes[at]);
    at = *std::ranges::find_if(waited, [&](std::uint32_t other) { return left[other] != 0; });
  }
  way.erase(way.begin(), std::ranges::find(way, at));
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(way.size(), kShown); ++i) {
    const Node& node = nodes[way[i]];
    text += fmt::format("{} '{}' for ", node.id, shorten(names[node.name]));
  }
  if (way.size() > kShown) text += fmt::format("... ({} nodes) for ", way.size());
  text += fmt::format("{} '{}'", nodes[at].id, shorten(names[nodes[at].name]));
  throw Failure("nodes wait for each other: " + text, {.file = trace.source}, {},
                ExitCode::deadlock);
}

}  // namespace

std::vector<std::uint32_t> order_nodes(const Trace& trace, const std::vector<std::string>& names) {
  if (are_ordered(trace)) return {};
  const std::size_t count = trace.nodes.size();
  const Followers followers = followers_of(count, [&](const auto& visit) {
    for (std::uint32_t i = 0; i < count; ++i)
      for (const std::uint32_t other : trace.dependencies_of(trace.nodes[i])) visit(other, i);
  });
  NodeIndices left;
  for (const Node& node : trace.nodes) left.push_back(node.dependencies);
  std::priority_queue<std::uint32_t, NodeIndices, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i)
    if (left[i] == 0) ready.push(i);
  NodeIndices order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::uint32_t at = ready.top();
    ready.pop();
    order.push_back(at);
    for (const std::uint32_t waiting : followers.of(at))
      if (--left[waiting] == 0) ready.push(waiting);
  }
  if (order.size() != count) fail_with_cycle(trace, left, names);
  return order;
}

}  // namespace hemiola::workload
