// Kineto traces: what several places say about the ranks of a call has to agree.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "workload/testing/kineto.h"
#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::failure_of;
using test::Folder;
using test::KinetoText;
using test::kJob;

/// The message, of a file k.json.
std::string contradiction(const std::string& text, TraceRequest request) {
  const Folder folder;
  request.path = folder.write("k.json", text);
  return failure_of(folder, request);
}

TEST(KinetoGroups, GroupsThatContradictEachOtherAreRefused) {
  const auto text = [](std::string_view group_ranks, int size) {
    return KinetoText(R"("distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 4, )"
                      R"("pg_config": [{"pg_name": "7", "pg_size": 2, "ranks": [0, 1]}]}, )")
        .launch(1, 0, "ncclDevKernel_AllReduce(args)", 20, 25, 30,
                fmt::format(R"("Collective name": "allreduce", "In msg nelems": 1024, )"
                            R"("Out msg nelems": 1024, "Group size": {}, "dtype": "BFloat16", )"
                            R"("Process Group Name": "7", "Process Group Ranks": "{}")",
                            size, group_ranks))
        .str();
  };
  const std::string node =
      "k.json: error: node 1 'ncclDevKernel_AllReduce(args)' says that process "
      "group '7' has ";
  EXPECT_EQ(contradiction(text("[0, 2]", 2), {.replicate = 4}),
            node + "ranks 0, 2, elsewhere it has ranks 0, 1");
  EXPECT_EQ(contradiction(text("[1, 0]", 2), {.replicate = 4}),
            node +
                "ranks 1, 0, elsewhere it has ranks 0, 1\n"
                "  hint: the order of the ranks is that of the communicator, and has to be one");
  EXPECT_EQ(contradiction(text("[0, 1]", 4), {.replicate = 4}),
            node + "ranks 0, 1, and that they are 4");
  EXPECT_EQ(contradiction(text("", 4), {.replicate = 4}),
            node + "4 ranks, elsewhere it has ranks 0, 1");
  const Folder folder;
  folder.write("k.json", text("[0, 1]", 2));
  const auto with = [&](const std::string& groups) {
    return TraceRequest{
        .path = folder / "k.json", .groups = folder.write("groups.json", groups), .replicate = 4};
  };
  EXPECT_EQ(failure_of(folder, with(R"({"7": [0, 3]})")),
            "k.json: error: process group '7' is said to have two lists of ranks: ranks 0, 3 and "
            "ranks 0, 1\n"
            "  hint: --groups contradicts the trace: leave the group out of its file");
  EXPECT_EQ(read_workload(with(R"({"7": [[2, 3], [0, 1]]})")).families.front().groups.size(), 2U);
  EXPECT_EQ(
      failure_of(folder, with(R"({"8": [[0, 1], [1, 2]]})")),
      "groups.json: error: process group '8' has a rank twice or a negative one: ranks 0, 1 | "
      "1, 2");
  EXPECT_NE(failure_of(folder, with("{\"8\": [0],\n\"8\": [1]}")).find("groups.json:2:"),
            std::string::npos);
  EXPECT_TRUE(test::has_notice(read_workload(with(R"({"stream 9": [0, 1]})")),
                               "no call is in 1 of these process groups: 'stream 9'"));
}

TEST(KinetoGroups, SharesThatAreNotThoseOfTheGroupAreRefused) {
  const auto refused = [](std::string_view name, int in, int out) {
    return contradiction(
        KinetoText{std::string(kJob)}
            .launch(1, 0, "ncclDevKernel_X(args)", 20, 25, 30,
                    fmt::format(R"("Collective name": "{}", "In msg nelems": {}, )"
                                R"("Out msg nelems": {}, "Group size": 2, "dtype": "Float", )"
                                R"("Process Group Name": "7", "Process Group Ranks": "[0, 1]")",
                                name, in, out))
            .str(),
        {.replicate = 2});
  };
  EXPECT_EQ(
      refused("_allgather_base", 100, 100),
      "k.json: error: node 1 'ncclDevKernel_X(args)' gathers 100 elements and makes 100, in a "
      "group of 2 ranks\n"
      "  hint: all ranks together make as many times what one of them gives");
  EXPECT_EQ(
      refused("_reduce_scatter_base", 100, 25),
      "k.json: error: node 1 'ncclDevKernel_X(args)' scatters 100 elements and keeps 25, in a "
      "group of 2 ranks\n"
      "  hint: a rank keeps one share of as many");
}

/// A file of each rank, with an all-to-all of float numbers: what it sends to each and receives
/// from each, as the trace says it, and how many elements that is.
class AllToAlls {
 public:
  AllToAlls& add(std::string_view in, int sent, std::string_view out, int received) {
    calls_.push_back(fmt::format(
        R"("Collective name": "all_to_allv", "In msg nelems": {}, "Out msg nelems": {}, )"
        R"("dtype": "Float", "In split size": "{}", "Out split size": "{}", )"
        R"("Process Group Name": "7")",
        sent, received, in, out));
    return *this;
  }
  /// Bytes that each rank sends to each, "3 1; 2 2"; the message where it is refused.
  std::string read() const {
    const Folder folder;
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
      const std::string job = fmt::format(
          R"("distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": {}, "pg_config": )"
          R"([{{"pg_name": "7", "ranks": []}}]}}, )",
          rank, calls_.size());
      folder.write(fmt::format("t.{}.json", rank),
                   KinetoText(job)
                       .launch(1, 0, "ncclDevKernel_SendRecv(args)", 20, 25, 30, calls_[rank])
                       .str());
    }
    try {
      const Workload workload = read_workload({.path = folder / "t"});
      for (const RankClass& one : workload.classes) {
        for (const Node& node : one.trace->nodes)
          if (node.kind == NodeKind::collective) return text_of(workload, node.work);
      }
      return "no call";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::wrong_program);
      return failure_of(folder, {.path = folder / "t"}, ExitCode::wrong_program);
    }
  }

 private:
  static std::string text_of(const Workload& workload, std::int32_t work) {
    const CollectiveCall& call = workload.collectives.at(static_cast<std::size_t>(work));
    if (call.splits < 0) return fmt::format("even, {} B", call.bytes);
    const Splits& splits = workload.splits.at(static_cast<std::size_t>(call.splits));
    std::string text;
    const auto ranks = static_cast<std::size_t>(workload.ranks);
    for (std::size_t i = 0; i < splits.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : i % ranks == 0 ? "; " : " ", splits[i]);
    return text;
  }
  std::vector<std::string> calls_;
};

TEST(KinetoGroups, SplitSizesOfAllRanksAgree) {
  EXPECT_EQ(AllToAlls().add("[3, 1]", 400, "[3, 2]", 500).add("[]", 400, "[1, 2]", 300).read(),
            "1200 400; 800 800");
  EXPECT_EQ(AllToAlls().add("[3, 1]", 400, "[3, 2]", 500).add("[2, 2]", 400, "[]", 400).read(),
            "t.1.json: error: node 1 'ncclDevKernel_SendRecv(args)': rank 1 receives 800 B from "
            "rank 0, which sends it 400 B\n"
            "  hint: split sizes of an all-to-all agree on all ranks");
}

TEST(KinetoGroups, RanksMaySendNothingOrDifferentEvenAmounts) {
  EXPECT_EQ(AllToAlls().add("[0, 0]", 0, "[0, 2]", 200).add("[2, 2]", 400, "[0, 2]", 200).read(),
            "0 0; 800 800");
  EXPECT_EQ(AllToAlls().add("[]", 0, "[0, 2]", 200).add("[2, 0]", 200, "[]", 0).read(),
            "0 0; 800 0");
  EXPECT_EQ(AllToAlls().add("[]", 0, "[]", 0).add("[]", 0, "[]", 0).read(), "no call");
  EXPECT_EQ(AllToAlls().add("[1, 1]", 200, "[1, 3]", 400).add("[]", 600, "[1, 3]", 400).read(),
            "400 400; 1200 1200");
  EXPECT_EQ(AllToAlls().add("[2, 2]", 400, "[]", 400).add("[]", 400, "[2, 2]", 400).read(),
            "even, 1600 B");
}

TEST(KinetoGroups, ListsThatAreCutAreWhatTheOthersSayOrElseEven) {
  EXPECT_EQ(
      AllToAlls().add("[3, ...]", 400, "[3, 2]", 500).add("[2, ...]", 400, "[1, 2]", 300).read(),
      "1200 400; 800 800");
  EXPECT_EQ(AllToAlls()
                .add("[3, ...]", 400, "[3, ...]", 500)
                .add("[2, ...]", 600, "[1, ...]", 300)
                .read(),
            "800 800; 1200 1200");
}

TEST(KinetoGroups, ProcessGroupsAreReadHoweverTheyAreWritten) {
  for (const std::string_view list :
       {R"([{"pg_name": "7", "pg_size": 2, "ranks": [0, 2]}])",
        R"([ { "pg_desc": "a \"name\" }]", "ranks": [0, 2], "pg_name": "7" } ])",
        R"("[{\"pg_name\": \"7\", \"ranks\": [0, 2]}]")"}) {
    const Folder folder;
    const std::string path = folder.write(
        "k.json",
        KinetoText(fmt::format(R"("distributedInfo": {{"rank": 0, "world_size": 4, "pg_config": )"
                               "\n{}\n}}, ",
                               list))
            .launch(1, 0, "ncclDevKernel_AllReduce(args)", 20, 25, 30,
                    R"("Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, )"
                    R"("dtype": "Float", "Process Group Name": "7")")
            .str());
    EXPECT_EQ(read_workload({.path = path, .replicate = 4}).families.at(0).groups,
              (std::vector<std::vector<int>>{{0, 2}, {1, 3}}))
        << list;
  }
  const Folder folder;
  EXPECT_TRUE(test::has_notice(
      read_workload({.path = folder.write(
                         "k.json", KinetoText(R"("distributedInfo": {"pg_config": [{"a": 1}]}, )")
                                       .launch(1, 0, "kernel", 7, 5, 5)
                                       .str())}),
      "pg_config of distributedInfo is no list of process groups"));
}

TEST(KinetoGroups, GivenPartsAreThoseOfAllRanks) {
  const Folder folder;
  const std::string path = folder.write(
      "k.json", KinetoText()
                    .launch(1, 0, "ncclDevKernel_AllGather(args)", 20, 25, 30,
                            R"("Collective name": "_allgather_base", "In msg nelems": 8, )"
                            R"("Out msg nelems": 16, "dtype": "Float")")
                    .str());
  const auto with = [&](const std::string& groups) {
    return TraceRequest{.path = path,
                        .groups = folder.write("groups.json", "{\"stream 20\": " + groups + "}"),
                        .replicate = 4};
  };
  EXPECT_EQ(read_workload(with("[[0, 3], [1, 2]]")).families.at(0).groups,
            (std::vector<std::vector<int>>{{0, 3}, {1, 2}}));
  const std::string node = "k.json: error: node 1 'ncclDevKernel_AllGather(args)' ";
  EXPECT_EQ(failure_of(folder, with("[[0, 1], [2]]")),
            node +
                "is in process group 'stream 20' of ranks 0, 1, and others of its lists have "
                "more or fewer\n  hint: give the traces of all ranks");
  EXPECT_EQ(failure_of(folder, with("[[0, 1], [2, 9]]")),
            node +
                "is in process group 'stream 20' of ranks 0, 1, and its lists are not of the "
                "ranks 0 to 3\n  hint: give the traces of all ranks");
  // Of a job of unknown size all ranks may have been two, and are as many as there are now.
  EXPECT_EQ(read_workload(with("\"all\"")).families.at(0).groups.front().size(), 4U);
}

}  // namespace
}  // namespace hemiola::workload
