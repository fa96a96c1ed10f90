#include "workload/astra/configuration.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>
#include <vector>

#include "core/testing/failure.h"
#include "core/text.h"
#include "workload/testing/astra.h"

namespace hemiola::workload {
namespace {

using hemiola::test::message_of;
using Kind = AstraAlgorithm::Kind;

AstraSystem system_of(std::string_view text) {
  Diagnostics notices;
  return read_astra_system(text, "system.json", notices);
}
std::string system_refusal(std::string_view text) {
  return message_of([&] { system_of(text); });
}
std::string system_notices(std::string_view text) {
  Diagnostics notices;
  read_astra_system(text, "system.json", notices);
  return notices.render();
}
AstraNetwork network_of(std::string_view text) {
  return read_astra_network(text, "network.yml");
}
std::string network_refusal(std::string_view text) {
  return message_of([&] { network_of(text); });
}

TEST(AstraSystem, KeysAreRead) {
  const AstraSystem system = system_of(R"({
    "scheduling-policy": "FIFO",
    "all-reduce-implementation": ["ring", "direct", "direct12"],
    "all-gather-implementation": ["oneRing"],
    "reduce-scatter-implementation": ["halvingDoubling", "oneHalvingDoubling"],
    "all-to-all-implementation": ["oneDirect3", "doubleBinaryTree"],
    "collective-optimization": "localBWAware",
    "preferred-dataset-splits": 8,
    "active-chunks-per-dimension": 2,
    "endpoint-delay": 25,
    "local-mem-bw": 1935.5,
    "peak-perf": 989,
    "roofline-enabled": 1,
    "replay-only": 0
  })");
  EXPECT_EQ(system.order, AstraSystem::Order::first_first);
  using Algorithms = std::vector<std::tuple<Kind, bool, int>>;  // over all, window
  const auto algorithms = [&](Collective kind) {
    Algorithms all;
    for (const AstraAlgorithm& one : system.algorithms[static_cast<std::size_t>(kind)])
      all.emplace_back(one.kind, one.over_all, one.window);
    return all;
  };
  EXPECT_EQ(
      algorithms(Collective::all_reduce),
      (Algorithms{{Kind::ring, false, 0}, {Kind::direct, false, 0}, {Kind::direct, false, 12}}));
  EXPECT_EQ(algorithms(Collective::all_gather), (Algorithms{{Kind::ring, true, 0}}));
  EXPECT_EQ(algorithms(Collective::reduce_scatter),
            (Algorithms{{Kind::halving_doubling, false, 0}, {Kind::halving_doubling, true, 0}}));
  EXPECT_EQ(algorithms(Collective::all_to_all),
            (Algorithms{{Kind::direct, true, 3}, {Kind::double_binary_tree, false, 0}}));
  EXPECT_TRUE(system.local_bandwidth_aware);
  EXPECT_EQ(system.chunks, 8);
  EXPECT_EQ(system.active_chunks, 2);
  EXPECT_EQ(system.endpoint_delay_ns, 25);
  EXPECT_EQ(system.local_memory_bandwidth, 1935.5);
  EXPECT_EQ(system.peak_tflops, 989);
  EXPECT_TRUE(system.roofline);
  EXPECT_FALSE(system.replay);
}

TEST(AstraSystem, WhatIsLeftOutHasAstraSimsDefault) {
  const AstraSystem system = system_of("{}");
  EXPECT_EQ(system.endpoint_delay_ns, 10);
  EXPECT_EQ(system.active_chunks, 1);
  EXPECT_FALSE(system.local_bandwidth_aware);
  EXPECT_TRUE(system.algorithms[0].empty());
}

TEST(AstraSystem, MistakesAreNamed) {
  EXPECT_EQ(system_refusal(R"({"endpoint-dealy": 10})"),
            "system.json:1:20: error: unknown key 'endpoint-dealy' (at /endpoint-dealy)\n"
            "  hint: did you mean 'endpoint-delay'?");
  EXPECT_EQ(system_refusal(R"({"all-reduce-implementation": ["rign"]})"),
            "system.json:1:32: error: there is no algorithm 'rign' (at "
            "/all-reduce-implementation/0)\n  hint: did you mean 'ring'?");
  EXPECT_EQ(system_refusal(R"({"all-reduce-implementation": ["ring4"]})"),
            "system.json:1:32: error: there is no algorithm 'ring4' (at "
            "/all-reduce-implementation/0)\n  hint: did you mean 'ring'?");
  EXPECT_EQ(system_refusal(R"({"all-reduce-implementation": ["direct0"]})"),
            "system.json:1:32: error: the window of 'direct0' is not a number of messages (at "
            "/all-reduce-implementation/0)\n"
            "  hint: a number of at least 1, or none for a message to every other rank");
  EXPECT_EQ(system_refusal(R"({"scheduling-policy": "lifo"})"),
            "system.json:1:23: error: 'lifo' is none of LIFO, FIFO, EXPLICIT (at "
            "/scheduling-policy)\n  hint: did you mean 'LIFO'?");
  EXPECT_EQ(system_refusal(R"({"local-mem-bw": "1600 GB/s"})"),
            "system.json:1:18: error: a number is needed here, not a string (at /local-mem-bw)");
  EXPECT_EQ(system_refusal(R"({"preferred-dataset-splits": 0})"),
            "system.json:1:30: error: 0 is not in the range 1 to 1000000 (at "
            "/preferred-dataset-splits)");
  EXPECT_EQ(system_refusal(R"({"roofline-enabled": false})"),
            "system.json:1:22: error: ASTRA-sim reads 'roofline-enabled': false as true (at "
            "/roofline-enabled)\n  hint: write 0");
  EXPECT_EQ(system_refusal(R"({"roofline-enabled": true, "peak-perf": 900})"),
            "system.json:1:1: error: 'roofline-enabled' needs 'local-mem-bw' and 'peak-perf' (at "
            "/)");
  EXPECT_EQ(system_refusal(R"({"model-shared-bus": 1})"),
            "system.json:1:22: error: the shared memory bus of ASTRA-sim has no counterpart here "
            "(at /model-shared-bus)\n"
            "  hint: without it, 'endpoint-delay' is the time between memory and network");
}

TEST(AstraSystem, KeysWithoutEffectAreNoticed) {
  EXPECT_EQ(system_notices(R"({"boost-mode": 0})"),
            "system.json:1:16: warning: ignored: 'boost-mode', which ASTRA-sim ignores too (at "
            "/boost-mode)");
  EXPECT_EQ(system_notices(R"({"L": 500})"),
            "system.json:1:7: warning: ignored: 'L', which means something with a shared memory "
            "bus only (at /L)");
  EXPECT_EQ(system_notices(R"({"trace-enabled": 1})"),
            "system.json:1:19: warning: ignored: 'trace-enabled', an output of ASTRA-sim (at "
            "/trace-enabled)");
  EXPECT_EQ(system_notices(R"({"all-reduce-implementation-custom": ["x"]})"),
            "system.json:1:38: warning: ignored: an algorithm that an execution trace describes "
            "(at /all-reduce-implementation-custom)\n"
            "  hint: the collective is done as 'all-reduce-implementation' says");
  EXPECT_EQ(system_notices(R"({"scheduling-policy": "EXPLICIT"})"),
            "system.json:1:23: warning: a workload has no priorities: all collectives have the "
            "same (at /scheduling-policy)");
  EXPECT_EQ(system_notices(R"({"model-shared-bus": 0, "endpoint-delay": 5})"), "");
}

TEST(AstraNetwork, DimensionsAreRead) {
  const AstraNetwork network = network_of(
      "topology: [ Ring, FullyConnected, Switch ]\n"
      "npus_count: [ 2, 4, 8 ]\n"
      "bandwidth: [ 50, 25.5, 400.0 ]  # GB/s\n"
      "latency: [ 500, 0, 936.25 ]\n");
  ASSERT_EQ(network.dimensions.size(), 3U);
  EXPECT_EQ(network.npus(), 64);
  EXPECT_EQ(network.dimensions[0].topology, AstraNetwork::Topology::ring);
  EXPECT_EQ(network.dimensions[1].topology, AstraNetwork::Topology::fully_connected);
  EXPECT_EQ(network.dimensions[2].topology, AstraNetwork::Topology::switched);
  EXPECT_EQ(network.dimensions[1].bandwidth, 25.5);
  EXPECT_EQ(network.dimensions[2].latency_ns, 936.25);
}

TEST(AstraNetwork, MistakesAreNamed) {
  const std::string rest = "npus_count: [4]\nbandwidth: [50]\nlatency: [5]\n";
  EXPECT_EQ(network_refusal("topology: [ring]\n" + rest),
            "network.yml:1: error: there is no topology 'ring'\n  hint: did you mean 'Ring'?");
  EXPECT_EQ(network_refusal("topology: Ring\n" + rest),
            "network.yml:1: error: 'topology' is a list with a value for each dimension");
  EXPECT_EQ(network_refusal("topology: [Ring, Switch]\n" + rest),
            "network.yml:2: error: 'npus_count' has 1 values for 2 dimensions");
  EXPECT_EQ(network_refusal("topology: [Ring]\n" + rest + "lanes: [2]\n"),
            "network.yml:5: error: unknown key 'lanes'");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [1]\nbandwidth: [50]\nlatency: [5]\n"),
            "network.yml:2: error: a dimension has at least 2 NPUs");
  EXPECT_EQ(
      network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [50 GB/s]\nlatency: [5]\n"),
      "network.yml:3: error: a number is needed in 'bandwidth', not '50 GB/s'\n"
      "  hint: without a unit: bandwidth counts in 2^30 B/s, latency in ns");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [0]\nlatency: [5]\n"),
            "network.yml:3: error: a bandwidth must be above 0");
  EXPECT_EQ(network_refusal("topology: [Ring]\nnpus_count: [4]\nbandwidth: [50]\nlatency: [-5]\n"),
            "network.yml:4: error: a latency must not be below 0");
  EXPECT_EQ(network_refusal("topology: [Ring, Ring]\nnpus_count: [1000, 1001]\n"
                            "bandwidth: [50, 50]\nlatency: [5, 5]\n"),
            "network.yml:2: error: the network has more than 1000000 NPUs");
}

TEST(AstraMemory, KindsAreRead) {
  const auto memory_of = [](std::string_view text) {
    Diagnostics notices;
    return read_astra_memory(text, "memory.json", notices);
  };
  EXPECT_EQ(memory_of(R"({"memory-type": "NO_MEMORY_EXPANSION"})").kind, AstraMemory::Kind::none);
  const AstraMemory nodes = memory_of(
      R"({"memory-type": "PER_NODE_MEMORY_EXPANSION", "num-nodes": 2, "num-npus-per-node": 4,
          "remote-mem-latency": 300, "remote-mem-bw": 100})");
  EXPECT_EQ(nodes.kind, AstraMemory::Kind::per_node);
  EXPECT_EQ(nodes.nodes, 2);
  EXPECT_EQ(nodes.npus_per_node, 4);
  EXPECT_EQ(nodes.latency_ns, 300);
  EXPECT_EQ(nodes.bandwidth, 100);
  EXPECT_EQ(message_of([&] { memory_of(R"({"memory-type": "MEMORY_POOL"})"); }),
            "memory.json:1:1: error: the key 'remote-mem-bw' is missing (at /)");
  EXPECT_EQ(message_of([&] { memory_of(R"({"memory-type": "POOL"})"); }),
            "memory.json:1:17: error: 'POOL' is none of NO_MEMORY_EXPANSION, "
            "PER_NODE_MEMORY_EXPANSION, PER_NPU_MEMORY_EXPANSION, MEMORY_POOL (at /memory-type)");
}

class AstraFiles : public testing::Test {
 protected:
  static constexpr const char* kFolder = HEMIOLA_SOURCE_DIR "/../shared/inputs/astra_configs";
  void SetUp() override {
    if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no " << kFolder << " here";
  }
  static std::string text(const std::string& name) {
    return read_file(std::string(kFolder) + "/" + name);
  }
};

TEST_F(AstraFiles, RealFilesAreWhatTheMarksWereMeasuredWith) {
  Diagnostics notices;
  const Workload workload = test::one_collective(Collective::all_reduce, 8, 1 << 20);
  AstraConfiguration ring{
      .system = read_astra_system(text("Ring_4chunks.json"), "Ring_4chunks.json", notices),
      .network = read_astra_network(text("Ring_8npus.yml"), "Ring_8npus.yml"),
      .memory = read_astra_memory(text("no_memory_expansion.json"), "memory.json", notices)};
  EXPECT_EQ(run_astra(workload, ring).time_ns, 64'440);
  AstraConfiguration hgx{.system = read_astra_system(text("HGX-H100-validated.json"),
                                                     "HGX-H100-validated.json", notices),
                         .network = read_astra_network(text("HGX-H100-validated.yml"), "hgx.yml")};
  EXPECT_EQ(run_astra(workload, hgx).time_ns, 55'222);
  hgx.aware = true;
  EXPECT_EQ(run_astra(workload, hgx).time_ns, 57'426);
  ASSERT_EQ(notices.items().size(), 2U) << "boost-mode, twice";
}

}  // namespace
}  // namespace hemiola::workload
