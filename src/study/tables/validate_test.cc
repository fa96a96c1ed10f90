#include "study/tables/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "core/monitor.h"

namespace hemiola::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ValidateTest : public testing::Test {
 protected:
  Validation validate(const std::string& text) {
    return validator_.validate(read_measured(text, "t.csv"), configuration_, {.latency_us = 5});
  }
  std::string failure_of(const std::string& text) {
    try {
      validate(text);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      return failure.what();
    }
    return "no failure";
  }

  machine::Machine machine_ = machine::load("ring:4");
  study::Configuration configuration_{.machine = machine::share(machine_),
                                      .program = "all-reduce/ring",
                                      .parameters = {{"channels", "1"}, {"threads", "64"}}};
  std::vector<std::string> done_;
  Laboratory laboratory_;
  Validator validator_{laboratory_, [this](const std::string& what) { done_.push_back(what); }};
};

TEST_F(ValidateTest, every_row_is_compared_with_its_own_simulation) {
  const Validation validation = validate(
      "size_bytes,time_us,num_gpus,dtype,op\n4096,10,4,half,all_reduce\n8192,12.5,2,float,\n");
  ASSERT_EQ(validation.rows.size(), 2u);
  const RowResult& row = validation.rows[0];
  const program::Bound bound =
      program::bind(program::load("all-reduce/ring", {.ranks = 4,
                                                      .parameters = configuration_.parameters,
                                                      .machine = machine::share(machine_)}),
                    machine::share(machine_), {KiB(4), DataType::float16});
  const sim::Result result = sim::simulate(bound, configuration_.options);
  EXPECT_EQ(row.simulated, result.time);
  EXPECT_EQ(row.program, "all-reduce/ring");
  EXPECT_EQ(row.simulated_size, KiB(4));
  EXPECT_NEAR(row.errors.simulated, result.time.us() / 10 - 1, 1e-12);
  EXPECT_DOUBLE_EQ(row.errors.trivial, -0.5);
  EXPECT_EQ(validation.rows[1].ranks, 2);
  EXPECT_NEAR(validation.rows[1].errors.trivial, 5 / 12.5 - 1, 1e-12);
  EXPECT_EQ(validation.checked, "full");
  EXPECT_EQ(summarise_regimes(validation.rows)[0].n, 2);
  EXPECT_EQ(summarise_regimes(validation.rows)[1].n, 0);
}

TEST_F(ValidateTest, one_configuration_is_checked_and_simulated_once) {
  const Validation validation =
      validate("size_bytes,time_us,collection\n4096,10,a\n4096,11,b\n8192,12,a\n");
  EXPECT_EQ(validation.rows[0].simulated, validation.rows[1].simulated);
  EXPECT_NE(validation.rows[0].errors.simulated, validation.rows[1].errors.simulated);
  EXPECT_THAT(done_, ElementsAre("checking all-reduce/ring on 4 GPUs of ring:4 at 4 KiB",
                                 "simulating all-reduce/ring on 4 GPUs of ring:4 at 4 KiB",
                                 "simulating all-reduce/ring on 4 GPUs of ring:4 at 8 KiB"));
}

TEST_F(ValidateTest, rows_that_are_not_simulated_stay_with_the_reason) {
  configuration_.max_size = KiB(8);
  configuration_.in_sample = [](Bytes size) { return size != KiB(4); };
  configuration_.check = false;
  const Validation validation = validate("size_bytes,time_us\n4096,10\n8192,11\n16384,12\n");
  EXPECT_EQ(validation.rows[0].skipped, "not in the sample");
  EXPECT_EQ(validation.rows[1].skipped, "");
  EXPECT_EQ(validation.rows[2].skipped, "larger than 8 KiB");
  EXPECT_EQ(summarise_regimes(validation.rows)[0].n, 1);
  EXPECT_EQ(validation.checked, "skipped");
}

TEST_F(ValidateTest, a_size_that_the_program_cannot_take_moves_to_the_next_one) {
  const Validation validation = validate("size_bytes,time_us\n100,10\n");
  const RowResult& row = validation.rows[0];
  EXPECT_EQ(row.measured.size, Bytes{100});
  EXPECT_GT(row.simulated_size, Bytes{100});
  EXPECT_LE(row.simulated_size, Bytes{128});
}

TEST_F(ValidateTest, launch_and_repetitions_come_from_the_table_where_it_says_them) {
  machine_.set("gpu.launch.stream_interval", "100 us");  // more than the kernel takes
  configuration_.machine = machine::share(machine_);
  const Validation validation = validate(
      "size_bytes,time_us,launch,warmup,iterations\n4096,10,stream,,\n4096,10,graph,,\n"
      "4096,10,stream,0,1\n");
  const Time stream = validation.rows[0].simulated, graph = validation.rows[1].simulated;
  EXPECT_GT(stream, Time::from_us(90));
  EXPECT_LT(graph, Time::from_us(90));
  EXPECT_GT(validation.rows[2].simulated, graph) << "the first repetition includes the first start";
  EXPECT_LT(validation.rows[2].simulated, stream) << "and waits for no other";
}

TEST_F(ValidateTest, the_trivial_model_scales_with_the_collective_and_its_ranks) {
  // Fitted to pairs: 10 us and 4096 B in 10 us. On 4 ranks a rank sends 1.5 times as much.
  const MeasuredTable pairs =
      read_measured("size_bytes,time_us,num_gpus\n4096,20,2\n8192,30,2\n", "c.csv");
  const TrivialModel trivial = validator_.fit_trivial(pairs, configuration_, "pairs");
  EXPECT_NEAR(trivial.latency_us, 10, 1e-9);
  configuration_.check = false;
  const Validation validation = validator_.validate(
      read_measured("size_bytes,time_us,num_gpus\n4096,25,4\n4096,20,2\n", "t.csv"), configuration_,
      trivial);
  EXPECT_NEAR(validation.rows[0].trivial_us, 25, 1e-9);
  EXPECT_NEAR(validation.rows[0].errors.trivial, 0, 1e-9);
  EXPECT_NEAR(validation.rows[1].trivial_us, 20, 1e-9);
  EXPECT_EQ(validation.rows[0].collective, Collective::all_reduce);
}

TEST_F(ValidateTest, what_a_program_does_is_said_by_its_name_or_found_out) {
  EXPECT_EQ(collective_named("all-gather/ring", {}), Collective::all_gather);
  EXPECT_EQ(collective_named("auto/nccl", {{"collective", "reduce_scatter"}}),
            Collective::reduce_scatter);
  EXPECT_EQ(collective_named("plan.json", {}), std::nullopt);
  configuration_.program = "auto/nccl";  // does an all-reduce where nothing else is said
  configuration_.parameters = {};
  const TrivialModel trivial = validator_.fit_trivial(
      read_measured("size_bytes,time_us\n40960,70\n81920,130\n", "t.csv"), configuration_, "");
  EXPECT_NEAR(trivial.us_per_byte, 60.0 / 40960 / 1.5, 1e-12) << "of the 1.5 times that are sent";
}

TEST_F(ValidateTest, an_interruption_keeps_the_rows_that_were_done) {
  std::atomic<bool> stop = false;
  Monitor monitor{.stop = &stop};
  configuration_.options.monitor = &monitor;
  configuration_.check = false;
  configuration_.max_size = KiB(64);
  configuration_.on_row = [&](std::size_t done, std::size_t) { stop = done == 1; };
  const Validation validation =
      validate("size_bytes,time_us\n4096,10\n8192,10\n131072,10\n16384,10\n");
  EXPECT_TRUE(validation.interrupted);
  EXPECT_EQ(validation.rows[0].skipped, "");
  EXPECT_GT(validation.rows[0].simulated, Time{});
  EXPECT_EQ(validation.rows[1].skipped, kNotReached);
  EXPECT_EQ(validation.rows[2].skipped, "larger than 64 KiB") << "it would not have been simulated";
  EXPECT_EQ(validation.rows[3].skipped, kNotReached);
  EXPECT_EQ(summarise_regimes(validation.rows)[0].n, 1);
}

TEST_F(ValidateTest, faults_of_a_row_have_its_place) {
  EXPECT_THAT(failure_of("size_bytes,time_us,num_gpus\n4096,10,8\n"),
              AllOf(HasSubstr("t.csv:2"), HasSubstr("8 GPUs"), HasSubstr("has 4")));
  EXPECT_THAT(failure_of("size_bytes,time_us,dtype\n4096,10,flaot\n"),
              AllOf(HasSubstr("t.csv:2"), HasSubstr("'dtype'"), HasSubstr("'flaot'")));
  EXPECT_THAT(failure_of("size_bytes,time_us,op\n4096,10,addition\n"),
              AllOf(HasSubstr("'op'"), HasSubstr("'addition'")));
  EXPECT_THAT(failure_of("size_bytes,time_us,op\n4096,10,all_gather\n"),
              AllOf(HasSubstr("t.csv:2"), HasSubstr("all-gather"), HasSubstr("all-reduce"),
                    HasSubstr("--where")));
  EXPECT_THAT(failure_of("size_bytes,time_us,launch\n4096,10,slow\n"), HasSubstr("'slow'"));
  EXPECT_THAT(failure_of("size_bytes,time_us,iterations\n4096,10,0\n"), HasSubstr("'iterations'"));
  configuration_.program = "all-reduce/rnig";
  EXPECT_THAT(failure_of("size_bytes,time_us\n4096,10\n"), HasSubstr("all-reduce/ring"));
}

/// The period that validate takes by default is that of many more repetitions.
class Convergence : public testing::TestWithParam<std::tuple<const char*, sim::Launch>> {};

TEST_P(Convergence, a_few_repetitions_show_the_period_of_many) {
  const auto [name, launch] = GetParam();
  machine::Machine machine = machine::load("dgx-h100");
  machine.place(std::vector<int>{0, 1, 2, 3});
  for (const Bytes size : {KiB(3), KiB(192)}) {
    const program::Bound program =
        program::bind(program::load(name, {.ranks = 4, .machine = machine::share(machine)}),
                      machine::share(machine), {size});
    const auto period = [&](int warmup, int iterations) {
      return sim::simulate(program, {.launch = launch, .warmup = warmup, .iterations = iterations})
          .time.us();
    };
    const double many = period(10, 20);
    EXPECT_NEAR(period(kWarmup, kIterations) / many, 1, 0.03) << to_string(size);
    EXPECT_GT(std::abs(period(0, 1) / many - 1), 0.03) << "a warm-up would not be needed";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Convergence,
    testing::Combine(testing::Values("all-reduce/one-shot", "all-reduce/two-shot"),
                     testing::Values(sim::Launch::graph, sim::Launch::stream)));

}  // namespace
}  // namespace hemiola::study
