// Chakra files that are refused: each with one message, and the exit code of its kind.
#include <gtest/gtest.h>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::ChakraText;
using test::failure_of;
using test::Folder;

/// What reading a single file t.0.et ends in, or, leniently, nothing.
std::string refusal(const std::string& content, ExitCode code = ExitCode::bad_input) {
  const Folder folder;
  return failure_of(folder, {.path = folder.write("t.0.et", content)}, code);
}
Workload read_leniently(const std::string& content, int replicate = 1) {
  const Folder folder;
  return read_workload(
      {.path = folder.write("t.0.et", content), .lenient = true, .replicate = replicate});
}

TEST(ChakraRefusal, AFileThatIsCutShortSaysAfterWhichNode) {
  ChakraText file;
  file.add(1, "first", chakra::COMP_NODE);
  file.add(2, "second", chakra::COMP_NODE);
  const std::string content = file.str();
  EXPECT_EQ(refusal(content.substr(0, content.size() - 3)),
            "t.0.et: error: the file is cut short: it ends within what comes after node 1 'first'");
  EXPECT_EQ(refusal(content + "\x80"),
            "t.0.et: error: the file is cut short: it ends after node 2 'second'");
}

TEST(ChakraRefusal, BytesThatAreNoNode) {
  ChakraText file;
  file.add(1, "first", chakra::COMP_NODE);
  const std::string content = file.str();
  EXPECT_EQ(refusal(content + std::string("\x02\x0f\x0f")),
            "t.0.et: error: what comes after node 1 'first', at byte 20, is no node");
}

TEST(ChakraRefusal, AFileWithoutMetadata) {
  ChakraText file;
  file.add(1, "first", chakra::COMP_NODE);
  file.add(2, "second", chakra::COMP_NODE);
  EXPECT_EQ(refusal(file.str().substr(8)),
            "t.0.et: error: is no Chakra trace: its first message is no GlobalMetadata");
}

TEST(ChakraRefusal, ADependencyOnANodeThatIsNotThere) {
  ChakraText file;
  file.add(1, "a", chakra::COMP_NODE).add_data_deps(4485);
  file.add(2, "b", chakra::COMP_NODE).add_ctrl_deps(4486);
  EXPECT_EQ(refusal(file.str()),
            "t.0.et: error: node 1 'a' depends on node 4485, which is not there\n"
            "  hint: --lenient leaves such dependencies out");
  const Workload workload = read_leniently(file.str());
  ASSERT_EQ(workload.notices.size(), 2u);
  EXPECT_EQ(workload.notices[0].message,
            "ignored: a dependency on a node that is not there: 2 times, the first is node 1 'a' "
            "depends on node 4485, which is not there");
}

TEST(ChakraRefusal, ANodeThatWaitsForItself) {
  ChakraText file;
  file.add(1, "a", chakra::COMP_NODE).add_data_deps(1);
  EXPECT_EQ(refusal(file.str(), ExitCode::deadlock),
            "t.0.et: error: node 1 'a' waits for itself\n"
            "  hint: --lenient leaves such dependencies out");
  EXPECT_EQ(read_leniently(file.str()).nodes(), 1);
}

TEST(ChakraRefusal, ACycleNamesItsNodes) {
  ChakraText file;
  file.add(1, "a", chakra::COMP_NODE);
  file.add(2, "b", chakra::COMP_NODE).add_data_deps(4);
  file.add(3, "c", chakra::COMP_NODE).add_data_deps(2);
  file.add(4, "d", chakra::COMP_NODE).add_data_deps(3);
  file.add(5, "e", chakra::COMP_NODE).add_data_deps(4);
  EXPECT_EQ(refusal(file.str(), ExitCode::deadlock),
            "t.0.et: error: nodes wait for each other: 2 'b' for 4 'd' for 3 'c' for 2 'b'");
}

TEST(ChakraRefusal, TwoNodesWithOneId) {
  ChakraText file;
  file.add(1, "a", chakra::COMP_NODE);
  file.add(1, "b", chakra::COMP_NODE);
  EXPECT_EQ(refusal(file.str()), "t.0.et: error: node 1 'b' has an id that another node has");
  ChakraText sparse;
  sparse.add(1, "a", chakra::COMP_NODE);
  sparse.add(1'000'000'000'000, "b", chakra::COMP_NODE);
  sparse.add(1'000'000'000'000, "c", chakra::COMP_NODE);
  EXPECT_EQ(refusal(sparse.str()),
            "t.0.et: error: node 1000000000000 'c' has an id that another node has");
}

TEST(ChakraRefusal, SizesThatAreNone) {
  const auto with_size = [](std::int64_t size) {
    ChakraText file;
    file.collective(8, chakra::ALL_REDUCE, size);
    return refusal(file.str());
  };
  EXPECT_EQ(with_size(0), "t.0.et: error: node 8 'call' has a comm_size of 0");
  EXPECT_EQ(with_size(-5), "t.0.et: error: node 8 'call' has a comm_size of -5");
  ChakraText without;
  without.add(8, "call", chakra::COMM_COLL_NODE);
  without.number("comm_type", chakra::ALL_REDUCE);
  EXPECT_EQ(refusal(without.str()), "t.0.et: error: node 8 'call' has no comm_size");
  ChakraText half;
  half.add(8, "call", chakra::COMM_COLL_NODE);
  half.number("comm_type", 0).attribute("comm_size").set_double_val(0.5);
  EXPECT_EQ(refusal(half.str()), "t.0.et: error: node 8 'call': its comm_size is no whole number");
  ChakraText huge;
  huge.add(8, "call", chakra::COMM_COLL_NODE);
  huge.number("comm_type", 0).attribute("comm_size").set_uint64_val(~std::uint64_t{0});
  EXPECT_EQ(refusal(huge.str()), "t.0.et: error: node 8 'call': its comm_size is no whole number");
  ChakraText negative;
  negative.add(8, "kernel", chakra::COMP_NODE);
  negative.number("num_ops", -1);
  EXPECT_EQ(refusal(negative.str()), "t.0.et: error: node 8 'kernel' has a num_ops of -1");
}

TEST(ChakraRefusal, AKindOfCollectiveThatIsNotKnown) {
  ChakraText unknown;
  unknown.collective(8, static_cast<chakra::CollectiveCommType>(42), 64);
  EXPECT_EQ(refusal(unknown.str()),
            "t.0.et: error: node 8 'call' has a comm_type of 42, which is not known");
  ChakraText without;
  without.add(8, "call", chakra::COMM_COLL_NODE);
  without.number("comm_size", 64);
  EXPECT_EQ(refusal(without.str()), "t.0.et: error: node 8 'call' has no comm_type");
}

TEST(ChakraRefusal, GatherIsTakenAsAnAllGatherOnlyLeniently) {
  ChakraText file;
  file.collective(8, chakra::GATHER, 64);
  EXPECT_EQ(refusal(file.str()),
            "t.0.et: error: node 8 'call' is a GATHER, which cannot be simulated\n"
            "  hint: --lenient takes it as an all-gather");
  const Workload workload = read_leniently(file.str(), 4);
  EXPECT_EQ(workload.collectives.at(0).kind, Collective::all_gather);
  EXPECT_EQ(workload.collectives.at(0).bytes, 256);
  EXPECT_TRUE(test::has_notice(workload, "converted: a GATHER to an all-gather: 1 time"));
}

TEST(ChakraRefusal, ATypeOfNodeThatIsNotKnown) {
  ChakraText file;
  file.add(8, "read", static_cast<chakra::NodeType>(8));
  EXPECT_EQ(refusal(file.str()),
            "t.0.et: error: node 8 'read' is of type 8, which is not known\n"
            "  hint: --lenient takes it as a node of no time");
  EXPECT_TRUE(
      test::has_notice(read_leniently(file.str()), "ignored: a node of an unknown type: 1 time"));
}

TEST(ChakraRefusal, GroupsThatDoNotFit) {
  const auto with_groups = [](const std::string& groups, const std::string& name) {
    ChakraText file;
    file.collective(8, chakra::ALL_REDUCE, 64, name);
    const Folder folder;
    for (const char* rank : {"t.0.et", "t.1.et"}) folder.write(rank, file.str());
    folder.write("t.json", groups);
    return failure_of(folder, {.path = folder / "t"});
  };
  EXPECT_EQ(with_groups(R"({"5": [0, 1]})", "7"),
            "t.0.et: error: node 8 'call' uses process group '7', which nothing defines\n"
            "  hint: --groups FILE says which ranks it has: {\"7\": [0, 1]}");
  EXPECT_EQ(
      with_groups(R"({"7": [0, 3]})", "7"),
      "t.0.et: error: node 8 'call' is in process group '7' with rank 3, but there are traces "
      "of ranks 0 to 1 only\n"
      "  hint: give the traces of all ranks, or --replicate 4 makes the others from it");
  EXPECT_EQ(with_groups(R"({"7": [1]})", "7"),
            "t.0.et: error: node 8 'call' is of rank 0, which is not in its process group '7' of "
            "ranks 1");
  EXPECT_EQ(with_groups(R"({"7": [1, 1]})", "7"),
            "t.json: error: process group '7' has a rank twice or a negative one: ranks 1, 1");
}

TEST(ChakraRefusal, SomeDimensionsOfANetwork) {
  ChakraText file;
  file.collective(8, chakra::ALL_REDUCE, 64);
  chakra::BoolList* list = file.attribute("involved_dim").mutable_bool_list();
  list->add_values(true);
  list->add_values(false);
  EXPECT_EQ(
      refusal(file.str()),
      "t.0.et: error: node 8 'call' is in some dimensions of the network only (involved_dim): "
      "which ranks these are, nothing says\n"
      "  hint: name process groups (pg_name) instead");
}

TEST(ChakraRefusal, MessagesThatDoNotFit) {
  const auto message = [](std::int64_t from, std::int64_t to) {
    ChakraText file;
    file.add(8, "send", chakra::COMM_SEND_NODE);
    file.number("comm_src", from).number("comm_dst", to).number("comm_size", 64);
    return refusal(file.str());
  };
  EXPECT_EQ(
      message(0, 4),
      "t.0.et: error: node 8 'send' is a message from rank 0 to 4, but there is a trace of rank "
      "0 only\n"
      "  hint: give the traces of all ranks");
  EXPECT_EQ(message(1, 0),
            "t.0.et: error: node 8 'send' is a message from rank 1 to 0 in the trace of rank 0");
  ChakraText nowhere;
  nowhere.add(8, "send", chakra::COMM_SEND_NODE);
  nowhere.number("comm_size", 64);
  EXPECT_EQ(refusal(nowhere.str()), "t.0.et: error: node 8 'send' has no comm_dst");
}

TEST(ChakraRefusal, TimesBeyondWhatATimeCanBe) {
  ChakraText file;
  file.add(8, "kernel", chakra::COMP_NODE).set_duration_micros(10'000'000'000);
  EXPECT_EQ(refusal(file.str()),
            "t.0.et: error: node 8 'kernel' has a duration of 10000000000 us, which is beyond the "
            "9,223 s that a time can be");
}

}  // namespace
}  // namespace hemiola::workload
