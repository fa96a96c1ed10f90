// Ctrl-C: the verbs that may take long say where they stood, and leave nothing half done.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "program.h"

namespace hemiola::test {
namespace {

/// A long run, interrupted. It gets a while to come to the simulation; without it the message is
/// shorter.
Outcome interrupted(const Workplace& place, const std::string& arguments) {
  Running program = place.start(arguments);
  EXPECT_TRUE(program.wait_until_it_catches_interrupts());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  program.send(SIGINT);
  return program.wait();
}

constexpr const char* kForEver =
    " --machine ring:2 --size 1MiB --no-check --warmup 1 --iterations 1000000";

class Engines : public testing::TestWithParam<const char*> {};

TEST_P(Engines, are_left_in_the_middle_of_a_run) {
  const Workplace place;
  const Outcome outcome = interrupted(
      place, std::string("run all-reduce/ring --json j --csv c --engine ") + GetParam() + kForEver);
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(contains(outcome.err, "interrupted: simulating all-reduce/ring at 1 MiB on ring:2, "))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, " simulated, ")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, " line hops")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "no file was written")) << outcome.err;
  EXPECT_EQ(place.files(), "");
}
INSTANTIATE_TEST_SUITE_P(Interrupt, Engines, testing::Values("reference", "line"));

TEST(Interrupt, of_several_runs_says_which_are_done) {
  const Workplace place;
  const Outcome outcome = interrupted(place,
                                      "run all-reduce/ring --json j --machine ring:2 --no-check "
                                      "--size 1KiB,1GiB --iterations 1000000 --engine line "
                                      "--set gpu.l2.size=1MiB,2MiB");
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_TRUE(contains(outcome.err, " of 4 runs are done")) << outcome.err;
  EXPECT_EQ(place.files(), "");
}

TEST(Interrupt, leaves_a_check_on_real_data) {
  const Workplace place;
  for (const char* program : {"all-reduce/ring", "plan"}) {
    place.run("plan make all-gather/direct --mesh 2x2 -o plan");
    const Outcome outcome =
        interrupted(place, std::string("check --data --rounds 1000000 ") + program);
    EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
    EXPECT_TRUE(contains(outcome.err, std::string("interrupted: running ") + program))
        << outcome.err;
  }
}

TEST(Interrupt, leaves_the_search_for_a_plan) {
  const Workplace place;
  const Outcome outcome = interrupted(
      place, "plan make all-to-all/synth --machine torus:16x32 --param size=6291456 -o plan");
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "interrupted: making all-to-all/synth")) << outcome.err;
  EXPECT_EQ(place.files(), "");
}

TEST(Interrupt, leaves_a_validation) {
  const Workplace place;
  place.write("table.csv", "size_bytes,time_us\n1024,10\n2048,10\n4096,10\n");
  const Outcome outcome = interrupted(place,
                                      "validate table.csv --program all-reduce/ring --json j "
                                      "--machine ring:2 --no-check --iterations 1000000");
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_TRUE(contains(outcome.err, "of 3 rows are done; no file was written")) << outcome.err;
  EXPECT_EQ(place.files(), "table.csv ");
}

/// Stopped at the second row, which takes for ever.
class Stops : public testing::TestWithParam<int> {};

TEST_P(Stops, of_a_validation_keep_the_rows_that_were_done) {
  const Workplace place;
  place.write("table.csv",
              "size_bytes,time_us,iterations\n1024,10,1\n1048576,10,1000000\n4096,10,1\n");
  Running program = place.start(
      "validate table.csv --program all-reduce/ring --machine ring:2 --no-check --json j --csv c");
  EXPECT_TRUE(program.wait_until_it_catches_interrupts());
  std::this_thread::sleep_for(std::chrono::seconds(2));
  program.send(GetParam());
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 128 + GetParam());
  EXPECT_TRUE(contains(outcome.err,
                       "1 of 3 rows are done; what was done is printed and written to "
                       "j and c"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "1 of 3 rows: 2 not reached")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "# interrupted")) << outcome.out;
  EXPECT_TRUE(contains(place.read("j"), "\"interrupted\": true"));
  EXPECT_TRUE(contains(place.read("j"), "\"not_simulated\": \"not reached\""));
  EXPECT_TRUE(contains(place.read("c"), ",not reached\n"));
}
INSTANTIATE_TEST_SUITE_P(Interrupt, Stops, testing::Values(SIGINT, SIGTERM));

TEST(Interrupt, is_ignored_where_the_program_was_started_so) {
  const Workplace place;
  Running program = place.start(
      "run all-reduce/ring --machine ring:2 --size 1MiB --iterations 20 --engine line --json j",
      Workplace::Interrupts::ignored);
  // At any time of its life, and at the end once more.
  for (int i = 0; i < 50; ++i) {
    program.send(SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(program.wait().code, 0);
  EXPECT_EQ(place.files(), "j ");
}

}  // namespace
}  // namespace hemiola::test
