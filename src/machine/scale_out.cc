#include "machine/scale_out.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace hemiola::machine {
namespace {

/// A network between nodes. Bandwidth: vendor data sheets. Latency of a cable: assumed, 30 m at 5
/// ns/m. Header: InfiniBand's local route, base transport, RDMA and check-sum fields of a write
/// packet (42 B); RoCE v2 has Ethernet, IP and UDP in front of the same (98 B with preamble and
/// gap).
struct Network {
  std::string_view name;
  Rate bandwidth;
  Bytes header;
};
constexpr std::array kNetworks{
    Network{"ib-edr", {12'500'000'000}, {42}}, Network{"ib-hdr", {25'000'000'000}, {42}},
    Network{"ib-ndr", {50'000'000'000}, {42}}, Network{"roce-400", {50'000'000'000}, {98}}};
constexpr Time kCable = Time::from_ns(150);
/// Switch latency derived: share of the 2.68 us measured for a small RDMA write (docs/devices.md).
constexpr Time kNetworkSwitch = Time::from_ns(230);

LinkClass network_class(const Machine& node, const std::vector<NodeId>& nics) {
  const auto& attributes = node.nodes[index(nics.front())].attributes;
  const auto named = attributes.find("network");
  const std::string name = named == attributes.end() ? "ib-ndr" : named->second;
  const auto found = std::ranges::find(kNetworks, name, &Network::name);
  if (found == kNetworks.end()) {
    throw Failure("unknown network '" + name + "' of the NICs of '" + node.name + "'", {},
                  "the networks are ib-edr, ib-hdr, ib-ndr and roce-400");
  }
  LinkClass link;
  link.name = name;
  link.bandwidth = found->bandwidth;
  link.latency = kCable;
  link.max_payload = Bytes{4096};
  link.header = found->header;
  return link;
}

/// How often each instance name occurs in one node: copies are numbered on from there.
std::map<std::string, int> count_instances(const Machine& node) {
  std::map<std::string, int> counts;
  for (const Node& part : node.nodes) {
    int& count = counts[part.instance];
    count = std::max(count, part.instance_index + 1);
  }
  return counts;
}

Node copy_of(const Node& part, int copy, const std::map<std::string, int>& counts) {
  Node node = part;
  node.instance_index += copy * counts.at(part.instance);
  const std::string old_head = part.instance + "." + std::to_string(part.instance_index);
  node.name = part.instance + "." + std::to_string(node.instance_index) +
              part.name.substr(std::min(old_head.size(), part.name.size()));
  return node;
}

Node network_switch(const std::string& instance, int index) {
  Node node;
  node.name = instance + "." + std::to_string(index) + ".switch.0";
  node.kind = NodeKind::switch_;
  node.instance = instance;
  node.instance_index = index;
  node.device = instance;
  node.switch_model.latency = kNetworkSwitch;
  return node;
}

/// Rail of each NIC: its number among the NICs of its instance.
std::vector<int> rails_of(const Machine& node, const std::vector<NodeId>& nics) {
  std::map<std::pair<std::string, int>, int> next;
  std::vector<int> rails;
  for (const NodeId nic : nics) {
    const Node& part = node.nodes[index(nic)];
    rails.push_back(next[{part.instance, part.instance_index}]++);
  }
  return rails;
}

void connect(Machine& machine, NodeId a, NodeId b, int link_class, int lane) {
  machine.links.push_back({.from = a, .to = b, .link_class = link_class, .lane = lane});
  machine.links.push_back({.from = b, .to = a, .link_class = link_class, .lane = lane});
}

NodeId add(Machine& machine, Node node) {
  machine.nodes.push_back(std::move(node));
  return static_cast<NodeId>(machine.nodes.size() - 1);
}

}  // namespace

Machine scale_out(Machine node, int count) {
  std::vector<NodeId> nics;
  for (std::size_t i = 0; i < node.nodes.size(); ++i)
    if (node.nodes[i].kind == NodeKind::nic) nics.push_back(static_cast<NodeId>(i));
  const std::string name = node.name + ":" + std::to_string(count);
  if (nics.empty())
    throw Failure("machine '" + name + "': a node of '" + node.name + "' has no NIC");

  Machine machine = node;
  machine.name = name;
  machine.description = std::to_string(count) + " x " + node.description;
  machine.forget_routes();
  if (count == 1) return machine;

  const auto counts = count_instances(node);
  const auto size = static_cast<NodeId>(node.nodes.size());
  for (int copy = 1; copy < count; ++copy) {
    for (const Node& part : node.nodes) machine.nodes.push_back(copy_of(part, copy, counts));
    for (Link link : node.links) {
      link.from += copy * size;
      link.to += copy * size;
      machine.links.push_back(link);
    }
    for (const NodeId gpu : node.gpus) machine.gpus.push_back(gpu + copy * size);
    machine.gpu_models.insert(machine.gpu_models.end(), node.gpu_models.begin(),
                              node.gpu_models.end());
  }

  machine.link_classes.push_back(network_class(node, nics));
  const auto link_class = static_cast<int>(machine.link_classes.size() - 1);
  const std::vector<int> rails = rails_of(node, nics);
  const int leaves = *std::ranges::max_element(rails) + 1;
  std::vector<NodeId> leaf_nodes;
  for (int i = 0; i < leaves; ++i) leaf_nodes.push_back(add(machine, network_switch("leaf", i)));
  std::vector<int> down(leaf_nodes.size(), 0);
  for (int copy = 0; copy < count; ++copy) {
    for (std::size_t i = 0; i < nics.size(); ++i) {
      const auto rail = index(rails[i]);
      connect(machine, nics[i] + copy * size, leaf_nodes[rail], link_class, 0);
      ++down[rail];
    }
  }
  if (leaves == 1) return machine;
  const int most_down = *std::ranges::max_element(down);
  const int spines = std::min(leaves, most_down);
  const int lanes = (most_down + spines - 1) / spines;
  for (int i = 0; i < spines; ++i) {
    const NodeId spine = add(machine, network_switch("spine", i));
    for (const NodeId leaf : leaf_nodes)
      for (int lane = 0; lane < lanes; ++lane) connect(machine, leaf, spine, link_class, lane);
  }
  return machine;
}

}  // namespace hemiola::machine
