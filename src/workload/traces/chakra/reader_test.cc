// Chakra traces that are right, and what is taken from them.
#include <gtest/gtest.h>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::call_of;
using test::ChakraText;
using test::Folder;
using test::node_with;
using test::trace_of;
using test::waits_of;

/// The same file for each rank.
Workload read_ranks(const std::string& content, int ranks, const std::string& groups = {}) {
  const Folder folder;
  for (int rank = 0; rank < ranks; ++rank)
    folder.write("t." + std::to_string(rank) + ".et", content);
  if (!groups.empty()) folder.write("t.json", groups);
  return read_workload({.path = folder / "t"});
}

TEST(ChakraTrace, EveryTypeOfNodeBecomesItsKind) {
  ChakraText file;
  file.add(1, "metadata", chakra::METADATA_NODE);
  file.add(2, "load", chakra::MEM_LOAD_NODE);
  file.number("tensor_size", 64);
  file.add(3, "store", chakra::MEM_STORE_NODE);
  file.number("tensor_size", 128);
  file.add(4, "kernel", chakra::COMP_NODE);
  file.number("num_ops", 1000).number("tensor_size", 4096);
  file.add(5, "operator", chakra::COMP_NODE);
  file.number("is_cpu_op", 1);
  file.collective(6, chakra::ALL_REDUCE, 1024);
  const Workload workload = read_ranks(file.str(), 2);
  const Trace& trace = trace_of(workload, 0);
  EXPECT_EQ(workload.ranks, 2);
  EXPECT_EQ(workload.name, "t");
  EXPECT_EQ(node_with(trace, 1).kind, NodeKind::nothing);
  const auto work = [&](std::uint64_t id) {
    return workload.computes.at(static_cast<std::size_t>(node_with(trace, id).work));
  };
  EXPECT_EQ(node_with(trace, 2).kind, NodeKind::memory);
  EXPECT_EQ(work(2).read, 64);
  EXPECT_EQ(node_with(trace, 3).kind, NodeKind::memory);
  EXPECT_EQ(work(3).written, 128);
  EXPECT_EQ(node_with(trace, 4).kind, NodeKind::compute);
  EXPECT_EQ(work(4).flop, 1000);
  EXPECT_EQ(work(4).read, 4096);
  EXPECT_EQ(node_with(trace, 5).kind, NodeKind::host);
  EXPECT_EQ(call_of(workload, 0, 6).bytes, 1024);
  EXPECT_FALSE(workload.streams.at(node_with(trace, 4).stream).in_order);
  EXPECT_TRUE(workload.streams.at(node_with(trace, 6).stream).in_order);
}

TEST(ChakraTrace, RanksThatDoTheSameAreOneClass) {
  ChakraText file;
  file.collective(1, chakra::ALL_REDUCE, 1024);
  const Workload workload = read_ranks(file.str(), 4);
  ASSERT_EQ(workload.classes.size(), 1u);
  EXPECT_EQ(workload.classes[0].ranks, (std::vector{0, 1, 2, 3}));
}

TEST(ChakraTrace, SizesOfCollectivesAreThoseOfNcclTests) {
  ChakraText file;
  file.collective(1, chakra::ALL_REDUCE, 1024);
  file.collective(2, chakra::ALL_GATHER, 1024);  // of one rank
  file.collective(3, chakra::REDUCE_SCATTER, 1024);
  file.collective(4, chakra::REDUCE_SCATTER_BLOCK, 1024);
  file.collective(5, chakra::ALL_TO_ALL, 1024);
  file.collective(6, chakra::BROADCAST, 1024);
  file.collective(7, chakra::REDUCE, 1024);
  file.add(8, "barrier", chakra::COMM_COLL_NODE);
  file.number("comm_type", chakra::BARRIER);
  const Workload workload = read_ranks(file.str(), 4);
  const auto is = [&](std::uint64_t id, Collective kind, std::int64_t bytes) {
    EXPECT_EQ(call_of(workload, 0, id).kind, kind) << id;
    EXPECT_EQ(call_of(workload, 0, id).bytes, bytes) << id;
  };
  is(1, Collective::all_reduce, 1024);
  is(2, Collective::all_gather, 4096);
  is(3, Collective::reduce_scatter, 1024);
  is(4, Collective::reduce_scatter, 1024);
  is(5, Collective::all_to_all, 1024);
  is(6, Collective::broadcast, 1024);
  is(7, Collective::reduce, 1024);
  is(8, Collective::all_reduce, 4);
}

TEST(ChakraTrace, CommunicationOfTheHostIsAnOperationOfTheHost) {
  ChakraText file;
  file.add(1, "c10d::allreduce_", chakra::COMM_COLL_NODE);
  file.attribute("is_cpu_op").set_bool_val(true);
  EXPECT_EQ(node_with(trace_of(read_ranks(file.str(), 1), 0), 1).kind, NodeKind::host);
}

TEST(ChakraTrace, MessagesHaveTheirPeers) {
  const Folder folder;
  ChakraText zero, one;
  zero.add(1, "send", chakra::COMM_SEND_NODE);
  zero.number("comm_src", 0).number("comm_dst", 1).number("comm_tag", 7).number("comm_size", 64);
  one.add(2, "receive", chakra::COMM_RECV_NODE);
  one.number("comm_src", 0).number("comm_tag", 7).number("comm_size", 64);
  folder.write("t.0.et", zero.str());
  folder.write("t.1.et", one.str());
  const Workload workload = read_workload({.path = folder.path()});
  ASSERT_EQ(workload.messages.size(), 1u);
  EXPECT_EQ(workload.messages[0].bytes, 64);
  EXPECT_EQ(workload.messages[0].tag, 7);
  EXPECT_TRUE(workload.messages[0].from_first);
  EXPECT_EQ(workload.families[0].name, "0 to 1");
  EXPECT_EQ(workload.families[0].groups, (std::vector<std::vector<int>>{{0, 1}}));
  EXPECT_EQ(node_with(trace_of(workload, 0), 1).kind, NodeKind::send);
  EXPECT_EQ(node_with(trace_of(workload, 1), 2).kind, NodeKind::receive);
}

TEST(ChakraTrace, AMessageInAGroupOfTwoGoesToTheOther) {
  const Folder folder;
  ChakraText zero, one;
  zero.add(1, "send", chakra::COMM_SEND_NODE);
  zero.number("comm_size", 64).text("pg_name", "3");
  one.add(1, "receive", chakra::COMM_RECV_NODE);
  one.number("comm_size", 64).text("pg_name", "3");
  folder.write("t.0.et", zero.str());
  folder.write("t.1.et", one.str());
  folder.write("t.json", R"({"3": [0, 1]})");
  const Workload workload = read_workload({.path = folder / "t"});
  EXPECT_EQ(workload.families[0].name, "0 to 1");
}

TEST(ChakraTrace, WholeNumbersMayStandInEveryKindOfAttribute) {
  using Set = std::function<void(chakra::AttributeProto&)>;
  const std::vector<Set> kinds{
      [](auto& a) { a.set_double_val(512); },   [](auto& a) { a.set_float_val(512); },
      [](auto& a) { a.set_int32_val(512); },    [](auto& a) { a.set_int64_val(512); },
      [](auto& a) { a.set_uint32_val(512); },   [](auto& a) { a.set_uint64_val(512); },
      [](auto& a) { a.set_sint32_val(512); },   [](auto& a) { a.set_sint64_val(512); },
      [](auto& a) { a.set_fixed32_val(512); },  [](auto& a) { a.set_fixed64_val(512); },
      [](auto& a) { a.set_sfixed32_val(512); }, [](auto& a) { a.set_sfixed64_val(512); },
      [](auto& a) { a.set_string_val("512"); }, [](auto& a) { a.set_bytes_val("512"); }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    ChakraText file;
    file.add(1, "call", chakra::COMM_COLL_NODE);
    file.attribute("comm_type").set_bool_val(false);  // ALL_REDUCE
    kinds[kind](file.attribute("comm_size"));
    EXPECT_EQ(call_of(read_ranks(file.str(), 2), 0, 1).bytes, 512) << kind;
  }
}

TEST(ChakraTrace, DimensionsMayStandInEveryKindOfList) {
  using Set = std::function<void(chakra::AttributeProto&)>;
  const std::vector<Set> kinds{[](auto& a) { a.mutable_double_list()->add_values(1); },
                               [](auto& a) { a.mutable_float_list()->add_values(1); },
                               [](auto& a) { a.mutable_int32_list()->add_values(1); },
                               [](auto& a) { a.mutable_int64_list()->add_values(1); },
                               [](auto& a) { a.mutable_uint32_list()->add_values(1); },
                               [](auto& a) { a.mutable_uint64_list()->add_values(1); },
                               [](auto& a) { a.mutable_sint32_list()->add_values(1); },
                               [](auto& a) { a.mutable_sint64_list()->add_values(1); },
                               [](auto& a) { a.mutable_fixed32_list()->add_values(1); },
                               [](auto& a) { a.mutable_fixed64_list()->add_values(1); },
                               [](auto& a) { a.mutable_sfixed32_list()->add_values(1); },
                               [](auto& a) { a.mutable_sfixed64_list()->add_values(1); },
                               [](auto& a) { a.mutable_bool_list()->add_values(true); },
                               [](auto& a) { a.mutable_string_list()->add_values("1"); },
                               [](auto& a) { a.mutable_bytes_list()->add_values("1"); }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    ChakraText file;
    file.collective(1, chakra::ALL_REDUCE, 512);
    kinds[kind](file.attribute("involved_dim"));
    EXPECT_EQ(call_of(read_ranks(file.str(), 2), 0, 1).bytes, 512) << kind;
  }
}

TEST(ChakraTrace, DataAndControlDependenciesBothCount) {
  ChakraText file;
  file.add(1, "a", chakra::COMP_NODE);
  file.add(2, "b", chakra::COMP_NODE);
  chakra::Node& last = file.add(3, "c", chakra::COMP_NODE);
  last.add_data_deps(1);
  last.add_data_deps(2);
  last.add_ctrl_deps(2);
  const Workload workload = read_ranks(file.str(), 1);
  EXPECT_EQ(waits_of(trace_of(workload, 0), 3), (std::vector<std::uint64_t>{1, 2}));
}

TEST(ChakraTrace, ANodeStandsBehindThoseThatItWaitsForAndElseInTheOrderOfTheFile) {
  ChakraText file;
  file.add(5, "a", chakra::COMP_NODE).add_data_deps(9);
  file.add(7, "b", chakra::COMP_NODE);
  file.add(9, "c", chakra::COMP_NODE);
  const Workload workload = read_ranks(file.str(), 1);
  const Trace& trace = trace_of(workload, 0);
  std::vector<std::uint64_t> order;
  for (const Node& node : trace.nodes) order.push_back(node.id);
  EXPECT_EQ(order, (std::vector<std::uint64_t>{7, 9, 5}));
  EXPECT_EQ(waits_of(trace, 5), (std::vector<std::uint64_t>{9}));
}

TEST(ChakraTrace, TimesCountFromTheFirst) {
  ChakraText file;
  chakra::Node& first = file.add(1, "a", chakra::COMP_NODE);
  first.set_start_time_micros(1'700'000'000'000'000);  // since 1970
  first.set_duration_micros(5);
  file.add(2, "b", chakra::COMP_NODE).set_start_time_micros(1'700'000'000'000'012);
  const Workload workload = read_ranks(file.str(), 1);
  const Trace& trace = trace_of(workload, 0);
  EXPECT_EQ(node_with(trace, 1).recorded_begin, Time{});
  EXPECT_EQ(node_with(trace, 1).recorded, Time::from_us(5));
  EXPECT_EQ(node_with(trace, 2).recorded_begin, Time::from_us(12));
}

TEST(ChakraTrace, ShapesOfAProductAreItsWork) {
  ChakraText file;
  chakra::Node& op = file.add(1, "aten::addmm(0)", chakra::COMP_NODE);
  op.mutable_inputs()->set_shapes("[[1024], [512, 256], [256, 1024], [], []]");
  file.attribute("is_cpu_op").set_bool_val(true);
  chakra::Node& kernel = file.add(2, "ampere_sgemm_128x64_tn", chakra::COMP_NODE);
  kernel.add_ctrl_deps(1);
  kernel.mutable_inputs()->set_shapes("[[1024], [512, 256], [256, 1024], [], []]");
  kernel.mutable_inputs()->set_types(
      "['Tensor(c10::Half)', 'Tensor(c10::Half)', 'Tensor(c10::Half)', 'Int', 'Int']");
  const Workload workload = read_ranks(file.str(), 1);
  const Node& node = node_with(trace_of(workload, 0), 2);
  const Compute& work = workload.computes.at(static_cast<std::size_t>(node.work));
  EXPECT_EQ(work.kind, Compute::Kind::product);
  EXPECT_EQ(work.product.m, 512);
  EXPECT_EQ(work.product.n, 1024);
  EXPECT_EQ(work.product.k, 256);
  EXPECT_EQ(work.product.type, DataType::float16);
  EXPECT_FALSE(work.product.accumulate);
}

TEST(ChakraTrace, CallersInTracesOfPyTorchAreNoDependencies) {
  chakra::GlobalMetadata metadata;
  chakra::AttributeProto* schema = metadata.add_attr();
  schema->set_name("schema");
  schema->set_string_val("1.0.2-chakra.0.0.4");
  ChakraText file(metadata);
  file.add(1, "outer", chakra::COMP_NODE).add_ctrl_deps(2);
  chakra::Node& inner = file.add(2, "inner", chakra::COMP_NODE);
  inner.add_ctrl_deps(1);  // with the other, a cycle
  const Workload workload = read_ranks(file.str(), 1);
  EXPECT_TRUE(waits_of(trace_of(workload, 0), 2).empty());
  EXPECT_TRUE(test::has_notice(workload, "left out: who called a node"));
}

TEST(ChakraTrace, OlderFilesHaveAttributesInThePlaceOfTheVersion) {
  // GlobalMetadata { repeated AttributeProto attr = 1; }
  chakra::AttributeProto attribute;
  attribute.set_name("schema");
  attribute.set_string_val("symbolic_tensor_network");
  ChakraText file(attribute.SerializeAsString());
  file.add(1, "a", chakra::COMP_NODE);
  EXPECT_EQ(read_ranks(file.str(), 1).nodes(), 1);
}

}  // namespace
}  // namespace hemiola::workload
