#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <set>

#include "machine/infragraph/infragraph.h"
#include "machine/machine.h"

namespace hemiola::machine {
namespace {

/// GPUs, switches, ... joined by hand; every link of one class unless said otherwise.
class Graph {
 public:
  Graph() {
    for (const char* name : {"fast", "slow"}) {
      LinkClass link;
      link.name = name;
      link.bandwidth = Rate{25'000'000'000};
      link.latency = Time::from_ns(name == std::string("fast") ? 10 : 100);
      machine_.link_classes.push_back(link);
    }
    machine_.models.push_back(gpu_model("ideal"));
    machine_.models[0].forwards = false;
  }
  NodeId add(NodeKind kind) {
    Node node;
    node.kind = kind;
    node.name = "n.0.n." + std::to_string(machine_.nodes.size());
    machine_.nodes.push_back(node);
    const auto id = static_cast<NodeId>(machine_.nodes.size() - 1);
    if (kind == NodeKind::xpu) {
      machine_.gpus.push_back(id);
      machine_.gpu_models.push_back(0);
    }
    return id;
  }
  void join(NodeId a, NodeId b, int lanes = 1, int link_class = 0) {
    for (int lane = 0; lane < lanes; ++lane) {
      machine_.links.push_back({.from = a, .to = b, .link_class = link_class, .lane = lane});
      machine_.links.push_back({.from = b, .to = a, .link_class = link_class, .lane = lane});
    }
  }
  Machine& machine() { return machine_; }

 private:
  Machine machine_;
};

void expect_valid(const Machine& machine, int from, int to) {
  const Routes& routes = machine.routes(from, to);
  std::set<std::vector<LinkId>> different;
  std::vector<LinkId> before;
  for (std::int32_t i = 0; i < routes.count; ++i) {
    NodeId at = machine.gpus[static_cast<std::size_t>(from)];
    const auto path = routes.path(i);
    for (const LinkId id : path) {
      const Link& link = machine.links[static_cast<std::size_t>(id)];
      ASSERT_EQ(link.from, at);
      at = link.to;
    }
    ASSERT_EQ(at, machine.gpus[static_cast<std::size_t>(to)]);
    const std::vector<LinkId> links(path.begin(), path.end());
    ASSERT_LT(before, links) << "paths stand in the order of their links";
    before = links;
    different.insert(links);
  }
  ASSERT_EQ(different.size(), static_cast<std::size_t>(routes.count));
}

TEST(Routes, a_rank_reaches_itself_by_one_empty_path) {
  const Machine machine = load("dgx-h100");
  EXPECT_EQ(machine.routes(3, 3).reach, Reach::self);
  EXPECT_EQ(machine.routes(3, 3).count, 1);
  EXPECT_TRUE(machine.routes(3, 3).path(0).empty());
}

TEST(Routes, a_pair_in_a_dgx_h100_has_18_planes_of_two_hops) {
  const Machine machine = load("dgx-h100");
  for (int from = 0; from < 8; ++from) {
    for (int to = 0; to < 8; ++to) {
      if (from == to) continue;
      const Routes& routes = machine.routes(from, to);
      ASSERT_EQ(routes.reach, Reach::load_store);
      ASSERT_EQ(routes.hops, 2);
      ASSERT_EQ(routes.count, 18);
      expect_valid(machine, from, to);
      for (int i = 0; i < 18; ++i) {
        const auto path = routes.path(i);
        EXPECT_EQ(machine.links[static_cast<std::size_t>(path[0])].lane,
                  machine.links[static_cast<std::size_t>(path[1])].lane);
      }
    }
  }
}

TEST(Routes, unequal_bundles_multiply_and_equal_ones_keep_the_lane) {
  Graph graph;
  const NodeId a = graph.add(NodeKind::xpu), b = graph.add(NodeKind::xpu);
  const NodeId center = graph.add(NodeKind::switch_);
  graph.join(a, center, 3);
  graph.join(center, b, 2);
  EXPECT_EQ(graph.machine().routes(0, 1).count, 6);
  expect_valid(graph.machine(), 0, 1);
  graph.join(center, b, 1);
  graph.machine().forget_routes();
  EXPECT_EQ(graph.machine().routes(0, 1).count, 3);
  expect_valid(graph.machine(), 1, 0);
}

TEST(Routes, hops_come_before_latency_and_latency_before_the_rest) {
  Graph graph;
  const NodeId a = graph.add(NodeKind::xpu), b = graph.add(NodeKind::xpu);
  const NodeId slow = graph.add(NodeKind::switch_), fast = graph.add(NodeKind::switch_);
  graph.join(a, slow, 1, 1);
  graph.join(slow, b, 1, 1);
  graph.join(a, fast);
  graph.join(fast, b);
  ASSERT_EQ(graph.machine().routes(0, 1).count, 1);
  EXPECT_EQ(
      graph.machine().links[static_cast<std::size_t>(graph.machine().routes(0, 1).links[0])].to,
      fast);
  graph.join(a, b, 1, 1);
  graph.machine().forget_routes();
  EXPECT_EQ(graph.machine().routes(0, 1).hops, 1);
}

TEST(Routes, setting_a_latency_changes_costs_and_not_paths) {
  Machine machine = from_infragraph(R"(
name: two-ways
components: [{name: xpu, count: 2, choice: xpu}, {name: nv, count: 1, choice: switch}, {name: sw, count: 1, choice: switch}]
links: [{name: nvlink}, {name: pcie}]
edges:
- {ep1: {component: xpu}, ep2: {component: nv}, scheme: many2many, link: nvlink}
- {ep1: {component: xpu}, ep2: {component: sw}, scheme: many2many, link: pcie}
)",
                                    "file.yaml");
  const std::vector<LinkId> before = machine.routes(0, 1).links;
  EXPECT_EQ(before.size(), 2u);
  machine.set("link.*.latency", "1 us");
  EXPECT_EQ(machine.routes(0, 1).links, before);
  machine.set("link.nvlink.latency", "9 us");
  EXPECT_EQ(machine.routes(0, 1).links, before);
}

TEST(Routes, a_gpu_is_passed_only_where_its_model_forwards) {
  Graph graph;
  for (int i = 0; i < 3; ++i) graph.add(NodeKind::xpu);
  graph.join(0, 1);
  graph.join(1, 2);
  EXPECT_EQ(graph.machine().reach(0, 2), Reach::none);
  graph.machine().set("gpu.fabric.forwards", "true");
  EXPECT_EQ(graph.machine().reach(0, 2), Reach::load_store);
  EXPECT_EQ(graph.machine().routes(0, 2).hops, 2);
}

TEST(Routes, a_gpu_outside_the_job_forwards_like_its_model) {
  Graph graph;
  for (int i = 0; i < 3; ++i) graph.add(NodeKind::xpu);
  graph.join(0, 1);
  graph.join(1, 2);
  graph.machine().place(std::vector<int>{0, 2});
  EXPECT_EQ(graph.machine().reach(0, 1), Reach::none);
  graph.machine().set("gpu.fabric.forwards", "true");
  EXPECT_EQ(graph.machine().reach(0, 1), Reach::load_store);
}

TEST(Routes, a_longer_way_without_a_nic_beats_a_shorter_one_through_the_network) {
  Graph graph;
  const NodeId a = graph.add(NodeKind::xpu), b = graph.add(NodeKind::xpu);
  const NodeId nic_a = graph.add(NodeKind::nic), nic_b = graph.add(NodeKind::nic);
  graph.join(a, nic_a);
  graph.join(nic_a, nic_b);
  graph.join(nic_b, b);
  EXPECT_EQ(graph.machine().reach(0, 1), Reach::network);
  EXPECT_EQ(graph.machine().routes(0, 1).hops, 3);
  NodeId at = a;
  for (int i = 0; i < 4; ++i) {
    const NodeId next = graph.add(NodeKind::cpu);
    graph.join(at, next);
    at = next;
  }
  graph.join(at, b);
  graph.machine().forget_routes();
  EXPECT_EQ(graph.machine().reach(0, 1), Reach::load_store);
  EXPECT_EQ(graph.machine().routes(0, 1).hops, 5);
}

TEST(Routes, a_network_path_has_two_nics_and_the_nearest_ones) {
  const Machine machine = load("dgx-h100:4");
  for (const int to : {8, 15, 31}) {
    const Routes& routes = machine.routes(1, to);
    ASSERT_EQ(routes.reach, Reach::network);
    ASSERT_GT(routes.count, 0);
    expect_valid(machine, 1, to);
    for (std::int32_t i = 0; i < routes.count; ++i) {
      std::vector<std::string> nics;
      for (const LinkId link : routes.path(i)) {
        const Node& node =
            machine
                .nodes[static_cast<std::size_t>(machine.links[static_cast<std::size_t>(link)].to)];
        if (node.kind == NodeKind::nic) nics.push_back(node.name);
      }
      ASSERT_EQ(nics.size(), 2u);
      EXPECT_EQ(nics[0], "dgx_h100.0.nic.1");
      EXPECT_EQ(nics[1], "dgx_h100." + std::to_string(to / 8) + ".nic." + std::to_string(to % 8));
    }
  }
}

TEST(Routes, of_very_many_paths_an_evenly_spaced_256_are_kept) {
  Graph graph;
  const NodeId a = graph.add(NodeKind::xpu), b = graph.add(NodeKind::xpu);
  NodeId at = a;
  for (const int lanes : {7, 5, 11, 3, 13}) {  // 15,015 ways to the last switch
    const NodeId next = graph.add(NodeKind::switch_);
    graph.join(at, next, lanes);
    at = next;
  }
  graph.join(at, b, 1);
  const Routes& routes = graph.machine().routes(0, 1);
  EXPECT_EQ(routes.count, 256);
  expect_valid(graph.machine(), 0, 1);
  std::set<LinkId> first;
  for (std::int32_t i = 0; i < routes.count; ++i) first.insert(routes.path(i)[0]);
  EXPECT_EQ(first.size(), 7u);
}

TEST(Routes, a_pair_among_1024_gpus_takes_well_under_a_millisecond) {
  const Machine machine = load("dgx-h100:128");
  machine.routes(0, 1);
  const auto start = std::chrono::steady_clock::now();
  constexpr int kPairs = 200;
  for (int i = 0; i < kPairs; ++i) ASSERT_EQ(machine.routes(i, 1023 - i).reach, Reach::network);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  // Generous: sanitizers and a busy host must not fail it, quadratic work must.
  EXPECT_LT(spent.count() / kPairs, 20.0);
}

RC_GTEST_PROP(Routes, on_a_random_graph_paths_are_shortest_valid_and_symmetric, ()) {
  Graph graph;
  const int nodes = *rc::gen::inRange(3, 12);
  for (int i = 0; i < nodes; ++i) graph.add(i < 3 ? NodeKind::xpu : NodeKind::switch_);
  const int edges = *rc::gen::inRange(nodes, 3 * nodes);
  for (int i = 0; i < edges; ++i) {
    const int a = *rc::gen::inRange(0, nodes), b = *rc::gen::inRange(0, nodes);
    if (a != b) graph.join(a, b, *rc::gen::inRange(1, 4), *rc::gen::inRange(0, 2));
  }
  const Machine& machine = graph.machine();
  // Floyd-Warshall over (hops, latency), switches only in between.
  constexpr std::int64_t kFar = std::int64_t{1} << 60;
  const auto size = static_cast<std::size_t>(nodes);
  std::vector<std::vector<std::int64_t>> cost(size, std::vector<std::int64_t>(size, kFar));
  for (const Link& link : machine.links) {
    auto& entry = cost[static_cast<std::size_t>(link.from)][static_cast<std::size_t>(link.to)];
    entry = std::min(
        entry,
        (std::int64_t{1} << 40) +
            machine.link_classes[static_cast<std::size_t>(link.link_class)].latency.fs / 1000);
  }
  for (std::size_t k = 3; k < size; ++k) {
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j)
        cost[i][j] = std::min(cost[i][j], cost[i][k] + cost[k][j]);
  }
  for (int from = 0; from < 3; ++from) {
    for (int to = 0; to < 3; ++to) {
      if (from == to) continue;
      const Routes& routes = machine.routes(from, to);
      const std::int64_t best = cost[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
      RC_ASSERT((routes.reach == Reach::none) == (best >= kFar));
      if (best >= kFar) continue;
      RC_ASSERT(routes.hops == best >> 40);
      RC_ASSERT(machine.routes(to, from).count == routes.count);
      expect_valid(machine, from, to);
      for (std::int32_t i = 0; i < routes.count; ++i) {
        std::int64_t latency = 0;
        for (const LinkId link : routes.path(i))
          latency += machine.class_of(link).latency.fs / 1000;
        RC_ASSERT(latency == (best & ((std::int64_t{1} << 40) - 1)));
      }
    }
  }
}

}  // namespace
}  // namespace hemiola::machine
