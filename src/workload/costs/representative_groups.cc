#include "workload/costs/representative_groups.h"

#include <algorithm>
#include <set>

namespace hemiola::workload {
namespace {

/// What a group's neighbours reach each other through: NICs of the network, else links. (Links of
/// the network spread over so many ways that all groups would share some.)
std::set<std::int64_t> ways_of(const machine::Machine& machine, const std::vector<int>& group) {
  std::set<std::int64_t> ways;
  if (group.size() < 2) return ways;
  const auto add = [&](int from, int to) {
    const machine::Routes& routes = machine.routes(from, to);
    for (const machine::LinkId link : routes.links) {
      if (routes.reach == machine::Reach::load_store) {
        ways.insert(link);
        continue;
      }
      const machine::Link& one = machine.links[index(link)];
      if (machine.nodes[index(one.from)].kind == machine::NodeKind::nic)
        ways.insert(-1 - static_cast<std::int64_t>(one.from));
    }
  };
  for (std::size_t i = 0; i < group.size(); ++i) add(group[i], group[(i + 1) % group.size()]);
  return ways;
}

}  // namespace

std::vector<std::size_t> representative_groups(const machine::Machine& machine, const Place& place,
                                               int rank) {
  // In a ring the rank is in two pairs; the one that it begins is its own.
  auto own =
      std::ranges::find_if(place.groups, [&](const auto& group) { return group.front() == rank; });
  if (own == place.groups.end())
    own = std::ranges::find_if(place.groups, [&](const auto& group) {
      return std::ranges::find(group, rank) != group.end();
    });
  if (own == place.groups.end()) return {};
  const auto first = index(own - place.groups.begin());
  std::vector<std::size_t> result{first};
  const std::set<std::int64_t> ways = ways_of(machine, *own);
  if (ways.empty()) return result;
  for (std::size_t g = 0; g < place.groups.size(); ++g) {
    if (g == first) continue;
    const std::set<std::int64_t> others = ways_of(machine, place.groups[g]);
    const bool shares =
        std::ranges::any_of(ways, [&](std::int64_t way) { return others.count(way) != 0; });
    if (shares) result.push_back(g);
  }
  return result;
}

}  // namespace hemiola::workload
