// Who watches a run sees how far it is, can stop it, and changes nothing.
#include <gtest/gtest.h>

#include "core/monitor.h"
#include "machine/machine.h"
#include "program/program.h"
#include "sim/simulate.h"

namespace hemiola::sim {
namespace {

class Watched : public testing::TestWithParam<Engine> {
 protected:
  Watched()
      : machine_(machine::load("ring:2")),
        program_(program::bind(
            program::load("all-reduce/ring", {.ranks = 2, .machine = machine::share(machine_)}),
            machine::share(machine_), {.size = MiB(4)})) {}
  Result run(Monitor* monitor) const {
    return simulate(program_, {.engine = GetParam(), .monitor = monitor});
  }

  machine::Machine machine_;
  program::Bound program_;
};

TEST_P(Watched, runs_give_what_others_give) {
  Monitor monitor;
  const Result watched = run(&monitor), alone = run(nullptr);
  EXPECT_EQ(watched.time, alone.time);
  EXPECT_EQ(watched.line_hops, alone.line_hops);
  EXPECT_EQ(watched.counters, alone.counters);
}

TEST_P(Watched, runs_tell_how_far_they_are) {
  Monitor monitor;
  const Result result = run(&monitor);
  // What was told last was near the end.
  EXPECT_GT(monitor.fraction(), 0.8);
  EXPECT_GT(monitor.time_fs.load(), result.time.fs / 2);
  EXPECT_LE(monitor.time_fs.load(), result.time.fs);
  EXPECT_GT(monitor.line_hops.load(), result.line_hops / 2);
  EXPECT_LE(monitor.line_hops.load(), result.line_hops);
}

TEST_P(Watched, runs_end_where_they_are_asked_to) {
  const std::atomic<bool> stop{true};
  Monitor monitor{.stop = &stop};
  EXPECT_THROW(run(&monitor), Interrupted);
}

INSTANTIATE_TEST_SUITE_P(Engines, Watched, testing::Values(Engine::reference, Engine::line),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST(Monitor, has_no_fraction_of_what_nobody_knows) {
  Monitor monitor;
  EXPECT_EQ(monitor.fraction(), 0);
  monitor.begin(4);
  monitor.done = 1;
  EXPECT_EQ(monitor.fraction(), 0.25);
  monitor.done = 5;
  EXPECT_EQ(monitor.fraction(), 1) << "totals are estimates";
  monitor.begin(0);
  EXPECT_EQ(monitor.fraction(), 0);
}

}  // namespace
}  // namespace hemiola::sim
