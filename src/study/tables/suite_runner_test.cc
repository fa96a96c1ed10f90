#include "study/tables/suite_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hemiola::study {
namespace {

/// Rows of 1, 2, 4, ... KiB on 4 ranks: measured and simulated us.
Judgement judgement(const std::string& name, const std::vector<TimePair>& times) {
  Judgement made{.name = name};
  Bytes size = KiB(1);
  for (const TimePair& time : times) {
    made.validation.rows.push_back(
        {.measured = {.size = size, .time_us = time.measured_us},
         .ranks = 4,
         .simulated = Time::from_ns(static_cast<std::int64_t>(1000 * time.simulated_us))});
    size = size * 2;
  }
  return made;
}

TEST(CompareOrders, counts_sizes_where_the_measured_order_is_clear) {
  const Suite suite{.comparisons = {{"which", {"a"}, {"b", "c"}}}};
  const Judgement a = judgement("a", {{5, 5}, {5, 5}, {10, 5}, {20, 20}, {40, 40}});
  // Slower; faster by less than 10 %; faster, but not as simulated; faster; faster.
  Judgement b = judgement("b", {{9, 9}, {4.9, 6}, {6, 6}, {10, 10}});
  Judgement c = judgement("c", {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {10, 10}});
  c.validation.rows.erase(c.validation.rows.begin(), c.validation.rows.begin() + 4);
  const std::vector<OrderResult> results = compare_orders(suite, {a, b, c});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].name, "which");
  EXPECT_EQ(results[0].sizes, 5);
  EXPECT_EQ(results[0].decided, 4);
  EXPECT_EQ(results[0].right, 3);
  EXPECT_EQ(results[0].measured_crossover, KiB(2));
  EXPECT_EQ(results[0].simulated_crossover, KiB(8));
}

TEST(CompareOrders, without_a_change_there_is_no_crossover) {
  const Suite suite{.comparisons = {{"which", {"a"}, {"b"}}, {"other", {"a"}, {"not there"}}}};
  const Judgement a = judgement("a", {{5, 5}, {5, 5}}), b = judgement("b", {{4, 6}, {4, 6}});
  const std::vector<OrderResult> results = compare_orders(suite, {a, b});
  ASSERT_EQ(results.size(), 1u) << "of entries that were judged";
  EXPECT_EQ(results[0].measured_crossover, std::nullopt);
  EXPECT_EQ(results[0].simulated_crossover, std::nullopt);
  EXPECT_EQ(results[0].right, 0);
}

TEST(SuiteRunner, gives_launches_on_a_stream_the_software_of_their_calibrate_entry) {
  const Suite suite = shipped_suite();
  Configuration common{.check = false, .in_sample = [](Bytes size) { return size == KiB(1); }};
  std::vector<std::string> done;
  Laboratory laboratory;
  SuiteRunner runner(laboratory, suite, common, {},
                     [&](const std::string& what) { done.push_back(what); });
  const std::vector<Judgement> judgements = runner.judge({"a100-nccl-all-gather-4", "a100-vllm-2"});
  ASSERT_EQ(judgements.size(), 2u);
  const Validation& stream = judgements[0].validation;
  ASSERT_TRUE(stream.software_us.has_value());
  EXPECT_GE(*stream.software_us, 0);  // none where the program is a library call of known cost
  EXPECT_THAT(done, testing::Contains(testing::HasSubstr("on 2 GPUs of dgx-a100")));
  for (const RowResult& row : stream.rows) {
    if (row.skipped.empty()) {
      EXPECT_NEAR(row.errors.with_software,
                  (row.simulated.us() + *stream.software_us) / row.measured.time_us - 1, 1e-12);
    }
  }
  EXPECT_EQ(judgements[1].validation.software_us, std::nullopt) << "a graph has no such cost";
  EXPECT_EQ(judgements[1].options.launch, sim::Launch::graph);
  EXPECT_EQ(judgements[1].summaries[0].n, 1);
}

// ASTRA-sim 3.0, table 1: 165.98 us. The link latency is fitted to the flow, nothing to the ring.
TEST(SuiteRunner, a_ring_over_a_clos_takes_what_ns3_says) {
  const Suite suite = shipped_suite();
  Laboratory laboratory;
  SuiteRunner runner(laboratory, suite, {}, {}, {});
  for (const Judgement& judgement : runner.judge({"ns3-flow", "ns3-ring-all-reduce-8"})) {
    ASSERT_EQ(judgement.validation.rows.size(), 1u) << judgement.name;
    EXPECT_NEAR(judgement.validation.rows.front().errors.simulated, 0, 0.03) << judgement.name;
    EXPECT_THAT(judgement.machine, testing::HasSubstr("gpu=ideal link.*.bandwidth=12.5GB/s"));
  }
}

}  // namespace
}  // namespace hemiola::study
