#include "machine/machine.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/digest.h"
#include "core/lists.h"
#include "machine/devices/parameters.h"
#include "machine/edges.h"
#include "machine/fabric_parameters.h"
#include "machine/network_routing.h"

namespace hemiola::machine {
namespace {

constexpr const char* kKinds =
    "parameters are named gpu.*, link.CLASS.*, edge.FROM:TO.*, switch.*, nic.* and fabric.routing";

[[noreturn]] void unknown_parameter(std::string_view parameter, const std::string& hint) {
  throw Failure("unknown parameter '" + std::string(parameter) + "'", kOption, hint);
}

/// What a name without its kind could be: "l2.size" is gpu.l2.size.
std::string near_name(std::string_view parameter) {
  std::vector<std::string> names;
  for (const Parameter& one : gpu_parameters()) names.push_back("gpu." + std::string(one.name));
  for (const auto& one : fabric_parameters<LinkClass>())
    names.push_back("link.*." + std::string(one.name));
  return suggest(parameter, names, kKinds);
}

/// link.<class>.<name>; a class may itself contain dots, a parameter's name does not.
void set_link(Machine& machine, std::string_view parameter, std::string_view rest,
              std::string_view value) {
  const std::size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos)
    unknown_parameter(parameter, "link parameters are named link.CLASS.NAME or link.*.NAME");
  const std::string_view wanted = rest.substr(0, dot), name = rest.substr(dot + 1);
  std::vector<std::string> known{"*"};
  bool found = wanted == "*";
  for (const LinkClass& link : machine.link_classes) {
    known.push_back(link.name);
    found = found || link.name == wanted;
  }
  if (!found)
    throw Failure("the machine has no link class '" + std::string(wanted) + "'", kOption,
                  suggest(wanted, known, "the link classes are " + joined(known, " ")));
  const std::string prefix = "link." + std::string(wanted) + ".";
  LinkClass scratch;  // a machine without links still checks the name and the value
  set_fabric_parameter(scratch, name, value, prefix, kOption);
  for (LinkClass& link : machine.link_classes) {
    if (wanted != "*" && link.name != wanted) continue;
    const Time before = link.latency;
    set_fabric_parameter(link, name, value, prefix, kOption);
    if (link.route_latency.fs < 0 && link.latency != before) link.route_latency = before;
  }
}

/// Of all nodes of a kind; there has to be one.
template <class Model>
void set_nodes(Machine& machine, NodeKind kind, Model Node::*model, std::string_view parameter,
               std::string_view rest, std::string_view value) {
  const std::string prefix(parameter.substr(0, parameter.find('.') + 1));
  Model scratch;
  set_fabric_parameter(scratch, rest, value, prefix, kOption);
  bool used = false;
  for (Node& node : machine.nodes) {
    if (node.kind != kind) continue;
    set_fabric_parameter(node.*model, rest, value, prefix, kOption);
    used = true;
  }
  if (used) return;
  throw Failure("'" + std::string(parameter) + "' would not be used: '" + machine.name +
                    "' has no " + (kind == NodeKind::nic ? "NIC" : "switch"),
                kOption, "leave it out; 'hemiola machine show' lists what there is");
}

}  // namespace

std::string_view name_of(NodeKind kind) {
  constexpr std::array<std::string_view, 7> kNames{"xpu",    "nic",  "switch", "cpu",
                                                   "memory", "port", "custom"};
  return kNames[index(kind)];
}

std::vector<NodeId> Machine::multicast_switches(std::span<const int> ranks) const {
  std::vector<NodeId> found;
  if (ranks.empty()) return found;
  for (NodeId node = 0; node < static_cast<NodeId>(nodes.size()); ++node) {
    const Node& candidate = nodes[index(node)];
    if (candidate.kind != NodeKind::switch_ || !candidate.switch_model.multicast) continue;
    const bool reaches_all = std::ranges::all_of(ranks, [&](int rank) {
      const NodeId gpu = gpus.at(index(rank));
      return !lanes(gpu, node).empty() && !lanes(node, gpu).empty();
    });
    if (reaches_all) found.push_back(node);
  }
  return found;
}

std::uint64_t Machine::ways_between(std::span<const int> ranks) const {
  Digest ways;
  std::map<LinkId, std::int64_t> met;  // links by the order in which they are met
  for (const int rank : ranks) ways.add(gpu_models[index(rank)]);
  for (const int from : ranks) {
    for (const int to : ranks) {
      if (from == to) continue;
      const Routes& between = routes(from, to);
      ways.add(static_cast<std::int64_t>(between.reach)).add(between.count);
      for (std::int32_t p = 0; p < between.count; ++p) {
        for (const LinkId link : between.path(p)) {
          ways.add(met.try_emplace(link, std::ssize(met)).first->second);
          ways.add(links[index(link)].link_class);
        }
      }
    }
  }
  return ways.value();
}

Time Machine::smallest_feedback_latency() const {
  Time least = Time::max();
  std::vector<bool> used(link_classes.size(), false);
  for (const Link& link : links) used[index(link.link_class)] = true;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) least = std::min(least, link_classes[i].latency);
  for (const GpuModel& gpu : models) {
    const Time hop = gpu.noc_kind == NocKind::mesh ? gpu.noc_hop_latency : gpu.noc_latency;
    least = std::min(least, hop + gpu.l2_latency);
  }
  return least;
}

void Machine::set(std::string_view parameter, std::string_view value) {
  const std::size_t dot = parameter.find('.');
  const std::string_view kind = parameter.substr(0, dot);
  const std::string_view rest =
      dot == std::string_view::npos ? std::string_view{} : parameter.substr(dot + 1);
  if (rest.empty()) unknown_parameter(parameter, near_name(parameter));
  if (kind == "gpu") {
    // On a copy first: a bad value must not leave half of the models changed.
    std::vector<GpuModel> changed = models;
    for (GpuModel& model : changed) set_parameter(model, rest, value, kOption);
    models = std::move(changed);
  } else if (kind == "link") {
    set_link(*this, parameter, rest, value);
  } else if (kind == "switch") {
    set_nodes(*this, NodeKind::switch_, &Node::switch_model, parameter, rest, value);
  } else if (kind == "nic") {
    set_nodes(*this, NodeKind::nic, &Node::nic_model, parameter, rest, value);
  } else if (kind == "edge") {
    set_edge(*this, parameter, rest, value);
  } else if (kind == "fabric") {
    if (rest != "routing") unknown_parameter(parameter, "of the fabric there is fabric.routing");
    set_network_routing(*this, value, kOption);
  } else {
    unknown_parameter(parameter, suggest(kind, {"gpu", "link", "switch", "nic", "edge", "fabric"},
                                         near_name(parameter)));
  }
  forget_routes();
}

void Machine::place(std::span<const int> ranks) {
  if (ranks.empty()) throw Failure("no ranks to place", kOption, "name at least one rank");
  std::vector<bool> used(gpus.size(), false);
  std::vector<NodeId> placed;
  std::vector<std::int32_t> placed_models;
  for (const int rank : ranks) {
    if (rank < 0 || rank >= this->ranks()) {
      throw Failure(
          "the machine has no rank " + std::to_string(rank), kOption,
          "'" + name + "' has " + std::to_string(this->ranks()) + " GPUs, numbered from 0");
    }
    const auto index = static_cast<std::size_t>(rank);
    if (used[index]) {
      throw Failure("rank " + std::to_string(rank) + " is listed twice", kOption,
                    "each GPU takes one rank");
    }
    used[index] = true;
    placed.push_back(gpus[index]);
    placed_models.push_back(gpu_models[index]);
  }
  // Those left out forward (or not) like the model that they name.
  for (int rank = 0; rank < this->ranks(); ++rank) {
    const NodeId gpu = gpus[index(rank)];
    nodes[index(gpu)].attributes.emplace("hemiola.device_model", model(rank).name);
  }
  gpus = std::move(placed);
  gpu_models = std::move(placed_models);
  forget_routes();
}

SharedMachine select_ranks(const SharedMachine& machine, std::span<const int> ranks) {
  bool is_all = static_cast<int>(ranks.size()) == machine->ranks();
  for (std::size_t i = 0; i < ranks.size(); ++i) is_all = is_all && ranks[i] == static_cast<int>(i);
  if (is_all) return machine;
  Machine some = *machine;
  some.place(ranks);
  return share(std::move(some));
}

}  // namespace hemiola::machine
