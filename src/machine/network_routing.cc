#include "machine/network_routing.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/digest.h"

namespace hemiola::machine {
namespace {

constexpr std::array<std::string_view, 4> kRoutings{"destination", "pairs", "ecmp", "spray"};

}  // namespace

NetworkRouting network_routing(const Machine& machine) {
  const auto found = machine.attributes.find(kRoutingAttribute);
  if (found == machine.attributes.end()) return NetworkRouting::destination;
  const auto at = std::ranges::find(kRoutings, found->second);
  return static_cast<NetworkRouting>(at - kRoutings.begin());
}

void set_network_routing(Machine& machine, std::string_view name, const SourceLocation& where) {
  if (std::ranges::find(kRoutings, name) == kRoutings.end())
    throw Failure("'" + std::string(name) + "' is no routing", where,
                  "the routings are destination, pairs, ecmp and spray");
  machine.attributes[kRoutingAttribute] = name;
}

std::int32_t path_of_messages(const Machine& machine, const Routes& routes, int from, int to) {
  if (routes.reach != Reach::network) return -1;
  switch (network_routing(machine)) {
    case NetworkRouting::destination:
      return routes.by_destination;
    case NetworkRouting::pairs:
      return (from + to) % routes.count;
    case NetworkRouting::ecmp:
      return static_cast<std::int32_t>(Digest().add(from).add(to).value() %
                                       static_cast<std::uint64_t>(routes.count));
    case NetworkRouting::spray:
      break;
  }
  return -1;
}

std::optional<NodeId> first_nic(const Machine& machine, std::span<const LinkId> path) {
  for (const LinkId link : path) {
    const NodeId to = machine.links[index(link)].to;
    if (machine.nodes[index(to)].kind == NodeKind::nic) return to;
  }
  return std::nullopt;
}

std::vector<int> nic_owners(const Machine& machine, int node_size) {
  std::vector<int> owners;
  std::set<NodeId> seen;
  for (int rank = 0; rank < node_size; ++rank) {
    const std::optional<NodeId> nic =
        first_nic(machine, machine.routes(rank, node_size + rank).path(0));
    if (nic && seen.insert(*nic).second) owners.push_back(rank);
  }
  return owners;
}

}  // namespace hemiola::machine
