#include "study/tables/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hemiola::study {
namespace {

TrivialRow row(std::int64_t bytes, double time_us) {
  return {.size = Bytes{bytes}, .time_us = time_us};
}

TEST(Regimes, begin_at_decimal_megabytes) {
  EXPECT_EQ(regime_of(Bytes{999'999}), Regime::below_1MB);
  EXPECT_EQ(regime_of(Bytes{1'000'000}), Regime::from_1MB);
  EXPECT_EQ(regime_of(Bytes{63'999'999}), Regime::from_1MB);
  EXPECT_EQ(regime_of(MiB(64)), Regime::from_64MB);
  EXPECT_EQ(regime_of(Bytes{127'999'999}), Regime::from_64MB);
  EXPECT_EQ(regime_of(MiB(128)), Regime::from_128MB);
  EXPECT_EQ(name_of(Regime::below_1MB), "<1MB");
  EXPECT_EQ(name_of(Regime::from_128MB), ">=128MB");
}

TEST(Summary, of_known_errors) {
  const std::vector<Errors> errors{{1.0, 0.1}, {-0.5, -0.2}, {0.0, 0.6}};
  const Summary summary = summarise(errors);
  EXPECT_EQ(summary.n, 3);
  EXPECT_DOUBLE_EQ(summary.median, 0.5);
  EXPECT_DOUBLE_EQ(summary.worst, 1.0);
  // Twice as long and half as long are equally far: the mean of log 2, log 2 and 0.
  EXPECT_NEAR(summary.geomean, std::exp(2 * std::log(2.0) / 3) - 1, 1e-12);
  EXPECT_DOUBLE_EQ(summary.trivial_median, 0.2);
}

TEST(Summary, bias_has_the_sign_that_absolute_errors_lose) {
  // Half as long and twice as long cancel out; a third row twice as long is left.
  const std::vector<Errors> errors{{1.0, 0}, {-0.5, 0}, {1.0, 0}};
  EXPECT_NEAR(summarise(errors).bias, std::exp(std::log(2.0) / 3) - 1, 1e-12);
  const std::vector<Errors> fast{{-0.1, 0}, {-0.3, 0}};
  EXPECT_LT(summarise(fast).bias, 0);
  EXPECT_NEAR(1 / (1 + summarise(fast).bias), 1 + summarise(fast).geomean, 1e-12)
      << "all rows are off in the same direction";
}

TEST(Summary, the_median_of_an_even_number_is_between_the_middle_two) {
  const std::vector<Errors> errors{{0.1, 0}, {-0.4, 0}, {0.2, 0}, {0.9, 0}};
  EXPECT_DOUBLE_EQ(summarise(errors).median, 0.3);
  EXPECT_EQ(summarise({}).n, 0);
}

TEST(Fit, finds_the_line_that_the_rows_are_on) {
  std::vector<TrivialRow> rows;
  for (std::int64_t size = 256; size <= 1 << 30; size *= 4)
    rows.push_back(row(size, 4.5 + static_cast<double>(size) / 300e3));
  const TrivialModel model = fit(rows, "here");
  EXPECT_NEAR(model.latency_us, 4.5, 1e-9);
  EXPECT_NEAR(model.us_per_byte, 1 / 300e3, 1e-15);
  EXPECT_NEAR(model.time_us(row(3 << 20, 1)), 4.5 + 3 * 1048576 / 300e3, 1e-8);
  EXPECT_EQ(model.rows, static_cast<int>(rows.size()));
  EXPECT_EQ(model.fitted_to, "here");
}

TEST(Fit, weighs_relative_errors_and_not_microseconds) {
  // 1 us off at 2 us is worth more than 100 us off at 10,000 us: the two small rows decide.
  const std::vector<TrivialRow> rows{row(1, 2), row(2, 2), row(1'000'000'000, 10'000),
                                     row(1'000'000'000, 10'200)};
  const TrivialModel model = fit(rows, "");
  EXPECT_NEAR(model.time_us(row(1, 1)), 2, 0.01);
  const double large = model.time_us(row(1'000'000'000, 1));
  EXPECT_GT(large, 10'000);
  EXPECT_LT(large, 10'200);
}

TEST(Fit, neither_part_is_negative) {
  const std::vector<TrivialRow> falling{row(1000, 10), row(1'000'000, 5)};
  EXPECT_EQ(fit(falling, "").us_per_byte, 0);
  EXPECT_GT(fit(falling, "").latency_us, 5);
  const std::vector<TrivialRow> steep{row(1000, 1), row(2000, 4)};
  EXPECT_EQ(fit(steep, "").latency_us, 0);
  EXPECT_GT(fit(steep, "").us_per_byte, 1e-3);
}

TEST(Fit, rows_of_one_size_give_a_latency) {
  const std::vector<TrivialRow> rows{row(4096, 5), row(4096, 5)};
  EXPECT_NEAR(fit(rows, "").latency_us, 5, 1e-12);
  EXPECT_EQ(fit(rows, "").us_per_byte, 0);
}

TEST(Fit, goes_by_what_a_rank_has_to_send) {
  // Two GPUs, all-reduce: as much as the size. 10 us and 100 GB/s.
  std::vector<TrivialRow> pair;
  for (const std::int64_t size : {1'000'000, 4'000'000, 16'000'000})
    pair.push_back({Bytes{size}, Collective::all_reduce, 2, 10 + static_cast<double>(size) / 1e5});
  const TrivialModel model = fit(pair, "pair");
  EXPECT_NEAR(model.latency_us, 10, 1e-9);
  const Bytes size{8'000'000};
  EXPECT_NEAR(model.time_us({size, Collective::all_reduce, 8, 1}), 10 + 80 * 2 * 7.0 / 8, 1e-9);
  EXPECT_NEAR(model.time_us({size, Collective::all_gather, 8, 1}), 10 + 80 * 7.0 / 8, 1e-9);
  EXPECT_NEAR(model.time_us({size, Collective::send_recv, 8, 1}), 10 + 80, 1e-9);
}

TEST(FitConstant, is_what_all_times_lack) {
  const std::vector<TimePair> times{{10, 7}, {20, 17}, {5, 2}};
  EXPECT_NEAR(fit_constant(times), 3, 1e-12);
  const std::vector<TimePair> too_long{{10, 12}, {20, 25}};
  EXPECT_EQ(fit_constant(too_long), 0) << "software takes no time back";
  EXPECT_EQ(fit_constant({}), 0);
}

}  // namespace
}  // namespace hemiola::study
