#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/text.h"
#include "machine/builders.h"
#include "machine/testing/infragraph.h"

namespace hemiola::machine {
namespace {

using testing::HasSubstr;

TEST(Infragraph, an_edge_becomes_two_links_and_nodes_are_numbered_instance_by_instance) {
  const Machine machine = from_infragraph(kFabric, "file.yaml");
  EXPECT_EQ(machine.name, "fabric");
  ASSERT_EQ(machine.nodes.size(), 6u);
  EXPECT_EQ(machine.nodes[3].name, "host.0.xpu.3");
  EXPECT_EQ(machine.nodes[4].name, "host.0.nvsw.0");
  EXPECT_EQ(machine.nodes[4].kind, NodeKind::switch_);
  EXPECT_EQ(machine.nodes[4].device, "server");
  EXPECT_EQ(machine.links.size(), 16u);
  EXPECT_EQ(machine.ranks(), 4);
  EXPECT_EQ(machine.model(0).name, "h100");
  ASSERT_EQ(machine.link_classes.size(), 1u);
  EXPECT_EQ(machine.link_classes[0].bandwidth.bytes_per_second, 25'000'000'000);
  EXPECT_EQ(machine.link_classes[0].latency, Time::from_ns(100));
  EXPECT_FALSE(machine.link_classes[0].assumed);
}

TEST(Infragraph, json_is_read_with_line_and_pointer) {
  const std::string json = R"({
  "name": "x",
  "devices": [
    {"name": "d", "components": [{"name": "a", "count": 2, "choice": "xpu"}],
     "links": [{"name": "nvlink"}],
     "edges": [{"ep1": {"component": "a"}, "ep2": {"component": "a"},
                "scheme": "ring", "link": "nvlnk"}]}],
  "instances": [{"name": "i", "device": "d", "count": 1}]
})";
  const std::string message = message_for(json);
  EXPECT_THAT(message, HasSubstr("file.yaml:6:"));
  EXPECT_THAT(message, HasSubstr("/devices/0/edges/0"));
  EXPECT_THAT(message, HasSubstr("there is no link 'nvlnk'"));
  EXPECT_THAT(message, HasSubstr("did you mean 'nvlink'?"));
}

TEST(Infragraph, one2one_pairs_nodes_in_order) {
  const Machine machine = from_infragraph(
      device(edge("a", "b", "one2one") + edge("b", "c[0]", "many2many")), "file.yaml");
  const auto edges = edges_of(machine);
  ASSERT_EQ(edges.size(), 8u);
  EXPECT_EQ(edges[2], (std::pair<std::string, std::string>{"d.0.a.2", "d.0.b.2"}));
}

TEST(Infragraph, slices_are_pythons) {
  const auto first_of = [](const std::string& slice) {
    std::vector<std::string> names;
    const Machine machine = from_infragraph(
        device(edge("b" + slice, "c[0]", "many2many") + edge("a", "c", "many2many")), "file.yaml");
    for (const auto& [from, to] : edges_of(machine))
      if (from.find(".b.") != std::string::npos) names.push_back(from.substr(4));
    return names;
  };
  EXPECT_EQ(first_of(""), (std::vector<std::string>{"b.0", "b.1", "b.2", "b.3"}));
  EXPECT_EQ(first_of("[3]"), (std::vector<std::string>{"b.3"}));
  EXPECT_EQ(first_of("[-1]"), (std::vector<std::string>{"b.3"}));
  EXPECT_EQ(first_of("[1:3]"), (std::vector<std::string>{"b.1", "b.2"}));
  EXPECT_EQ(first_of("[:2]"), (std::vector<std::string>{"b.0", "b.1"}));
  EXPECT_EQ(first_of("[0:4:3]"), (std::vector<std::string>{"b.0", "b.3"}));
}

TEST(Infragraph, ring_of_two_nodes_has_one_link_each_way) {
  const Machine two = from_infragraph(
      device(edge("a[0:2]", "a[0:2]", "ring") + edge("a", "b[0]", "many2many")), "file.yaml");
  EXPECT_EQ(two.links.size(), 2u + 8u);
  const Machine four =
      from_infragraph(device(edge("b", "b", "ring") + edge("a", "b", "one2one")), "file.yaml");
  const auto edges = edges_of(four);
  ASSERT_EQ(edges.size(), 4u + 4u);
  EXPECT_EQ(edges[2], (std::pair<std::string, std::string>{"d.0.b.2", "d.0.b.3"}));
  EXPECT_EQ(edges[3], (std::pair<std::string, std::string>{"d.0.b.3", "d.0.b.0"}));
}

TEST(Infragraph, ring_of_one_node_joins_nothing_and_says_so) {
  const Machine machine = from_infragraph(
      device(edge("a[0]", "a[0]", "ring") + edge("a", "b[0]", "many2many")), "file.yaml");
  EXPECT_EQ(machine.links.size(), 8u);
  EXPECT_THAT(machine.warnings.render(), HasSubstr("this edge joins nothing"));
}

TEST(Infragraph, many2many_within_one_component_joins_each_pair_once) {
  const Machine machine = from_infragraph(device(edge("a", "a", "many2many")), "file.yaml");
  EXPECT_EQ(machine.links.size(), 2u * 6u);
}

TEST(Infragraph, parallel_edges_stay_and_are_numbered_as_lanes) {
  const Machine machine = from_infragraph(
      device(edge("a", "b[0]", "many2many") + edge("a", "b[0]", "many2many")), "file.yaml");
  EXPECT_EQ(machine.links.size(), 16u);
  EXPECT_EQ(machine.lanes(0, 4).size(), 2u);
  EXPECT_EQ(machine.links[0].lane, 0);
  EXPECT_EQ(machine.links[8].lane, 1);
}

TEST(Infragraph, nested_devices_are_reached_by_dotted_paths_and_by_the_device_key) {
  const std::string text = R"(
name: nested
devices:
- name: card
  components: [{name: chip, count: 1, choice: nic}, {name: port, count: 2, choice: port}]
  links: [{name: serdes}]
  edges: [{ep1: {component: chip}, ep2: {component: port}, scheme: many2many, link: serdes}]
- name: box
  components: [{name: xpu, count: 2, choice: xpu}, {name: card, count: 2, choice: device}]
  links: [{name: pcie}]
  edges:
  - {ep1: {component: xpu}, ep2: {component: "card[0:2].chip"}, scheme: one2one, link: pcie}
  - {ep1: {component: "xpu[0]"}, ep2: {device: "card[1]", component: chip}, scheme: one2one, link: pcie}
  - {ep1: {component: xpu}, ep2: {component: xpu}, scheme: many2many, link: pcie}
links: [{name: cable}]
instances: [{name: box, device: box, count: 2}]
edges:
- {ep1: {instance: "box[0]", component: "card[0:2].port[0]"}, ep2: {instance: "box[1]", component: "card[0:2].port[0]"}, scheme: one2one, link: cable}
)";
  const Machine machine = from_infragraph(text, "file.yaml");
  ASSERT_EQ(machine.nodes.size(), 16u);
  EXPECT_EQ(machine.nodes[2].name, "box.0.card.0.chip.0");
  EXPECT_EQ(machine.nodes[4].name, "box.0.card.0.port.1");
  const auto edges = edges_of(machine);
  ASSERT_EQ(edges.size(), 2u * (4u + 4u) + 2u);
  EXPECT_EQ(edges[0].first, "box.0.card.0.chip.0");  // nested devices first
  EXPECT_EQ(edges[6], (std::pair<std::string, std::string>{"box.0.xpu.0", "box.0.card.1.chip.0"}));
  EXPECT_EQ(edges[17],
            (std::pair<std::string, std::string>{"box.0.card.1.port.0", "box.1.card.1.port.0"}));
  EXPECT_EQ(machine.reach(0, 3), Reach::network);
  expect_round_trip(machine);
}

TEST(Infragraph, wrong_edges_are_errors) {
  const auto message = [](const std::string& edges) { return message_for(device(edges)); };
  EXPECT_THAT(message(edge("a[0:3]", "b[0:2]", "one2one")), HasSubstr("joins 3 nodes with 2"));
  EXPECT_THAT(message(edge("a[0]", "a[0]", "one2one")), HasSubstr("joins a node with itself"));
  EXPECT_THAT(message(edge("aa", "b", "one2one")), HasSubstr("there is no component 'aa'"));
  EXPECT_THAT(message(edge("a[4]", "b", "many2many")), HasSubstr("'a[4]' is out of range"));
  EXPECT_THAT(message(edge("a[0:5]", "b", "many2many")), HasSubstr("'a[0:5]' is out of range"));
  EXPECT_THAT(message(edge("a[2:2]", "b", "many2many")), HasSubstr("selects nothing"));
  EXPECT_THAT(message(edge("a[x]", "b", "many2many")), HasSubstr("is no slice"));
  EXPECT_THAT(message(edge("a[0:4:0]", "b", "many2many")), HasSubstr("step below 1"));
  EXPECT_THAT(message(edge("a.b", "b", "many2many")), HasSubstr("is no device"));
  EXPECT_THAT(message(edge("a[0", "b", "many2many")), HasSubstr("lacks a ']'"));
  EXPECT_THAT(message(edge("a", "b", "all2all")), HasSubstr("'all2all' is no scheme"));
  EXPECT_THAT(message("- {ep1: {component: a}, ep2: {component: b}, link: nvlink}\n"),
              HasSubstr("an edge has no 'scheme'"));
  EXPECT_THAT(message(edge("a[0:2]", "b[0]", "many2many")), HasSubstr("cannot reach"));
}

TEST(Infragraph, a_longer_end_without_a_slice_gives_its_first_nodes_and_a_warning) {
  const Machine machine = from_infragraph(
      device(edge("c", "b", "one2one") + edge("a", "b[0]", "many2many")), "file.yaml");
  EXPECT_EQ(machine.links.size(), 4u + 8u);
  EXPECT_THAT(machine.warnings.render(), HasSubstr("joins 2 nodes with the first 2 of 4 'b'"));
}

TEST(Infragraph, wrong_keys_and_values_are_errors_with_a_suggestion) {
  const auto replaced = [](const std::string& from, const std::string& to) {
    std::string text = kFabric;
    text.replace(text.find(from), from.size(), to);
    return message_for(text);
  };
  EXPECT_THAT(replaced("components:", "componets:"), HasSubstr("unknown key 'componets'"));
  EXPECT_THAT(replaced("components:", "componets:"), HasSubstr("did you mean 'components'?"));
  EXPECT_THAT(replaced("components:", "componets:"), HasSubstr("a device has no 'components'"));
  EXPECT_THAT(replaced("choice: switch", "choice: swich"), HasSubstr("did you mean 'switch'?"));
  EXPECT_THAT(replaced("device: server", "device: sever"), HasSubstr("there is no device 'sever'"));
  EXPECT_THAT(replaced("count: 4", "count: 0"), HasSubstr("at least 1"));
  EXPECT_THAT(replaced("count: 4", "count: -1"), HasSubstr("at least 1"));
  EXPECT_THAT(replaced("count: 4", "count: 9000000"), HasSubstr("more than 1000000 nodes"));
  EXPECT_THAT(replaced("gigabytes_per_second: 25", "gigabytes_per_second: 0"),
              HasSubstr("'0' is no bandwidth"));
  EXPECT_THAT(replaced("gigabytes_per_second: 25", "gigabytes_per_second: -25"),
              HasSubstr("'-25' is no bandwidth"));
  EXPECT_THAT(replaced("ns: 100", "ns: 0"), HasSubstr("'0' is no latency"));
  EXPECT_THAT(replaced("ns: 100", "hours: 1"), HasSubstr("unknown key 'hours' in latency"));
  EXPECT_THAT(replaced("name: fabric", "name: [fabric"), HasSubstr("neither YAML nor JSON"));
  EXPECT_THAT(replaced("name: nvsw", "name: nv.sw"), HasSubstr("contains '.'"));
  EXPECT_THAT(message_for(""), HasSubstr("must be a map"));
  EXPECT_THAT(message_for("- 1\n- 2\n"), HasSubstr("must be a map"));
  EXPECT_THAT(message_for("name: x\ndevices: []\n"), HasSubstr("has no instances"));
}

TEST(Infragraph, a_device_that_contains_itself_is_an_error) {
  EXPECT_THAT(message_for(R"(
name: loop
devices:
- {name: a, components: [{name: b, count: 1, choice: device}], links: [], edges: []}
- {name: b, components: [{name: a, count: 1, choice: device}], links: [], edges: []}
instances: [{name: i, device: a, count: 1}]
)"),
              HasSubstr("the device 'a' contains itself"));
}

TEST(Infragraph, devices_that_multiply_are_stopped_before_they_fill_the_memory) {
  std::string text = "name: bomb\ndevices:\n";
  for (int i = 0; i < 30; ++i) {
    text += "- {name: d" + std::to_string(i) + ", components: [{name: d" + std::to_string(i + 1) +
            ", count: 1000, choice: device}], links: [], edges: []}\n";
  }
  text +=
      "- {name: d30, components: [{name: x, count: 1, choice: xpu}], links: [], edges: []}\n"
      "instances: [{name: i, device: d0, count: 1}]\n";
  EXPECT_THAT(message_for(text), HasSubstr("more than 1000000 nodes"));
  EXPECT_THAT(message_for(R"(
name: wide
components: [{name: a, count: 50000, choice: xpu}, {name: b, count: 50000, choice: switch}]
links: [{name: nvlink}]
edges: [{ep1: {component: a}, ep2: {component: b}, scheme: many2many, link: nvlink}]
)"),
              HasSubstr("more than 10000000 links"));
}

TEST(Infragraph, links_without_numbers_take_a_default_with_one_warning_per_class) {
  const Machine machine = from_infragraph(device(edge("a", "c", "many2many")), "file.yaml");
  EXPECT_TRUE(machine.link_classes[0].assumed);
  // 450 GB/s of an H100's NVLinks over the two links that each xpu has here.
  EXPECT_EQ(machine.link_classes[0].bandwidth.bytes_per_second, 225'000'000'000);
  int about_links = 0;
  for (const Diagnostic& item : machine.warnings.items())
    about_links += item.message.find("link 'nvlink' gives no bandwidth") != std::string::npos;
  EXPECT_EQ(about_links, 1);
}

TEST(Infragraph, unconnected_components_are_named_in_one_warning) {
  const Machine machine = from_infragraph(device(edge("a", "c[0]", "many2many")), "file.yaml");
  EXPECT_THAT(machine.warnings.render(),
              HasSubstr("unconnected components: d.0.b.0, d.0.b.1, d.0.b.2, d.0.b.3, d.0.c.1"));
}

TEST(Infragraph, annotations_set_models_ranks_links_and_gpu_parameters) {
  const std::string text = std::string(kFabric) + R"(
annotations:
  nodes:
  - {name: "host[0]xpu[0:4]", attributes: [{attribute: hemiola.device_model, value: a100}]}
  - {name: "host.0.xpu.3", attributes: [{attribute: rank, value: "0"}]}
  - {name: "host.nvsw", attributes: [{attribute: hemiola.switch.latency, value: 90 ns},
                                     {attribute: hemiola.switch.multicast, value: "true"},
                                     {attribute: colour, value: red}]}
  edges:
  - {ep1: "host[0]xpu[1]", ep2: "host.0.nvsw.1", attributes: [{attribute: link_bandwidth_gbps, value: "80"}]}
  links:
  - {name: nvlink, attributes: [{attribute: hemiola.header, value: 20 B}, {attribute: hemiola.credits, value: "64"}]}
  graph:
  - {attribute: hemiola.name, value: renamed}
  - {attribute: hemiola.gpu.l2.latency, value: 123 ns}
)";
  Machine machine = from_infragraph(text, "file.yaml");
  EXPECT_EQ(machine.name, "renamed");
  EXPECT_EQ(machine.gpus, (std::vector<NodeId>{3, 0, 1, 2}));
  EXPECT_EQ(machine.model(0).name, "a100");
  EXPECT_EQ(machine.model(0).l2_latency, Time::from_ns(123));
  EXPECT_EQ(machine.nodes[5].switch_model.latency, Time::from_ns(90));
  EXPECT_TRUE(machine.nodes[5].switch_model.multicast);
  EXPECT_EQ(machine.nodes[5].attributes.at("colour"), "red");
  EXPECT_EQ(machine.link_classes[0].header.count, 20);
  EXPECT_EQ(machine.link_classes[0].credits, 64);
  ASSERT_EQ(machine.link_classes.size(), 2u);
  EXPECT_EQ(machine.link_classes[1].name, "nvlink-2");
  EXPECT_EQ(machine.link_classes[1].bandwidth.bytes_per_second, 10'000'000'000);
  EXPECT_EQ(machine.link_classes[1].header.count, 20);
  int slow = 0;
  for (const Link& link : machine.links) slow += link.link_class == 1;
  EXPECT_EQ(slow, 2);  // both directions
  expect_round_trip(machine);
}

TEST(Infragraph, wrong_annotations_are_errors) {
  const auto with_node = [](const std::string& name, const std::string& key,
                            const std::string& value) {
    return message_for(std::string(kFabric) + "annotations:\n  nodes:\n  - {name: \"" + name +
                       "\", attributes: [{attribute: " + key + ", value: \"" + value + "\"}]}\n");
  };
  EXPECT_THAT(with_node("host.0.xpu.0", "hemiola.device_modl", "h100"),
              HasSubstr("did you mean 'hemiola.device_model'?"));
  EXPECT_THAT(with_node("host.0.xpu.0", "hemiola.device_model", "h101"),
              HasSubstr("there is no device model 'h101'"));
  EXPECT_THAT(with_node("host.nvsw", "hemiola.switch.latency", "90"),
              HasSubstr("'90' is no value for hemiola.switch.latency"));
  EXPECT_THAT(with_node("host.nvsw", "hemiola.nic.mtu", "4 KiB"), HasSubstr("is for NICs"));
  EXPECT_THAT(with_node("host.nvsw", "rank", "1"), HasSubstr("is for xpus"));
  EXPECT_THAT(with_node("host.xpu", "rank", "1"), HasSubstr("both have rank 1"));
  EXPECT_THAT(with_node("hst.xpu", "rank", "1"), HasSubstr("there is no instance 'hst'"));
  EXPECT_THAT(with_node("host.xpu", "type", "nic"), HasSubstr("cannot be annotated"));
  EXPECT_THAT(
      message_for(std::string(kFabric) +
                  "annotations: {graph: [{attribute: hemiola.gpu.l2.sise, value: 1 MiB}]}\n"),
      HasSubstr("l2.size"));
  EXPECT_THAT(
      message_for(std::string(kFabric) + "annotations: {links: [{name: nvlnk, attributes: []}]}\n"),
      HasSubstr("there is no link 'nvlnk'"));
}

}  // namespace
}  // namespace hemiola::machine
