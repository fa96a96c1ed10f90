// One trace for all ranks.
#include <gtest/gtest.h>

#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::ChakraText;
using test::failure_of;
using test::Folder;

using Groups = std::vector<std::vector<int>>;

std::string calls_in(std::initializer_list<std::string_view> groups) {
  ChakraText file;
  std::uint64_t id = 1;
  for (const std::string_view group : groups) file.collective(id++, chakra::ALL_GATHER, 64, group);
  return file.str();
}

Workload replicate(const std::string& content, int ranks, const std::string& groups,
                   const std::string& name = "t.0.et") {
  const Folder folder;
  folder.write("t.json", groups);
  return read_workload({.path = folder.write(name, content), .replicate = ranks});
}

TEST(Replicate, GroupsBecomePartitionsOfTheSameSizeAndStride) {
  const Workload workload =
      replicate(calls_in({"1", "2", "3", ""}), 8, R"({"1": [0, 1], "2": [0, 2], "3": [0, 4]})");
  ASSERT_EQ(workload.families.size(), 4u);
  EXPECT_EQ(workload.families[0].groups, (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(workload.families[1].groups, (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(workload.families[2].groups, (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(workload.families[3].groups, (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
  ASSERT_EQ(workload.classes.size(), 1u);
  EXPECT_EQ(workload.classes[0].ranks.size(), 8u);
  EXPECT_EQ(workload.collectives[3].bytes, 8 * 64) << "an all-gather of 8 ranks";
  EXPECT_TRUE(test::has_notice(workload,
                               "all 8 ranks do what this trace of rank 0 does, with process "
                               "groups of the same size and stride"));
}

TEST(Replicate, ATraceOfAnotherRankGivesTheSamePartition) {
  const Workload workload = replicate(calls_in({"1"}), 8, R"({"1": [5, 7]})", "t.7.et");
  EXPECT_EQ(workload.families[0].groups, (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_TRUE(test::has_notice(workload, "this trace of rank 7"));
}

TEST(Replicate, TheOrderOfACommunicatorIsKept) {
  EXPECT_EQ(replicate(calls_in({"1"}), 4, R"({"1": [1, 0]})").families[0].groups,
            (Groups{{1, 0}, {3, 2}}));
}

TEST(Replicate, GroupsThatOtherRanksCannotHave) {
  const auto refused = [](const std::string& groups, int ranks) {
    const Folder folder;
    folder.write("t.json", groups);
    return failure_of(folder,
                      {.path = folder.write("t.0.et", calls_in({"1"})), .replicate = ranks});
  };
  const std::string hint = "\n  hint: give the traces of all ranks";
  EXPECT_EQ(
      refused(R"({"1": [0, 1, 4]})", 8),
      "t.0.et: error: node 1 'call' is in process group '1' of ranks 0, 1, 4, which are not evenly "
      "spaced: other ranks cannot have the like" +
          hint);
  EXPECT_EQ(refused(R"({"1": [0, 1, 2]})", 8),
            "t.0.et: error: node 1 'call' is in process group '1' of ranks 0, 1, 2, into the like "
            "of which "
            "8 ranks cannot be divided" +
                hint);
  EXPECT_EQ(refused(R"({"1": [1, 2]})", 8),
            "t.0.et: error: node 1 'call' is in process group '1' of ranks 1, 2, into the like of "
            "which 8 "
            "ranks cannot be divided" +
                hint);
}

TEST(Replicate, MessagesSayNothingAboutOtherRanks) {
  ChakraText file;
  file.add(8, "send", chakra::COMM_SEND_NODE);
  file.number("comm_dst", 1).number("comm_size", 64);
  const Folder folder;
  EXPECT_EQ(
      failure_of(folder, {.path = folder.write("t.0.et", file.str()), .replicate = 4}),
      "t.0.et: error: node 8 'send' is a message from rank 0 to 1: which ranks the others have in "
      "their place, nothing says\n"
      "  hint: give the traces of all ranks");
}

TEST(Replicate, NeedsOneTraceAndOneRankAtLeast) {
  const Folder folder;
  folder.write("t.0.et", calls_in({""}));
  EXPECT_EQ(failure_of(folder, {.path = folder / "t", .replicate = 0}),
            "error: --replicate 0: there is at least one rank");
  folder.write("t.1.et", calls_in({""}));
  EXPECT_EQ(failure_of(folder, {.path = folder / "t", .replicate = 4}),
            "t: error: --replicate makes all ranks from one trace, and there are 2");
}

}  // namespace
}  // namespace hemiola::workload
