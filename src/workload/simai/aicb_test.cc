#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "workload/scheduler/fold.h"
#include "workload/testing/traces.h"

namespace hemiola::workload {
namespace {

using test::Folder;
using test::has_notice;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kTableHead =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
    "busbw,count\n";
std::string table_row(const std::string& type, const std::string& group, const std::string& size,
                      const std::string& bytes, const std::string& additional = "",
                      const std::string& time = "None") {
  return "CommType." + type + "," + (group == "None" ? group : "CommGroup." + group) + "," + size +
         "," + bytes + ",step,None,None," + additional + "," + time + ",None,None,1\n";
}

Workload read_table(const std::string& text, std::optional<int> ranks = {}) {
  const Folder folder;
  return read_workload({.path = folder.write("calls.csv", text), .replicate = ranks});
}
std::string table_refusal(const std::string& text, std::optional<int> ranks = {}) {
  const Folder folder;
  return test::failure_of(folder, {.path = folder.write("t.csv", text), .replicate = ranks});
}
const std::vector<int>& table_group(const Workload& workload, std::size_t call,
                                    std::size_t group = 0) {
  return workload.families.at(static_cast<std::size_t>(workload.collectives.at(call).family))
      .groups.at(group);
}

TEST(Aicb, calls_of_all_ranks_run_one_after_the_other) {
  const Workload workload = read_table("[rank0 ~ rank7]\n" + std::string(kTableHead) +
                                       table_row("broadcast", "dp_group", "4", "64") +
                                       table_row("all_reduce", "tp_group", "2", "128") +
                                       table_row("barrier", "all", "8", "0") +
                                       table_row("epoch_end", "None", "None", "0"));
  EXPECT_EQ(workload.ranks, 8);
  ASSERT_EQ(workload.collectives.size(), 3u);
  EXPECT_EQ(workload.collectives[0].kind, Collective::broadcast);
  EXPECT_EQ(workload.collectives[0].bytes, 64);
  EXPECT_THAT(table_group(workload, 0), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(table_group(workload, 1, 1), ElementsAre(2, 3));
  EXPECT_EQ(workload.collectives[2].bytes, 4);
  const Trace& trace = *workload.classes.at(0).trace;
  ASSERT_EQ(trace.nodes.size(), 3u);
  EXPECT_THAT(test::waits_of(trace, 2), ElementsAre(0u, 1u));
}

TEST(Aicb, expert_groups_lie_inside_data_parallel_ones) {
  const Workload workload = read_table("[rank0 ~ rank15]\n" + std::string(kTableHead) +
                                       table_row("all_reduce", "tp_group", "2", "8") +
                                       table_row("all_to_all", "ep_group", "4", "16") +
                                       table_row("all_reduce", "ep_dp_group", "2", "32") +
                                       table_row("all_gather", "ep_tp_group", "8", "64"));
  EXPECT_THAT(table_group(workload, 1), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(table_group(workload, 2), ElementsAre(0, 8));
  EXPECT_THAT(table_group(workload, 3), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Aicb, stages_send_to_the_next_and_its_last_to_none) {
  const std::string rows = std::string(kTableHead) +
                           table_row("irecv", "pp_group", "1", "8", "recv_prev") +
                           table_row("isend", "pp_group", "1", "8", "send_next") +
                           table_row("irecv", "pp_group", "1", "8", "recv_next") +
                           table_row("isend", "pp_group", "1", "8", "send_prev") +
                           table_row("all_reduce", "embedding_group", "2", "8");
  const Workload workload = read_table("[ pp_stage0: [rank0, rank1] ]\n" + rows +
                                       "[ pp_stage1: [rank2, rank3] ]\n" + rows);
  ASSERT_EQ(workload.classes.size(), 2u);
  const auto kinds = [&](std::size_t stage) {
    std::vector<NodeKind> found;
    for (const Node& node : workload.classes[stage].trace->nodes) found.push_back(node.kind);
    return found;
  };
  EXPECT_THAT(kinds(0), ElementsAre(NodeKind::send, NodeKind::receive, NodeKind::collective));
  EXPECT_THAT(kinds(1), ElementsAre(NodeKind::receive, NodeKind::send, NodeKind::collective));
  EXPECT_THAT(table_group(workload, 0), ElementsAre(0, 2));
  EXPECT_TRUE(has_notice(workload, "stages that are not there"));
}

TEST(Aicb, stages_in_the_middle_differ) {
  std::string text;
  for (int stage = 0; stage < 4; ++stage)
    text += "[ pp_stage" + std::to_string(stage) + ": [rank" + std::to_string(stage) + "] ]\n" +
            kTableHead + table_row("irecv", "pp_group", "1", "8", "recv_prev") +
            table_row("isend", "pp_group", "1", "8", "send_next");
  EXPECT_EQ(fold(read_table(text)).classes.size(), 4u)
      << "a class that receives from itself never begins";
}

TEST(Aicb, a_send_does_not_wait_for_the_receive_beside_it) {
  const Workload workload = read_table("[rank0 ~ rank3]\n" + std::string(kTableHead) +
                                       table_row("all_reduce", "pp_group", "2", "8") +
                                       table_row("irecv", "pp_group", "1", "8", "recv_next") +
                                       table_row("isend", "pp_group", "1", "8", "send_next") +
                                       table_row("all_reduce", "dp_group", "2", "8"));
  const Trace& trace = *workload.classes.at(0).trace;
  EXPECT_THAT(test::waits_of(trace, 2), ElementsAre(0u));
  EXPECT_THAT(test::waits_of(trace, 3), ElementsAre(0u, 1u));
}

TEST(Aicb, an_embedding_group_is_called_by_both_its_ends) {
  const std::string one = kTableHead + table_row("all_reduce", "dp_group", "2", "8"),
                    two = one + table_row("all_reduce", "embedding_group", "2", "8");
  const std::string text =
      "[ pp_stage0: [rank0, rank1] ]\n" + one + "[ pp_stage1: [rank2, rank3] ]\n" + two;
  EXPECT_THAT(table_refusal(text), HasSubstr("t.csv:7: error: the last stage makes 1 calls"));
  const Folder folder;
  EXPECT_TRUE(has_notice(read_workload({.path = folder.write("t.csv", text), .lenient = true}),
                         "ignored: calls in the embedding group"));
}

TEST(Aicb, a_table_without_ranks_says_what_it_is_taken_for) {
  const std::string rows = std::string(kTableHead) + table_row("all_reduce", "dp_group", "4", "8") +
                           table_row("all_reduce", "tp_group", "2", "8");
  EXPECT_EQ(read_table(rows).ranks, 8);
  EXPECT_TRUE(has_notice(read_table(rows), "8 ranks: groups of 2 tp x 4 dp x 1 pp"));
  const std::string old = "comm_type,comm_group,msg_size\nall_reduce,dp_group,8\n";
  EXPECT_EQ(read_table(old, 16).ranks, 16);
  EXPECT_THAT(table_refusal(old), HasSubstr("nothing says how many ranks there are"));
}

TEST(Aicb, computations_are_products_or_take_their_time) {
  const Workload workload =
      read_table("[rank0 ~ rank1]\n" + std::string(kTableHead) +
                 table_row("computation", "all", "None", "((64 32) (32 16))") +
                 table_row("computation", "all", "None", "0", "", "1500") +
                 table_row("all_reduce", "dp_group", "2", "8"));
  ASSERT_EQ(workload.computes.size(), 1u);
  EXPECT_EQ(workload.computes[0].product.m, 64);
  EXPECT_EQ(workload.computes[0].product.n, 16);
  EXPECT_EQ(workload.computes[0].product.k, 32);
  EXPECT_EQ(workload.classes[0].trace->nodes.at(1).recorded, Time::from_ns(1500));
}

TEST(Aicb, what_is_wrong_is_said_with_its_line) {
  const std::string head = "[rank0 ~ rank7]\n" + std::string(kTableHead);
  const std::string good = table_row("all_reduce", "dp_group", "8", "8");
  const std::array cases{
      std::pair{std::string("[rank0 ~ rank7\n") + kTableHead + good, "t.csv:1: error: is no list"},
      std::pair{std::string("[rank7 ~ rank0]\n") + kTableHead + good, "t.csv:1: error: is no list"},
      std::pair{std::string("[rank0 ~ rank99999999999]\n") + kTableHead + good, "t.csv:1: error:"},
      std::pair{std::string("[rank1 ~ rank8]\n") + kTableHead + good,
                "t.csv:1: error: rank 1 is listed"},
      std::pair{head, "t.csv:2: error: a table has no row"},
      std::pair{std::string("[rank0 ~ rank7]\n") + good, "t.csv:2: error: a row stands before"},
      std::pair{std::string("comm_type,colour\n"), "t.csv:1: error: 'colour' is no column"},
      std::pair{std::string("comm_type,comm_group\n"),
                "t.csv:1: error: there is no column 'msg_size'"},
      std::pair{head + "CommType.all_reduce,CommGroup.dp_group\n", "t.csv:3: error: a row has 12"},
      std::pair{head + table_row("all_sum", "dp_group", "8", "8"),
                "t.csv:3: error: 'all_sum' is no kind"},
      std::pair{head + table_row("all_reduce", "xp_group", "8", "8"),
                "t.csv:3: error: 'xp_group' is no group"},
      std::pair{head + table_row("all_reduce", "dp_group", "3", "8"),
                "t.csv:3: error: 8 ranks cannot"},
      std::pair{head + good + table_row("all_reduce", "dp_group", "4", "8"),
                "t.csv:4: error: the groups"},
      std::pair{head + table_row("all_reduce", "dp_group", "8", "-8"),
                "t.csv:3: error: '-8' is not"},
      std::pair{head + table_row("all_reduce", "dp_group", "8", "99999999999999999999"),
                "t.csv:3: error:"},
      std::pair{head + table_row("isend", "pp_group", "1", "8", "send_on"),
                "t.csv:3: error: 'send_on'"},
      std::pair{head + table_row("isend", "pp_group", "1", "8", "send_next"),
                "t.csv:3: error: a message"},
      std::pair{head + table_row("computation", "all", "None", "((2 3) (4 5))"),
                "t.csv:3: error: a comp"},
      std::pair{head + table_row("computation", "all", "None", "0", "", "1e400"),
                "t.csv:3: error: '1e400'"}};
  for (const auto& [text, message] : cases)
    EXPECT_THAT(table_refusal(text), HasSubstr(message)) << text;
  EXPECT_THAT(table_refusal(head + good, 4),
              HasSubstr("--replicate: error: the table is of 8 ranks"));
}

TEST(Aicb, files_of_simai) {
  HEMIOLA_SHARED_INPUT(path, "simai/L7B-D1-C02_Llama7B_zero3_mbs1.csv");
  const Workload workload = read_workload({.path = path});
  EXPECT_EQ(workload.ranks, 128);
  EXPECT_EQ(workload.classes.at(0).trace->nodes.size(), 1241u);
  HEMIOLA_SHARED_INPUT(micro, "simai/all_reduce_workload.csv");
  EXPECT_EQ(read_workload({.path = micro, .replicate = 8}).classes.at(0).trace->nodes.size(),
            2300u);
}

}  // namespace
}  // namespace hemiola::workload
