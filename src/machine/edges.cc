#include "machine/edges.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/lists.h"
#include "machine/fabric_parameters.h"
#include "machine/routes.h"

namespace hemiola::machine {
namespace {

std::vector<bool> nodes_like(const Machine& machine, std::string_view pattern) {
  std::vector<bool> found(machine.nodes.size(), false);
  for (std::size_t n = 0; n < found.size(); ++n) found[n] = is_like(machine.nodes[n].name, pattern);
  if (std::ranges::find(found, true) != found.end()) return found;
  std::vector<std::string> names;
  for (const Node& node : machine.nodes) names.push_back(node.name);
  throw Failure("the machine has no node '" + std::string(pattern) + "'", kOption,
                suggest(pattern, names,
                        "nodes are named like " + names.front() + " and " + names.back() +
                            "; * is any text"));
}

/// The class that these links have from now on: a copy with a name that is free.
std::int32_t own_class(Machine& machine, std::int32_t old) {
  const std::string base = machine.link_classes[index(old)].name;
  int number = 2;
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::any_of(machine.link_classes,
                               [&](const LinkClass& link) { return link.name == name; });
  };
  while (is_taken(base + "-" + std::to_string(number))) ++number;
  LinkClass copy = machine.link_classes[index(old)];
  copy.name = base + "-" + std::to_string(number);
  // Costs change, ways do not (Machine::set).
  if (copy.route_latency.fs < 0) copy.route_latency = copy.latency;
  machine.link_classes.push_back(std::move(copy));
  return static_cast<std::int32_t>(machine.link_classes.size() - 1);
}

void fail(Machine& machine, const std::vector<bool>& meant, const std::string& links) {
  std::vector<Link> left;
  for (std::size_t l = 0; l < meant.size(); ++l)
    if (!meant[l]) left.push_back(machine.links[l]);
  Machine broken = machine;
  broken.links = left;
  broken.forget_routes();
  if (const auto pair = find_unreachable(broken)) {
    throw Failure("without the links of " + links + " rank " + std::to_string(pair->first) +
                      " has no way to rank " + std::to_string(pair->second),
                  kOption, "other links have to lead there");
  }
  machine.links = std::move(left);
}

}  // namespace

void set_edge(Machine& machine, std::string_view parameter, std::string_view rest,
              std::string_view value) {
  const std::size_t dot = rest.rfind('.'), colon = rest.find(':');
  if (colon == std::string_view::npos || dot == std::string_view::npos || dot < colon) {
    throw Failure("unknown parameter '" + std::string(parameter) + "'", kOption,
                  "write edge.FROM:TO.NAME with two names of nodes: "
                  "edge.leaf.0.switch.0:spine.*.bandwidth");
  }
  const std::string_view ends = rest.substr(0, dot), name = rest.substr(dot + 1);
  const std::vector<bool> one = nodes_like(machine, ends.substr(0, colon)),
                          other = nodes_like(machine, ends.substr(colon + 1));
  const auto is_end = [](const std::vector<bool>& nodes, NodeId node) {
    return static_cast<bool>(nodes[index(node)]);
  };
  std::vector<bool> meant(machine.links.size(), false);
  for (std::size_t l = 0; l < meant.size(); ++l) {
    const Link& link = machine.links[l];
    meant[l] = (is_end(one, link.from) && is_end(other, link.to)) ||
               (is_end(other, link.from) && is_end(one, link.to));
  }
  if (std::ranges::find(meant, true) == meant.end())
    throw Failure("there is no link between the nodes of '" + std::string(ends) + "'", kOption,
                  "`hemiola machine show --graph html` draws what there is");
  if (name == "failed") {
    if (value != "true" && value != "false")
      throw Failure("'" + std::string(value) + "' is neither true nor false", kOption,
                    std::string(parameter) + "=true takes the links away");
    if (value == "true") fail(machine, meant, std::string(ends));
    return;
  }
  const std::string prefix = "edge." + std::string(ends) + ".";
  LinkClass scratch;
  set_fabric_parameter(scratch, name, value, prefix, kOption);
  std::map<std::int32_t, std::int32_t> changed;  // old class to new one
  for (std::size_t l = 0; l < meant.size(); ++l) {
    if (!meant[l]) continue;
    const std::int32_t old = machine.links[l].link_class;
    if (changed.count(old) == 0) {
      changed[old] = own_class(machine, old);
      set_fabric_parameter(machine.link_classes.back(), name, value, prefix, kOption);
    }
    machine.links[l].link_class = changed[old];
  }
}

}  // namespace hemiola::machine
