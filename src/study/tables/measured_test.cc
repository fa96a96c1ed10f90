#include "study/tables/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hemiola::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string table_failure(const std::string& text, const ColumnNames& names = {}) {
  try {
    read_measured(text, "t.csv", names);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

std::string select_failure_of(const MeasuredTable& table, const std::vector<Filter>& filters) {
  try {
    select(table, filters);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

const std::string kTable =
    "# one\r\n"
    "kernel,time_us,num_gpus,size_bytes\r\n"
    "\"a, \"\"b\"\"\",4.5,2,1024\r\n"
    "\r\n"
    "# two\r\n"
    "c, 6e1 ,4, 2048\r\n";

TEST(Csv, columns_stand_in_any_order_with_quotes_comments_and_carriage_returns) {
  const MeasuredTable table = read_measured(kTable, "t.csv");
  EXPECT_THAT(table.notes, ElementsAre("one", "two"));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].line, 3);
  EXPECT_EQ(table.rows[0].size, KiB(1));
  EXPECT_EQ(table.rows[0].time_us, 4.5);
  EXPECT_EQ(table.rows[0].ranks, 2);
  EXPECT_EQ(table.cell(table.rows[0], "kernel"), "a, \"b\"");
  EXPECT_EQ(table.rows[1].line, 6);
  EXPECT_EQ(table.rows[1].time_us, 60);
  EXPECT_EQ(table.cell(table.rows[1], "none"), "");
}

TEST(Csv, a_line_end_inside_quotes_belongs_to_the_cell) {
  const MeasuredTable table =
      read_measured("size_bytes,time_us,note\n8,1,\"two\nlines\"\n16,2,x", "t.csv");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.cell(table.rows[0], "note"), "two\nlines");
  EXPECT_EQ(table.rows[1].line, 4);
}

TEST(Csv, columns_of_other_names_take_their_role) {
  const std::string text = "gpus,size_bytes,wall_us\n8,16,7\n";
  EXPECT_THAT(table_failure(text), AllOf(HasSubstr("t.csv:1"), HasSubstr("no column 'time_us'"),
                                         HasSubstr("wall_us"), HasSubstr("--column")));
  const MeasuredTable table = read_measured(text, "t.csv", {{"time_us", "wall_us"}});
  EXPECT_EQ(table.rows[0].time_us, 7);
  EXPECT_EQ(table.rows[0].ranks, 8);
  EXPECT_EQ(table.cell(table.rows[0], "num_gpus"), "8");
  EXPECT_TRUE(table.same_column("gpus", "num_gpus"));
  EXPECT_FALSE(table.same_column("gpus", "size_bytes"));
  EXPECT_FALSE(table.same_column("none", "other")) << "which are no columns";
  EXPECT_THAT(table_failure(text, {{"time_us", "none"}}), HasSubstr("no column 'none'"));
  EXPECT_THAT(table_failure(text, {{"tiem", "gpus"}}), HasSubstr("'tiem'"));
}

TEST(Csv, what_is_wrong_has_its_line_and_column) {
  const std::string head = "size_bytes,time_us,num_gpus\n8,1,2\n";
  EXPECT_THAT(table_failure("time_us\n1\n"), HasSubstr("no column 'size_bytes'"));
  EXPECT_THAT(table_failure(head + "1KiB,1,2\n"),
              AllOf(HasSubstr("t.csv:3"), HasSubstr("size_bytes"), HasSubstr("'1KiB'"),
                    HasSubstr("bytes")));
  EXPECT_THAT(table_failure(head + "0,1,2\n"), HasSubstr("not greater than zero"));
  EXPECT_THAT(table_failure(head + "8.5,1,2\n"), HasSubstr("integer"));
  EXPECT_THAT(table_failure(head + "8,fast,2\n"),
              AllOf(HasSubstr("t.csv:3"), HasSubstr("'time_us'"), HasSubstr("'fast'")));
  EXPECT_THAT(table_failure(head + "8,1us,2\n"), HasSubstr("'1us'"));
  EXPECT_THAT(table_failure(head + "8,,2\n"), HasSubstr("'time_us'"));
  EXPECT_THAT(table_failure(head + "8,nan,2\n"), HasSubstr("'nan'"));
  EXPECT_THAT(table_failure(head + "8,0.0,2\n"), HasSubstr("not greater than zero"));
  EXPECT_THAT(table_failure(head + "8,-3,2\n"), HasSubstr("not greater than zero"));
  EXPECT_THAT(table_failure(head + "8,1,two\n"), HasSubstr("'num_gpus'"));
  EXPECT_THAT(table_failure(head + "8,1,0\n"), HasSubstr("'num_gpus'"));
  EXPECT_THAT(table_failure(head + "8,1\n"), AllOf(HasSubstr("t.csv:3"), HasSubstr("2 cells")));
  EXPECT_THAT(table_failure(head + "8,1,\"2\n"), HasSubstr("never ends"));
  EXPECT_THAT(table_failure("size_bytes,time_us\n"), HasSubstr("no rows"));
  EXPECT_THAT(table_failure("# only this\n"), HasSubstr("no heading"));
  EXPECT_THAT(table_failure("size_bytes,time_us,time_us\n8,1,1\n"), HasSubstr("two columns"));
  EXPECT_THAT(table_failure("size_bytes,,time_us\n8,1,1\n"), HasSubstr("column 2 has no name"));
}

TEST(Select, keeps_rows_that_have_one_of_the_values_in_every_column) {
  const MeasuredTable table =
      read_measured("size_bytes,time_us,gpus,op\n8,1,2,a\n8,2,4,a\n8,3,8,b\n8,4,4,b\n", "t.csv");
  const auto times = [&](const std::vector<Filter>& filters) {
    std::vector<double> all;
    for (const MeasuredRow& row : select(table, filters).rows) all.push_back(row.time_us);
    return all;
  };
  EXPECT_THAT(times({}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(times({{"num_gpus", {"4"}}}), ElementsAre(2, 4));
  EXPECT_THAT(times({{"gpus", {"4", "8"}}, {"op", {"b"}}}), ElementsAre(3, 4));
  EXPECT_EQ(to_text(std::vector<Filter>{{"gpus", {"4", "8"}}, {"op", {"b"}}}), "gpus=4,8 op=b");
  EXPECT_THAT(select_failure_of(table, {{"opp", {"a"}}}),
              AllOf(HasSubstr("'opp'"), HasSubstr("did you mean 'op'")));
  EXPECT_THAT(select_failure_of(table, {{"op", {"a", "c"}}}),
              AllOf(HasSubstr("'c'"), HasSubstr("there are a, b")));
  EXPECT_THAT(select_failure_of(table, {{"op", {"a"}}, {"gpus", {"8"}}}), HasSubstr("no row has"));
}

TEST(SelectSizes, keeps_rows_of_the_sizes_and_says_which_there_are_not) {
  const MeasuredTable table =
      read_measured("size_bytes,time_us\n1024,1\n4096,2\n1024,3\n8192,4\n", "t.csv");
  std::vector<Bytes> absent;
  const MeasuredTable chosen = select_sizes(table, {KiB(1), KiB(2), KiB(8)}, absent);
  std::vector<double> times;
  for (const MeasuredRow& row : chosen.rows) times.push_back(row.time_us);
  EXPECT_THAT(times, ElementsAre(1, 3, 4));
  EXPECT_THAT(absent, ElementsAre(KiB(2)));
  try {
    select_sizes(table, {KiB(2)}, absent);
    FAIL() << "a table without rows";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("t.csv"), HasSubstr("1 KiB, 4 KiB, 8 KiB")));
  }
}

/// As nccl-tests prints it, with lines of the launcher and the library around it.
const std::string kLog =
    "mpirun -np 2 ./build/all_reduce_perf -b 8 -e 16 -f 2 -g 1\n"
    "host:1:1 [0] NCCL INFO Bootstrap\n"
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 5 iters: 20\n"
    "#\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  10 on host device  0 [0x07] NVIDIA A100\n"
    "#  Rank  1 Group  0 Pid  11 on host device  1 [0x0f] NVIDIA A100\n"
    "#\n"
    "#                                                       out-of-place                 "
    "in-place\n"
    "#  size    count   type  redop  root   time   algbw  busbw #wrong   time  algbw  busbw "
    "#wrong\n"
    "#   (B) (elements)                     (us)  (GB/s) (GB/s)          (us) (GB/s) (GB/s)\n"
    "      8        2  float    sum    -1  20.26    0.00   0.00      0  17.74   0.00   0.00      "
    "0\n"
    "     16        4  float    sum    -1  17.90    0.00   0.00      0    N/A    N/A    N/A    "
    "N/A\n"
    "# Out of bounds values : 0 OK\n"
    "# Avg bus bandwidth    : 0.001\n";

TEST(CollectiveLog, gives_sizes_types_times_the_collective_and_the_ranks) {
  const MeasuredTable table = read_measured(kLog, "log");
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].line, 12);
  EXPECT_EQ(table.rows[0].size, Bytes{8});
  EXPECT_EQ(table.rows[0].time_us, 20.26);
  EXPECT_EQ(table.rows[1].time_us, 17.9);
  EXPECT_EQ(table.rows[0].ranks, 2);
  EXPECT_EQ(table.cell(table.rows[0], "op"), "all_reduce");
  EXPECT_EQ(table.cell(table.rows[0], "dtype"), "float");
  EXPECT_EQ(table.cell(table.rows[0], "busbw_GBps_inplace"), "0.00");
}

TEST(CollectiveLog, in_place_times_are_another_column) {
  const std::string one_row = kLog.substr(0, kLog.find("     16 "));
  const MeasuredTable table = read_measured(one_row, "log", {{"time_us", "time_us_inplace"}});
  EXPECT_EQ(table.rows[0].time_us, 17.74);
  EXPECT_THAT(table_failure(kLog, {{"time_us", "time_us_inplace"}}),
              AllOf(HasSubstr("t.csv:13"), HasSubstr("'time_us_inplace'"), HasSubstr("'N/A'")));
}

TEST(CollectiveLog, columns_follow_the_heading_and_ranks_the_process) {
  // An old all-gather: no reduction, no root, `error` for `#wrong`; one process, eight GPUs.
  const MeasuredTable table = read_measured(
      "# nThread 2 nGpus 4 minBytes 32 maxBytes 32\n"
      "#   size  count  type  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "      32      1 float 35.03   0.00   0.00  0e+00 34.15   0.00   0.00  0e+00\n",
      "log");
  EXPECT_EQ(table.rows[0].ranks, 8);
  EXPECT_EQ(table.rows[0].time_us, 35.03);
  EXPECT_EQ(table.cell(table.rows[0], "time_us_inplace"), "34.15");
  EXPECT_EQ(table.cell(table.rows[0], "op"), "");
}

TEST(CollectiveLog, a_row_that_was_cut_off_and_a_second_table_are_errors) {
  std::string cut = kLog.substr(0, kLog.find(" 17.90"));
  EXPECT_THAT(table_failure(cut + "\n"), AllOf(HasSubstr("t.csv:13"), HasSubstr("cut off")));
  EXPECT_THAT(table_failure(kLog + "# size count type time algbw busbw\n 8 1 float 1 1 1\n"),
              HasSubstr("another collective"));
  EXPECT_THAT(table_failure("# size count type time algbw busbw\n"), HasSubstr("no rows"));
}

}  // namespace
}  // namespace hemiola::study
