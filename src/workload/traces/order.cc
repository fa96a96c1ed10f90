#include "workload/traces/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "core/diagnostics.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {
namespace {

using NodeIndices = std::vector<std::uint32_t>;

bool are_ordered(const std::vector<Node>& nodes, const NodeIndices& dependencies) {
  for (std::uint32_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t d = 0; d < nodes[i].dependencies; ++d)
      if (dependencies[nodes[i].first_dependency + d] >= i) return false;
  }
  return true;
}

/// `left[i]` is not zero for nodes in a cycle or behind one: from any of them, one of its
/// dependencies is such a node too, so that the way ends in a cycle.
[[noreturn]] void fail_with_cycle(const std::vector<Node>& nodes, const NodeIndices& dependencies,
                                  const NodeIndices& left, const std::vector<std::string>& names,
                                  const std::string& file) {
  std::uint32_t at = 0;
  while (left[at] == 0) ++at;
  std::vector<bool> seen(nodes.size());
  NodeIndices way;
  while (!seen[at]) {
    seen[at] = true;
    way.push_back(at);
    const Node& node = nodes[at];
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      const std::uint32_t other = dependencies[node.first_dependency + d];
      if (left[other] == 0) continue;
      at = other;
      break;
    }
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
  throw Failure("nodes wait for each other: " + text, {.file = file}, {}, ExitCode::deadlock);
}

}  // namespace

std::vector<std::uint32_t> order_nodes(const std::vector<Node>& nodes,
                                       const NodeIndices& dependencies,
                                       const std::vector<std::string>& names,
                                       const std::string& file) {
  if (are_ordered(nodes, dependencies)) return {};
  const std::size_t count = nodes.size();
  // Who waits for a node: lists of all nodes, one behind the other.
  NodeIndices first(count + 1), left(count), waiting(dependencies.size());
  for (const std::uint32_t other : dependencies) ++first[other + 1];
  for (std::size_t i = 0; i < count; ++i) first[i + 1] += first[i];
  NodeIndices next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    left[i] = nodes[i].dependencies;
    for (std::uint32_t d = 0; d < nodes[i].dependencies; ++d)
      waiting[next[dependencies[nodes[i].first_dependency + d]]++] = i;
  }
  std::priority_queue<std::uint32_t, NodeIndices, std::greater<>> ready;
  for (std::uint32_t i = 0; i < count; ++i)
    if (left[i] == 0) ready.push(i);
  NodeIndices order;
  order.reserve(count);
  while (!ready.empty()) {
    const std::uint32_t at = ready.top();
    ready.pop();
    order.push_back(at);
    for (std::uint32_t w = first[at]; w < first[at + 1]; ++w)
      if (--left[waiting[w]] == 0) ready.push(waiting[w]);
  }
  if (order.size() != count) fail_with_cycle(nodes, dependencies, left, names, file);
  return order;
}

}  // namespace hemiola::workload
