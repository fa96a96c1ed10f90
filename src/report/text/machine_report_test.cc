#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/report.h"
#include "report/values/pair_figures.h"

namespace hemiola::report {
namespace {

using testing::HasSubstr;

/// Two GPUs, joined by `planes` switches with one link of 16 GB/s each way.
machine::Machine switched_pair(int planes) {
  machine::Machine machine;
  machine.name = "pair";
  machine.description = "two GPUs";
  machine.models.resize(1);
  machine.models[0].name = "toy";
  machine.models[0].sources["cu.count"] = "data sheet";
  machine.nodes.resize(static_cast<std::size_t>(2 + planes));
  machine.link_classes.resize(1);
  machine.link_classes[0].name = "wire";
  machine.link_classes[0].bandwidth = {16'000'000'000};
  machine.link_classes[0].latency = Time::from_ns(100);
  for (int i = 0; i < 2 + planes; ++i) {
    machine::Node& node = machine.nodes[static_cast<std::size_t>(i)];
    node.kind = i < 2 ? machine::NodeKind::xpu : machine::NodeKind::switch_;
    node.name = (i < 2 ? "gpu." : "switch.") + std::to_string(i);
    node.device = i < 2 ? "toy" : "crossbar";
    node.switch_model.latency = Time::from_ns(50);
    if (i < 2) continue;
    for (int gpu = 0; gpu < 2; ++gpu) {
      machine.links.push_back({gpu, i, 0, 0});
      machine.links.push_back({i, gpu, 0, 0});
    }
  }
  machine.gpus = {0, 1};
  machine.gpu_models = {0, 0};
  machine.place(std::vector<int>{0, 1});
  return machine;
}

TEST(PairFigures, add_up_the_planes_and_the_hops) {
  const PairFigures figures = pair_figures(switched_pair(3), 0, 1);
  EXPECT_EQ(figures.hops, 2);
  EXPECT_EQ(figures.paths, 3);
  EXPECT_EQ(bandwidth_text(figures), "48.0");
  // Twice 144 B at 16 GB/s (9 ns) and 100 ns of wire, and the switch between them.
  EXPECT_EQ(figures.latency, Time::from_ns(2 * (9 + 100) + 50));
  EXPECT_EQ(latency_text(figures), "268.0");
}

TEST(PairFigures, goodput_is_what_headers_leave_of_the_bandwidth) {
  machine::LinkClass link;
  link.bandwidth = {18'000'000'000};
  link.max_payload = {128};
  link.header = {16};
  EXPECT_EQ(goodput(link), "16.0 GB/s");
  link.bandwidth = Rate::ideal();
  EXPECT_EQ(goodput(link), "inf");
}

TEST(MachineReport, shows_the_graph_its_figures_and_where_numbers_come_from) {
  machine::Machine machine = switched_pair(2);
  machine.warnings.warning("a link without numbers");
  std::ostringstream out;
  print_machine(out, machine);
  const std::string text = out.str();
  EXPECT_THAT(text, HasSubstr("pair: two GPUs\nnodes: 2 xpu, 2 switch; 8 directed links\n"));
  EXPECT_THAT(text, HasSubstr("  ranks 0-1  toy\n"));
  EXPECT_THAT(text, HasSubstr("  wire       8    16 GB/s  14.2 GB/s   100 ns    128 B    16 B"));
  EXPECT_THAT(text, HasSubstr("  2  switch  crossbar  latency 50 ns, output queue unlimited\n"));
  EXPECT_THAT(text, HasSubstr("        0     1\n  0     -  32.0\n  1  32.0     -\n"));
  EXPECT_THAT(text, testing::ContainsRegex("cu.count +1  data sheet\n"));
  EXPECT_THAT(text, testing::ContainsRegex("cu.unroll +1  assumed\n"));
  EXPECT_THAT(text, HasSubstr("window (smallest feedback latency): "));
  EXPECT_THAT(text, HasSubstr("warning: a link without numbers"));
}

}  // namespace
}  // namespace hemiola::report
