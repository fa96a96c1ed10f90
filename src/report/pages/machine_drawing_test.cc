// What a drawing of a machine shows, and that it loses no link when it folds.
#include "report/pages/machine_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "report/machine_page.h"

namespace hemiola::report {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

std::multiset<std::string> labels_of(const page::Graph& graph) {
  std::multiset<std::string> labels;
  for (const page::Graph::Node& node : graph.nodes) labels.insert(node.label);
  return labels;
}

/// By class, the bandwidth of all lines.
std::map<std::string, double> weights_of(const page::Graph& graph) {
  std::map<std::string, double> weights;
  for (const page::Graph::Edge& edge : graph.edges) weights[edge.kind] += edge.weight;
  return weights;
}

TEST(MachineDrawing, has_every_node_and_all_bandwidth_of_a_small_machine) {
  const machine::Machine machine = machine::load("dgx-h100");
  const page::Graph graph = machine_drawing(machine);
  EXPECT_EQ(graph.nodes.size(), machine.nodes.size());
  std::map<std::string, double> there;
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const machine::LinkClass& link = machine.class_of(static_cast<machine::LinkId>(l));
    there[link.name] += 0.5 * static_cast<double>(link.bandwidth.bytes_per_second);
  }
  EXPECT_EQ(weights_of(graph), there);
  ASSERT_EQ(graph.areas.size(), 1U);
  EXPECT_EQ(graph.areas[0].label, "dgx_h100.0");
}

TEST(MachineDrawing, puts_the_network_above_the_gpus_and_nvswitches_below) {
  const page::Graph graph = machine_drawing(machine::load("dgx-h100:2"));
  std::map<std::string, double> rows;
  for (const page::Graph::Node& node : graph.nodes) rows[node.label] = node.y;
  EXPECT_LT(rows.at("spine.0"), rows.at("leaf.0"));
  EXPECT_LT(rows.at("leaf.0"), rows.at("nic.0"));
  EXPECT_LT(rows.at("nic.0"), rows.at("pciesw.0"));
  EXPECT_LT(rows.at("pciesw.0"), rows.at("xpu.0"));
  EXPECT_LT(rows.at("xpu.0"), rows.at("nvsw.0"));
}

TEST(MachineDrawing, folds_a_thousand_gpus_and_keeps_the_bandwidth_between_boxes) {
  const machine::Machine machine = machine::load("dgx-h100:128");
  const page::Graph graph = machine_drawing(machine);
  EXPECT_LE(graph.nodes.size(), 80U);
  const auto labels = labels_of(graph);
  EXPECT_THAT(labels, Contains("xpu.7"));
  EXPECT_THAT(labels, Contains("1016 xpu"));
  EXPECT_THAT(labels, Contains("508 nvsw"));
  EXPECT_EQ(graph.areas[1].label, "dgx_h100.1-127");
  EXPECT_THAT(graph.note, HasSubstr("3856 nodes"));
  // No link of the network is inside a box: 1,024 to the leaves, 1,024 on to the spines.
  EXPECT_EQ(weights_of(graph).at("ib-ndr"), 2048 * 50e9);
}

TEST(MachineDrawing, no_two_boxes_are_at_one_place_and_all_are_inside) {
  for (const char* name : {"dgx-h100:16", "gb200-nvl72", "switch:1024", "clos:4x2x4", "torus:4x4",
                           "ring:300", "dgx1-v100", "mi300x-8:4", "mesh:2x8"}) {
    const page::Graph graph = machine_drawing(machine::load(name));
    std::set<std::pair<double, double>> places;
    for (const page::Graph::Node& node : graph.nodes) {
      EXPECT_TRUE(places.emplace(node.x, node.y).second) << name << ' ' << node.label;
      EXPECT_TRUE(node.x > 0 && node.x < graph.columns && node.y > 0 && node.y < graph.rows)
          << name << ' ' << node.label;
    }
  }
}

TEST(MachineDrawing, a_torus_is_a_grid) {
  const page::Graph graph = machine_drawing(machine::load("torus:4x4"));
  EXPECT_EQ(graph.rows, 4);
  EXPECT_EQ(graph.nodes[5].x, graph.nodes[1].x);
  EXPECT_EQ(graph.nodes[5].y, graph.nodes[4].y);
}

TEST(MachinePage, has_what_machine_show_prints) {
  const page::Page page = machine_page(machine::load("dgx-h100:2"), "hemiola machine show");
  const std::string text = page::to_json(page);
  for (const char* word : {"ib-ndr", "spine", "750 ns per message", "load/store", "cu.count"})
    EXPECT_THAT(text, HasSubstr(word));
  EXPECT_THAT(page::to_json(machine_page(machine::load("dgx-h100:16"), "")),
              Not(HasSubstr("heat_map")));
}

}  // namespace
}  // namespace hemiola::report
