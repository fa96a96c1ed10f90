// What is written as Chakra is read as the same workload.
#include "workload/traces/chakra/writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/text.h"
#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::Folder;

/// Everything but sources and notices.
void expect_equal(const Workload& a, const Workload& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.ranks, b.ranks);
  ASSERT_EQ(a.streams.size(), b.streams.size());
  for (std::size_t s = 0; s < a.streams.size(); ++s) {
    EXPECT_EQ(a.streams[s].name, b.streams[s].name);
    EXPECT_EQ(a.streams[s].in_order, b.streams[s].in_order);
  }
  ASSERT_EQ(a.families.size(), b.families.size());
  for (std::size_t f = 0; f < a.families.size(); ++f) {
    EXPECT_EQ(a.families[f].name, b.families[f].name);
    EXPECT_EQ(a.families[f].groups, b.families[f].groups);
  }
  ASSERT_EQ(a.classes.size(), b.classes.size());
  for (std::size_t c = 0; c < a.classes.size(); ++c) {
    SCOPED_TRACE(a.classes[c].name);
    EXPECT_EQ(a.classes[c].name, b.classes[c].name);
    EXPECT_EQ(a.classes[c].ranks, b.classes[c].ranks);
    const Trace &x = *a.classes[c].trace, &y = *b.classes[c].trace;
    EXPECT_EQ(x.dependencies, y.dependencies);
    ASSERT_EQ(x.nodes.size(), y.nodes.size());
    for (std::size_t i = 0; i < x.nodes.size(); ++i) {
      const Node &m = x.nodes[i], &n = y.nodes[i];
      SCOPED_TRACE(m.id);
      EXPECT_EQ(m.id, n.id);
      EXPECT_EQ(a.names[m.name], b.names[n.name]);
      EXPECT_EQ(m.kind, n.kind);
      EXPECT_EQ(m.stream, n.stream);
      EXPECT_EQ(m.dependencies, n.dependencies);
      EXPECT_EQ(m.host, n.host);
      EXPECT_EQ(m.recorded_begin, n.recorded_begin);
      EXPECT_EQ(m.recorded, n.recorded);
      ASSERT_EQ(m.work < 0, n.work < 0);
      if (m.work < 0) continue;
      const auto mw = static_cast<std::size_t>(m.work), nw = static_cast<std::size_t>(n.work);
      if (m.kind == NodeKind::collective) {
        const CollectiveCall &p = a.collectives[mw], &q = b.collectives[nw];
        EXPECT_EQ(std::tuple(p.kind, p.family, p.bytes, p.type),
                  std::tuple(q.kind, q.family, q.bytes, q.type));
      } else if (m.kind == NodeKind::send || m.kind == NodeKind::receive) {
        const Message &p = a.messages[mw], &q = b.messages[nw];
        EXPECT_EQ(std::tuple(p.family, p.from_first, p.bytes, p.tag),
                  std::tuple(q.family, q.from_first, q.bytes, q.tag));
      } else {
        const Compute &p = a.computes[mw], &q = b.computes[nw];
        const auto key = [](const Compute& c) {
          return std::tuple(c.kind, c.product.m, c.product.n, c.product.k, c.product.batch,
                            c.product.type, c.product.output, c.product.accumulate, c.batch,
                            c.heads, c.kv_heads, c.queries, c.keys, c.head_dim, c.causal,
                            c.backward, c.type, c.flop, c.read, c.written);
        };
        EXPECT_EQ(key(p), key(q));
      }
    }
  }
  EXPECT_EQ(a.facts.has_value(), b.facts.has_value());
  if (!a.facts || !b.facts) return;
  EXPECT_EQ(a.facts->model, b.facts->model);
  EXPECT_EQ(a.facts->tokens, b.facts->tokens);
  EXPECT_EQ(a.facts->flop, b.facts->flop);
  EXPECT_EQ(a.facts->type, b.facts->type);
  EXPECT_EQ(a.facts->memory, b.facts->memory);
}

/// Two pipeline stages of two ranks each, with a node of every kind.
Workload two_stages() {
  WorkloadBuilder builder("two stages", 4);
  const std::uint16_t compute = builder.stream("compute"), host = builder.stream("host", false),
                      comm = builder.stream("communication");
  const std::int32_t tp = builder.family("tp", {{0, 1}, {2, 3}});
  const std::int32_t pp = builder.family("pp", {{0, 2}, {1, 3}});
  builder.family("unused", {{3, 2, 1, 0}});
  const std::int32_t works[] = {
      builder.compute({.kind = Compute::Kind::product,
                       .product = {.m = 8,
                                   .n = 16,
                                   .k = 32,
                                   .batch = 2,
                                   .type = DataType::fp8_e4m3,
                                   .output = DataType::float32,
                                   .accumulate = true},
                       .type = DataType::fp8_e4m3}),
      builder.compute({.kind = Compute::Kind::attention,
                       .batch = 2,
                       .heads = 4,
                       .kv_heads = 1,
                       .queries = 64,
                       .keys = 128,
                       .head_dim = 8,
                       .causal = true,
                       .backward = true}),
      builder.compute({.flop = 5, .read = 3, .written = 7}),
      builder.compute({.flop = 9, .read = 4}),
  };
  const std::int32_t copy = builder.compute({.read = 6, .written = 6});
  const std::int32_t set = builder.compute({.written = 6});
  const std::int32_t gather = builder.collective(
      {.kind = Collective::all_gather, .family = tp, .bytes = 1001, .type = DataType::float16});
  const std::int32_t reduce =
      builder.collective({.kind = Collective::reduce, .family = tp, .bytes = 64});
  const std::int32_t message =
      builder.message({.family = pp, .from_first = true, .bytes = 77, .tag = 3});
  const auto stage = [&](bool first) {
    auto trace = std::make_shared<Trace>();
    const auto add = [&](NodeKind kind, std::uint16_t stream, std::int32_t work,
                         std::vector<std::uint32_t> waits = {}) {
      Node node{.id = 100 + trace->nodes.size(),
                .name = builder.name(name_of(kind)),
                .kind = kind,
                .stream = stream,
                .work = work};
      node.first_dependency = static_cast<std::uint32_t>(trace->dependencies.size());
      node.dependencies = static_cast<std::uint32_t>(waits.size());
      trace->dependencies.insert(trace->dependencies.end(), waits.begin(), waits.end());
      trace->nodes.push_back(node);
    };
    add(NodeKind::nothing, compute, -1);
    add(NodeKind::host, host, -1);
    for (const std::int32_t work : works) add(NodeKind::compute, compute, work, {0, 1});
    add(NodeKind::compute, compute, -1);
    add(NodeKind::memory, compute, copy);
    add(NodeKind::memory, compute, set);
    add(NodeKind::collective, comm, gather, {3});
    add(NodeKind::collective, comm, reduce);
    add(first ? NodeKind::send : NodeKind::receive, comm, message, {9});
    trace->nodes[1].recorded = Time::from_us(4);
    trace->nodes[1].recorded_begin = Time::from_us(2);
    trace->nodes[2].recorded = Time{1'500'000'000};
    trace->nodes[2].recorded_begin = Time{123};
    trace->nodes[3].host = Time{55};
    return trace;
  };
  builder.workload().classes.push_back({"stage 1", stage(false), {2, 3}});
  builder.workload().classes.push_back({"stage 0", stage(true), {0, 1}});
  builder.workload().facts = ModelFacts{.model = "tiny",
                                        .phase = "train",
                                        .tokens = 4096,
                                        .flop = 1.25e18,
                                        .type = DataType::float16,
                                        .memory = {{{"weights", 5}}, {{"weights", 6}}}};
  return builder.take();
}

TEST(ChakraWriter, AWorkloadComesBackAsItWas) {
  const Folder folder;
  const Workload workload = two_stages();
  write_chakra(workload, folder / "w");
  expect_equal(workload, read_workload({.path = folder / "w"}));
  write_chakra(workload, folder.path());
  expect_equal(workload, read_workload({.path = folder / "two stages"}));
}

TEST(ChakraWriter, NodesWithoutIdsGetSome) {
  Workload workload = two_stages();
  for (RankClass& one : workload.classes) {
    auto trace = std::make_shared<Trace>(*one.trace);
    for (Node& node : trace->nodes) node.id = 0;
    one.trace = trace;
  }
  const Folder folder;
  write_chakra(workload, folder / "w");
  const Workload read = read_workload({.path = folder / "w"});
  EXPECT_EQ(read.classes.at(0).trace->nodes.at(5).id, 5u);
  EXPECT_EQ(read.classes.at(0).trace->dependencies, workload.classes.at(0).trace->dependencies);
}

TEST(ChakraWriter, GroupsAreNumberedAsAstraSimWantsThem) {
  const Folder folder;
  write_chakra(two_stages(), folder / "w");
  const auto groups = nlohmann::json::parse(read_file(folder / "w.json"));
  EXPECT_EQ(groups,
            (nlohmann::json{
                {"1", {0, 1}}, {"2", {2, 3}}, {"3", {0, 2}}, {"4", {1, 3}}, {"5", {3, 2, 1, 0}}}));
}

TEST(ChakraWriter, OthersFindSizesPeersAndTheOrderOfStreams) {
  const Folder folder;
  write_chakra(two_stages(), folder / "w");
  const std::string content = read_file(folder / "w.2.et");
  const std::string file = "w.2.et";
  ChakraMessages messages(file, content);
  chakra::GlobalMetadata metadata;
  messages.read(metadata);
  EXPECT_EQ(metadata.version(), "0.0.4");
  std::vector<chakra::Node> nodes;
  for (chakra::Node node; messages.read(node);) nodes.push_back(node);
  const auto number = [&](std::size_t node, std::string_view name) {
    for (const chakra::AttributeProto& attribute : nodes.at(node).attr())
      if (attribute.name() == name) return attribute.int64_val();
    return std::int64_t{-1};
  };
  // The product: 2 m n k of two; its dependency on node 100 is data, so that no other is needed.
  EXPECT_EQ(number(2, "num_ops"), 2 * 8 * 16 * 32 * 2);
  EXPECT_EQ(number(2, "tensor_size"), 2 * (8 * 32 + 32 * 16 + 2 * 4 * 8 * 16));
  EXPECT_EQ(nodes[2].ctrl_deps_size(), 0);
  EXPECT_EQ(nodes[3].ctrl_deps(0), 102u);
  EXPECT_EQ(number(9, "comm_type"), chakra::ALL_GATHER);
  EXPECT_EQ(number(9, "comm_size"), 501) << "of one rank, rounded up";
  EXPECT_EQ(nodes[11].type(), chakra::COMM_RECV_NODE);
  EXPECT_EQ(number(11, "comm_src"), 0);
  EXPECT_EQ(number(11, "comm_dst"), 2);
}

TEST(ChakraWriter, ATraceOfOthersComesBackToo) {
  HEMIOLA_SHARED_INPUT(path, "chakra/llama_tiny_dp2tp2pp2");
  const Workload workload = read_workload({.path = path});
  const Folder folder;
  write_chakra(workload, folder / "w");
  expect_equal(workload, read_workload({.path = folder / "w"}));
}

}  // namespace
}  // namespace hemiola::workload
