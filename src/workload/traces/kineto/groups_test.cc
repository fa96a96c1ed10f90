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
            "ranks 0, 1");
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

TEST(KinetoGroups, SplitSizesOfAllRanksAgree) {
  const auto text = [](int rank, std::string_view in, std::string_view out, int received) {
    return KinetoText(
               fmt::format(
                   R"("distributedInfo": {{"backend": "nccl", "rank": {}, "world_size": 2}}, )",
                   rank))
        .launch(1, 0, "ncclDevKernel_SendRecv(args)", 20, 25, 30,
                fmt::format(R"("Collective name": "all_to_allv", "In msg nelems": 400, )"
                            R"("Out msg nelems": {}, "Group size": 2, "dtype": "Float", )"
                            R"("In split size": "{}", "Out split size": "{}", )"
                            R"("Process Group Name": "7", "Process Group Ranks": "[0, 1]")",
                            received, in, out))
        .str();
  };
  const Folder folder;
  folder.write("t.0.json", text(0, "[3, 1]", "[3, 2]", 500));
  folder.write("t.1.json", text(1, "[]", "[1, 2]", 300));
  EXPECT_NO_THROW(read_workload({.path = folder / "t"}));
  folder.write("t.1.json", text(1, "[2, 2]", "[]", 400));
  EXPECT_EQ(failure_of(folder, {.path = folder / "t"}, ExitCode::wrong_program),
            "t.1.json: error: node 1 'ncclDevKernel_SendRecv(args)': rank 1 receives 800 B from "
            "rank 0, which sends it 400 B\n"
            "  hint: split sizes of an all-to-all agree on all ranks");
}

}  // namespace
}  // namespace hemiola::workload
