// What the tests of InfraGraph share: small documents, the message of a failure, machines compared.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/testing/failure.h"
#include "machine/devices/parameters.h"
#include "machine/infragraph/infragraph.h"

namespace hemiola::machine {

inline constexpr const char* kFabric = R"(
name: fabric
devices:
- name: server
  components:
  - {name: xpu, count: 4, choice: xpu}
  - {name: nvsw, count: 2, choice: switch}
  links:
  - name: nvlink
    physical: {bandwidth: {gigabytes_per_second: 25}, latency: {ns: 100}}
  edges:
  - {ep1: {component: xpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
instances:
- {name: host, device: server, count: 1}
)";

/// A lone device "d" whose edges are `edges`, with components a (4), b (4), c (2) of kind xpu.
inline std::string device(const std::string& edges) {
  return R"(
name: d
components:
- {name: a, count: 4, choice: xpu}
- {name: b, count: 4, choice: switch}
- {name: c, count: 2, choice: switch}
links:
- {name: nvlink}
edges:
)" + edges;
}

inline std::string edge(const std::string& ep1, const std::string& ep2, const std::string& scheme) {
  return "- {ep1: {component: \"" + ep1 + "\"}, ep2: {component: \"" + ep2 +
         "\"}, scheme: " + scheme + ", link: nvlink}\n";
}

using test::message_of;

inline std::string message_for(const std::string& text) {
  return message_of([&] { from_infragraph(text, "file.yaml"); });
}

/// Links by the names of their ends, one direction of each edge.
inline std::vector<std::pair<std::string, std::string>> edges_of(const Machine& machine) {
  std::vector<std::pair<std::string, std::string>> edges;
  for (std::size_t i = 0; i < machine.links.size(); i += 2) {
    const Link &there = machine.links[i], &back = machine.links[i + 1];
    EXPECT_EQ(there.from, back.to);
    EXPECT_EQ(there.to, back.from);
    EXPECT_EQ(there.lane, back.lane);
    edges.emplace_back(machine.nodes[static_cast<std::size_t>(there.from)].name,
                       machine.nodes[static_cast<std::size_t>(there.to)].name);
  }
  return edges;
}

/// All that simulation depends on, as text: what a round trip must keep.
inline std::string fingerprint(const Machine& machine) {
  std::string text = machine.name + "|" + machine.description + "\n";
  std::set<std::string> nodes;
  for (std::size_t i = 0; i < machine.nodes.size(); ++i) {
    const Node& node = machine.nodes[i];
    const SwitchModel& s = node.switch_model;
    const NicModel& n = node.nic_model;
    std::string line = node.name + " " + std::string(name_of(node.kind)) + " " + node.device;
    for (const auto& [key, value] : node.attributes)
      if (key != "hemiola.device_model") line += " " + key + "=" + value;
    line += " " + std::to_string(s.latency.fs) + " " + std::to_string(s.queue) +
            (s.multicast ? " multicast " : " ") + std::to_string(s.reduce_rate.bytes_per_second) +
            " " + std::to_string(s.reduce_latency.fs) + " " + std::to_string(n.mtu.count) + " " +
            std::to_string(n.message_time.fs) + " " + std::to_string(n.latency.fs) + " " +
            std::to_string(n.rate.bytes_per_second) + "\n";
    nodes.insert(line);
  }
  for (const std::string& line : nodes) text += line;
  for (const LinkClass& link : machine.link_classes) {
    text += link.name + " " + std::to_string(link.bandwidth.bytes_per_second) + " " +
            std::to_string(link.latency.fs) + " " + std::to_string(link.max_payload.count) + " " +
            std::to_string(link.header.count) + " " + std::to_string(link.credits) + " " +
            std::to_string(static_cast<int>(link.arbitration)) + (link.assumed ? " assumed" : "") +
            " " + std::to_string(link.route_latency.fs) + "\n";
  }
  for (const Link& link : machine.links) {
    text += machine.nodes[static_cast<std::size_t>(link.from)].name + ">" +
            machine.nodes[static_cast<std::size_t>(link.to)].name + " " +
            std::to_string(link.link_class) + " " + std::to_string(link.lane) + "\n";
  }
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    text +=
        machine.nodes[static_cast<std::size_t>(machine.gpus[static_cast<std::size_t>(rank)])].name +
        " " + machine.model(rank).name + "\n";
  }
  for (const GpuModel& model : machine.models)
    for (const Parameter& parameter : gpu_parameters()) text += parameter.get(model) + " ";
  return text;
}

inline void expect_round_trip(const Machine& machine) {
  const std::string text = to_infragraph(machine);
  const Machine again = from_infragraph(text, "again.yaml");
  ASSERT_EQ(fingerprint(again), fingerprint(machine)) << text.substr(0, 4000);
}

}  // namespace hemiola::machine
