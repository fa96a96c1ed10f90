#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <set>

#include "core/text.h"
#include "machine/builders.h"
#include "machine/testing/infragraph.h"

namespace hemiola::machine {
namespace {

TEST(Infragraph, an_option_names_the_device_model_where_the_file_does_not) {
  EXPECT_EQ(from_infragraph(kFabric, "file.yaml", {.gpu = "mi300x", .set = {}}).model(3).name,
            "mi300x");
}

TEST(Infragraph, ranks_left_out_and_parameters_set_survive_a_round_trip) {
  Machine machine = from_infragraph(kFabric, "file.yaml");
  machine.set("gpu.l2.latency", "77 ns");
  machine.set("link.nvlink.latency", "1 us");
  machine.set("switch.queue", "12");
  machine.place(std::vector<int>{2, 0});
  expect_round_trip(machine);
}

TEST(Infragraph, every_built_in_machine_survives_a_round_trip) {
  for (const BuiltIn& built_in : built_in_machines()) {
    if (built_in.name.find(':') == std::string::npos) {
      SCOPED_TRACE(built_in.name);
      expect_round_trip(load(built_in.name));
    }
  }
  for (const char* name : {"dgx-h100:2", "gb200-nvl72:2", "switch:4", "ring:5", "mesh:3x2",
                           "torus:3x4", "clos:2x2x2", "astra3:3"}) {
    SCOPED_TRACE(name);
    expect_round_trip(load(name));
  }
}

TEST(Infragraph, real_files_expand_and_survive_a_round_trip) {
  const std::filesystem::path folder = HEMIOLA_SOURCE_DIR "/../shared/inputs/infragraph";
  if (!std::filesystem::exists(folder))
    GTEST_SKIP() << "NOT TESTED: the real InfraGraph files are not at " << folder;
  const std::map<std::string, std::pair<int, std::size_t>> expected{
      {"closfabric.yaml", {8, 151}}, {"cx5_100gbe.yaml", {0, 4}}, {"dgx_cx5_nic.yaml", {8, 33}},
      {"dgx_h100.yaml", {8, 33}},    {"server.yaml", {2, 8}},     {"switch.yaml", {0, 17}}};
  for (const auto& [name, size] : expected) {
    SCOPED_TRACE(name);
    const Machine machine = load((folder / name).string());
    EXPECT_EQ(machine.ranks(), size.first);
    EXPECT_EQ(machine.nodes.size(), size.second);
    expect_round_trip(machine);
  }
}

RC_GTEST_PROP(Infragraph, random_documents_have_as_many_links_as_the_formula_says, ()) {
  infragraph::Document document;
  document.name = "random";
  infragraph::Device device;
  device.name = "d";
  device.links.push_back({.name = "link",
                          .description = {},
                          .bandwidth = Rate{1'000'000'000},
                          .latency = Time::from_ns(5),
                          .where = {}});
  std::vector<std::int64_t> counts;
  const int components = *rc::gen::inRange(2, 5);
  for (int i = 0; i < components; ++i) {
    counts.push_back(*rc::gen::inRange<std::int64_t>(1, 7));
    device.components.push_back({.name = "c" + std::to_string(i),
                                 .description = {},
                                 .count = counts.back(),
                                 .choice = infragraph::Choice::switch_,
                                 .custom_type = {},
                                 .where = {}});
  }
  std::int64_t edges = 0;
  const int statements = *rc::gen::inRange(0, 6);
  for (int i = 0; i < statements; ++i) {
    const int a = *rc::gen::inRange(0, components), b = *rc::gen::inRange(0, components);
    const auto n = counts[static_cast<std::size_t>(a)], m = counts[static_cast<std::size_t>(b)];
    infragraph::Edge edge;
    edge.ep1.component = "c" + std::to_string(a);
    edge.ep2.component = "c" + std::to_string(b);
    edge.link = "link";
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        if (a == b) continue;
        edge.scheme = infragraph::Scheme::one2one;
        edges += std::min(n, m);
        break;
      case 1:
        edge.scheme = infragraph::Scheme::many2many;
        edges += a == b ? n * (n - 1) / 2 : n * m;
        break;
      default: {
        edge.scheme = infragraph::Scheme::ring;
        const std::int64_t size = a == b ? n : n + m;
        edges += size > 2 ? size : size - 1;
      }
    }
    device.edges.push_back(edge);
  }
  const std::int64_t instances = *rc::gen::inRange<std::int64_t>(1, 4);
  document.devices.push_back(device);
  document.instances.push_back(
      {.name = "i", .description = {}, .device = "d", .count = instances, .where = {}});
  const Machine machine = infragraph::expand(document);
  RC_ASSERT(machine.links.size() == static_cast<std::size_t>(2 * edges * instances));
  const Machine parsed = from_infragraph(infragraph::write(document), "text");
  RC_ASSERT(fingerprint(parsed) == fingerprint(machine));
  const Machine again = from_infragraph(to_infragraph(machine), "again");
  RC_ASSERT(fingerprint(again) == fingerprint(machine));
}

}  // namespace
}  // namespace hemiola::machine
