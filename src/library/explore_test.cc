// include/hemiola/explore.h as its users see it.
#include "hemiola/explore.h"

#include <gtest/gtest.h>

#include <atomic>

namespace hemiola {
namespace {

const ExploreOptions kFew{.degrees = {2}, .fluid = 6, .losses = "none"};

TEST(LibraryExplore, FindsSchedulesThatRunInTheTimeItSays) {
  const Machine machine = Machine::load("mi300x-8");
  const Exploration found =
      explore_operator(machine, {.kind = "ag-gemm", .m = 512, .n = 1024, .k = 512}, kFew);
  EXPECT_EQ(found.ranks, 8);
  ASSERT_NE(found.best(), nullptr);
  const ExploredSchedule& best = *found.best();
  EXPECT_EQ(&best, &found.schedules.front());
  EXPECT_GT(best.speedup, 1);
  EXPECT_EQ(best.time, best.confirmed.value_or(best.fluid));
  const Outcome outcome = run({.machine = machine,
                               .program = Program::load(best.program, best.parameters),
                               .type = DataType::bfloat16,
                               .check = false,
                               .engine = Engine::fluid,
                               .warmup = 1,
                               .iterations = 1});
  EXPECT_EQ(outcome.result.time, best.fluid);
}

TEST(LibraryExplore, LocalSizesAreThoseOfOneRank) {
  const Exploration found = explore_operator(
      Machine::load("mi300x-8", {.ranks = {0, 1, 2, 3}}),
      {.kind = "ag-gemm", .m = 64, .n = 1024, .k = 512, .gathers_b = true, .local = true}, kFew);
  EXPECT_EQ(found.ranks, 4);
  EXPECT_EQ(found.op.m, 256);
  EXPECT_FALSE(found.op.local);
}

TEST(LibraryExplore, RefusesWhatIsWrong) {
  const Machine machine = Machine::load("mi300x-8");
  EXPECT_THROW(explore_operator(machine, {.kind = "ag-gem", .m = 8, .n = 8, .k = 8}), Failure);
  EXPECT_THROW(explore_operator(machine, {.kind = "ag-gemm", .m = 9, .n = 8, .k = 8}), Failure);
  EXPECT_THROW(explore_operator(machine, {.kind = "ag-gemm", .m = 8, .n = 8, .k = 8},
                                {.transfers = {"pus"}}),
               Failure);
  EXPECT_THROW(explore_suite(machine, "overlapp"), Failure);
  EXPECT_EQ(exploration_suites(), std::vector<std::string>{"overlap"});
}

TEST(LibraryExplore, StopsWhenItIsAskedTo) {
  const std::atomic<bool> stop{true};
  EXPECT_THROW(explore_suite(Machine::load("mi300x-8"), "overlap", {}, {}, {.stop = &stop}),
               Interrupted);
}

}  // namespace
}  // namespace hemiola
