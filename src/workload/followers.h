// Who waits for whom in a trace, and the other way round.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "workload/workload.h"

namespace hemiola::workload {

/// Calls visit(before, node) for all that nodes wait for: what they depend on, and on a stream in
/// order the node before.
template <class Visit>
void each_wait(const Workload& workload, const Trace& trace, const Visit& visit) {
  std::vector<std::uint32_t> last(workload.streams.size(), kNoNode);
  for (std::uint32_t n = 0; n < trace.nodes.size(); ++n) {
    const Node& node = trace.nodes[n];
    for (const std::uint32_t before : trace.dependencies_of(node)) visit(before, n);
    if (!workload.streams[node.stream].in_order) continue;
    if (last[node.stream] != kNoNode) visit(last[node.stream], n);
    last[node.stream] = n;
  }
}

/// By node, those that wait for it: lists of all nodes, one behind the other.
struct Followers {
  std::vector<std::uint32_t> first, nodes;
  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(first[node], first[node + 1] - first[node]);
  }
};
/// `each(visit)` calls visit(before, node) for all of them, twice the same.
template <class Each>
Followers followers_of(std::size_t count, const Each& each) {
  Followers found{.first = std::vector<std::uint32_t>(count + 1), .nodes = {}};
  each([&](std::uint32_t before, std::uint32_t) { ++found.first[before + 1]; });
  std::partial_sum(found.first.begin(), found.first.end(), found.first.begin());
  found.nodes.resize(found.first.back());
  std::vector<std::uint32_t> next(found.first.begin(), found.first.end() - 1);
  each([&](std::uint32_t before, std::uint32_t node) { found.nodes[next[before]++] = node; });
  return found;
}

}  // namespace hemiola::workload
