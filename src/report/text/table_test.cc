#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include "report/report.h"
#include "report/testing/results.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

program::Bound float_all_reduce() {
  program::Program program;
  program.collective = Collective::all_reduce;
  program.protocol = program::Protocol::ll;
  program.ranks = 2;
  return {{.program = std::make_shared<const program::Program>(program)}, nullptr, {}};
}

TEST(Table, has_the_columns_of_nccl_tests_then_bound_and_check) {
  const report::Run run{"hemiola run plan.json", "dgx-h100", "plan.json", "reference", "stream",
                        float_all_reduce()};
  sim::Result large = two_rank_result();
  large.size = MiB(16);
  large.count = 4194304;
  large.time = Time::from_us(1234);
  large.bound = {Time::from_us(617), "a to b", {1}};
  large.algbw_GBps = 1234.56;
  large.busbw_GBps = 12345.6;
  large.checked = "partial";
  std::ostringstream out;
  print_table(out, run, {two_rank_result(), large});
  EXPECT_EQ(
      out.str(),
      "# machine  dgx-h100\n"
      "# program  plan.json, all-reduce on 2 ranks, protocol LL\n"
      "# engine   reference\n"
      "# launch   stream\n"
      "#\n"
      "#     size       count   type  redop      time   algbw   busbw    bound  %bound  checked\n"
      "#      (B)  (elements)                    (us)  (GB/s)  (GB/s)     (us)\n"
      "      1024         256  float    sum    12.346    0.08    0.12    6.173    50.0  full\n"
      "  16777216     4194304  float    sum  1234.000  1234.6   12346  617.000    50.0  partial\n");
}

TEST(Table, shows_two_digits_of_a_run_of_picoseconds) {
  EXPECT_EQ(table_us({12'800}), "0.000013");
  EXPECT_EQ(table_us(Time::from_ns(1)), "0.0010");
  EXPECT_EQ(table_us(Time::from_ns(10)), "0.010");
  EXPECT_EQ(table_us({0}), "0.000");
}

TEST(Table, without_a_program_marks_type_and_operation_as_unknown) {
  std::ostringstream out;
  print_table(out, report::Run{"", "m", "p", "reference", "", std::nullopt}, {two_rank_result()});
  EXPECT_THAT(out.str(), testing::HasSubstr("256     -      -  12.346"));
  EXPECT_THAT(out.str(), testing::Not(testing::HasSubstr("launch")));
}

TEST(Attribution, lists_the_reasons_of_the_latest_rank_by_share) {
  std::ostringstream out;
  print_attribution(out, two_rank_result());
  EXPECT_EQ(out.str(),
            "# where the 12345.678901 ns at 1024 B go (rank 1, the latest of 2):\n"
            "#   link    8000.000000  ns  64.8  %\n"
            "#   launch  4000.000000  ns  32.4  %\n"
            "#   poll     345.678901  ns   2.8  %\n");
}

TEST(Attribution, is_followed_by_reads_and_wake_ups_where_waits_are_monitored) {
  sim::Result result = two_rank_result();
  result.counters = {{"reads.flag.cu", 12}, {"reads.poll.cu", 7},     {"reads.data.cu", 99},
                     {"waits.wakes", 5},    {"waits.false_wakes", 2}, {"waits.switched_out", 1}};
  std::ostringstream out;
  print_attribution(out, result);
  EXPECT_THAT(out.str(),
              testing::EndsWith("# waits of all ranks: 12 flag reads (7 polls), 99 data reads; 5 "
                                "wake-ups (2 false), 1 workgroups switched out\n"));
}

TEST(Attribution, of_a_result_without_ranks_prints_nothing) {
  std::ostringstream out;
  print_attribution(out, sim::Result{});
  EXPECT_EQ(out.str(), "");
}

TEST(LatestRank, is_the_one_that_ends_last_and_the_lowest_of_equals) {
  sim::Result result = two_rank_result();
  EXPECT_EQ(latest_rank(result), 1u);
  result.rank_end[0] = result.rank_end[1];
  EXPECT_EQ(latest_rank(result), 0u);
}

TEST(LatestRank, is_the_one_that_waits_least_at_the_end_where_ends_are_not_given) {
  sim::Result result = two_rank_result();
  result.rank_end.clear();
  EXPECT_EQ(latest_rank(result), 1u);
}

TEST(Proof, that_holds_is_one_line) {
  verify::Proof proof;
  proof.summary = "proven";
  proof.proven = {"no races", "no deadlock"};
  std::ostringstream out;
  print_proof(out, proof);
  EXPECT_EQ(out.str(), "# check: proven: no races; no deadlock\n");
}

TEST(Proof, names_the_verdict_once) {
  verify::Proof proof;
  proof.summary = "proven: 12 operations, no races";
  std::ostringstream out;
  print_proof(out, proof);
  EXPECT_EQ(out.str(), "# check: proven: 12 operations, no races\n");
}

TEST(Proof, that_is_partial_gives_its_reasons) {
  verify::Proof proof;
  proof.verdict = verify::Verdict::partial;
  proof.summary = "nothing wrong found";
  proof.reasons = {"two consumers of one semaphore"};
  proof.warnings.warning("relaxed closing barrier", {"plan.json", 3, 1, ""});
  std::ostringstream out;
  print_proof(out, proof);
  EXPECT_EQ(out.str(),
            "# check: partial: nothing wrong found\n"
            "#   not proven: two consumers of one semaphore\n"
            "plan.json:3:1: warning: relaxed closing barrier\n");
}

TEST(Proof, that_fails_numbers_the_steps_of_its_counterexample) {
  verify::Proof proof;
  proof.verdict = verify::Verdict::wrong;
  proof.summary = "a race";
  proof.counterexample = {
      {0, 1, "op 3 (put)", "/gpus/0/threadblocks/1/ops/3", "writes output[0, 16)"},
      {2, 0, "", "", "reads output[0, 16) of rank 0"}};
  std::ostringstream out;
  print_proof(out, proof);
  EXPECT_EQ(out.str(),
            "# check: wrong: a race\n"
            "#   1. rank 0, workgroup 1, op 3 (put), at /gpus/0/threadblocks/1/ops/3: writes "
            "output[0, 16)\n"
            "#   2. rank 2, workgroup 0: reads output[0, 16) of rank 0\n");
}

}  // namespace
}  // namespace hemiola::report
