#include "machine/simai/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace hemiola::machine {
namespace {

using testing::HasSubstr;

std::string what_is_wrong_with(const std::string& text, const LoadOptions& options = {}) {
  try {
    from_simai_topology(text, "topo", options);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

/// As gen_Topo_Template.py writes it: `servers` of two GPUs with an NVSwitch, rails of `tors` leaf
/// switches each, every one linked to every spine.
std::string rails(int servers, int tors, int spines) {
  const int gpus = 2 * servers, leaves = 2 * tors, nodes = gpus + servers + leaves + spines;
  std::string ids, links;
  int count = 0;
  const auto link = [&](int from, int to, const std::string& rest) {
    links += std::to_string(from) + " " + std::to_string(to) + " " + rest + "\n";
    ++count;
  };
  for (int id = gpus; id < nodes; ++id) ids += std::to_string(id) + " ";
  for (int gpu = 0; gpu < gpus; ++gpu) {
    link(gpu, gpus + gpu / 2, "2880Gbps 0.000025ms 0");
    for (int tor = 0; tor < tors; ++tor)
      link(gpu, gpus + servers + 2 * tor + gpu % 2,
           tors == 1 ? "400Gbps 0.0005ms 0" : "200Gbps 0.0005ms 0");
  }
  for (int leaf = 0; leaf < leaves; ++leaf)
    for (int spine = 0; spine < spines; ++spine)
      link(gpus + servers + leaf, gpus + servers + leaves + spine, "400Gbps 0.0005ms 0");
  return std::to_string(nodes) + " 2 " + std::to_string(servers) + " " +
         std::to_string(leaves + spines) + " " + std::to_string(count) + " H100\n" + ids + "\n" +
         links;
}

TEST(SimaiTopology, one_server_is_gpus_around_an_nvswitch) {
  const Machine machine = from_simai_topology(
      "3 2 1 0 2 A100\n2\n0 2 2400Gbps 0.000025ms 0\n1 2 2400Gbps 0.000025ms 0\n", "dir/topo_2");
  EXPECT_EQ(machine.name, "topo_2");
  EXPECT_EQ(machine.ranks(), 2);
  EXPECT_EQ(machine.model(1).name, "a100");
  EXPECT_EQ(machine.reach(0, 1), Reach::load_store);
  ASSERT_EQ(machine.routes(0, 1).hops, 2);
  const LinkClass& link = machine.class_of(machine.routes(0, 1).links[0]);
  EXPECT_EQ(link.bandwidth, Rate{300'000'000'000});
  EXPECT_EQ(link.latency, Time::from_ns(25));
}

TEST(SimaiTopology, gpus_of_other_servers_are_reached_through_nics_and_rails) {
  const Machine machine = from_simai_topology(rails(2, 1, 2), "spectrum");
  EXPECT_EQ(machine.ranks(), 4);
  EXPECT_EQ(machine.reach(0, 1), Reach::load_store);
  EXPECT_EQ(machine.reach(0, 2), Reach::network);
  EXPECT_EQ(machine.routes(0, 2).hops, 4) << "its NIC, the rail's leaf, the other NIC, the GPU";
  EXPECT_EQ(machine.routes(0, 3).hops, 6) << "and a spine between two leaves";
  EXPECT_EQ(machine.routes(0, 3).count, 2);
}

TEST(SimaiTopology, a_nic_on_two_leaves_has_two_ways) {
  const Machine machine = from_simai_topology(rails(2, 2, 1), "hpn");
  EXPECT_EQ(machine.routes(0, 2).count, 2);
  EXPECT_EQ(machine.routes(0, 2).hops, 4);
}

TEST(SimaiTopology, ids_of_switches_may_stand_anywhere) {
  const Machine machine = from_simai_topology(
      "4 1 0 1 3 H800\n1\n0 1 50GBps 500ns 0\n1 2 50GBps 500ns 0\n"
      "3 1 50GBps 500ns 0.01\n",
      "topo");
  EXPECT_EQ(machine.ranks(), 3);
  EXPECT_EQ(machine.model(0).name, "h100");
  EXPECT_EQ(machine.reach(0, 2), Reach::network);
  EXPECT_THAT(machine.warnings.render(), HasSubstr("ignored: the error rate 0.01 of a link"));
  EXPECT_THAT(machine.warnings.render(), HasSubstr("H800 are taken as 'h100'"));
  EXPECT_THAT(machine.warnings.render(), HasSubstr("has no NICs"));
}

TEST(SimaiTopology, a_gpu_without_a_model_needs_one) {
  const std::string text = "2 2 0 0 1 H20\n0 1 2880Gbps 25ns 0\n";
  EXPECT_THAT(what_is_wrong_with(text), HasSubstr("topo:1: error: there is no device model of the "
                                                  "GPU type 'H20'"));
  EXPECT_EQ(from_simai_topology(text, "topo", {.gpu = "h100"}).model(0).name, "h100");
}

TEST(SimaiTopology, what_is_wrong_is_said_with_its_line) {
  const std::string head = "3 2 1 0 2 H100\n2\n", link = "0 2 2400Gbps 25ns 0\n";
  const std::array cases{
      std::pair{std::string("3 2 1 0 H100\n"), "topo:1: error: the first line"},
      std::pair{std::string("3 2 4 0 2 H100\n"), "topo:1: error: '4' is not a whole number"},
      std::pair{std::string("3 2 2 1 2 H100\n"), "topo:1: error: all nodes are switches"},
      std::pair{std::string("4 2 1 0 2 H100\n"), "topo:1: error: 3 GPUs are no whole number"},
      std::pair{std::string("3 2 99999999999999999999 0 2 H100\n"), "topo:1: error:"},
      std::pair{std::string("3 2 1 0 2 H100\n"), "topo:1: error: the text ends after 0 of 1 ids"},
      std::pair{std::string("4 1 2 0 0 H100\n2 2\n"), "topo:2: error: switch 2 stands twice"},
      std::pair{std::string("4 1 2 0 0 H100\n2 3 1\n"), "topo:2: error: there are more than 2"},
      std::pair{head + link, "topo:3: error: the text ends after 1 of 2 links"},
      std::pair{head + link + link + link, "topo:5: error: there is more behind the 2 links"},
      std::pair{head + "0 3 2400Gbps 25ns 0\n", "topo:3: error: '3' is not a whole number"},
      std::pair{head + "0 0 2400Gbps 25ns 0\n", "topo:3: error: node 0 is linked to itself"},
      std::pair{head + "0 2 fast 25ns 0\n", "topo:3: error: 'fast' is no rate"},
      std::pair{head + "0 2 2400 25ns 0\n", "topo:3: error: '2400' is no rate"},
      std::pair{head + "0 2 2400Gbps soon 0\n", "topo:3: error: 'soon' is no latency"},
      std::pair{head + "0 2 2400Gbps 25ns\n", "topo:3: error: a link has five words"}};
  for (const auto& [text, message] : cases)
    EXPECT_THAT(what_is_wrong_with(text), HasSubstr(message)) << text;
}

TEST(SimaiTopology, comes_back_from_infragraph) {
  const Machine machine = from_simai_topology(rails(2, 2, 2), "hpn");
  const Machine again = from_infragraph(to_infragraph(machine), "hpn.yaml");
  EXPECT_EQ(to_infragraph(again), to_infragraph(machine));
  EXPECT_EQ(again.routes(0, 3).count, machine.routes(0, 3).count);
}

}  // namespace
}  // namespace hemiola::machine
