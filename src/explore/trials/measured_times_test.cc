#include "explore/trials/measured_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "study/laboratory/job_run.h"

namespace hemiola::explore {
namespace {

using ::testing::HasSubstr;

MeasuredTimes times_of(const std::string& rows) {
  return read_measured_times("what,m,n,k,size_bytes,schedule,time_us\n" + rows, "own.csv",
                             DataType::bfloat16);
}

TEST(MeasuredTimes, are_products_collectives_and_schedules) {
  const MeasuredTimes times = times_of(
      "product,512,1024,256,,,12.5\nall-gather,,,,1048576,,30\nschedule,,,,,\"1D, 4 steps\",40\n");
  ASSERT_EQ(times.products.size(), 1U);
  EXPECT_EQ(times.products.front().shape.n, 1024);
  ASSERT_EQ(times.collectives.size(), 1U);
  EXPECT_EQ(times.collectives.front().collective, Collective::all_gather);
  EXPECT_EQ(times.collectives.front().size.count, 1 << 20);
  EXPECT_EQ(times.schedules_us.at("1D, 4 steps"), 40);
  EXPECT_EQ(times.software_us, 0);
  EXPECT_EQ(times_of("software,,,,,,83.5\n").software_us, 83.5);
}

TEST(MeasuredTimes, that_say_nothing_are_refused_with_their_line) {
  const auto refusal = [](const std::string& rows) {
    return test::message_of([&] { times_of(rows); });
  };
  EXPECT_THAT(refusal(""), HasSubstr("no row"));
  EXPECT_THAT(refusal("gemm,1,1,1,,,5\n"), HasSubstr("'gemm' is not something"));
  EXPECT_THAT(refusal("product,1,,1,,,5\n"), HasSubstr("n ''"));
  EXPECT_THAT(refusal("product,1,1.5,1,,,5\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(refusal("product,1,1,1,,,-5\n"), HasSubstr("time_us '-5'"));
  EXPECT_THAT(refusal("product,1,1,1,,,nan\n"), HasSubstr("time_us"));
  EXPECT_THAT(refusal("schedule,,,,,,5\n"), HasSubstr("no text"));
  EXPECT_THAT(refusal("software,,,,,,5\nsoftware,,,,,,6\n"), HasSubstr("measured twice"));
  EXPECT_THAT(
      test::message_of([] { read_measured_times("what,time\nproduct,1\n", "own.csv", {}); }),
      HasSubstr("'time' is not a column"));
}

/// What one launch takes on the machine that was fitted.
double simulated_us(study::Laboratory& laboratory, const study::MachineChoice& choice,
                    const std::string& launch) {
  study::JobRequest job{.machine = choice,
                        .file = "test",
                        .text = "dtype: bf16\nlaunches:\n  - " + launch + "\n",
                        .check = false,
                        .alone = false};
  job.options.engine = sim::Engine::fluid;
  return study::run_job(laboratory, job).result.time.us();
}

TEST(MeasuredTimes, are_met_by_the_machine_that_is_fitted_to_them) {
  study::Laboratory laboratory;
  study::MachineChoice choice{.name = "dgx-h100", .ranks = "4"};
  const MeasuredTimes times =
      times_of("product,4096,2048,4096,,,150\nall-gather,,,,33554432,,140\n");
  const FittedMachine fitted = fit_machine(laboratory, choice, times, {});
  EXPECT_EQ(fitted.remarks.size(), 2U);
  choice.settings = fitted.settings;
  EXPECT_NEAR(simulated_us(laboratory, choice, "{product: {m: 4096, n: 2048, k: 4096}}"), 150, 1.5);
  EXPECT_NEAR(simulated_us(laboratory, choice,
                           "{run: auto/nccl, param: {collective: all-gather}, size: 32MiB}"),
              140, 3);
}

}  // namespace
}  // namespace hemiola::explore
