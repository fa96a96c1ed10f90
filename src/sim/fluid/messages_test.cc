// The engine fluid where messages of several ranks meet on their way to one.

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "sim/alike/classes.h"
#include "sim/fluid/shares.h"
#include "sim/testing/random_cases.h"

namespace hemiola::sim {
namespace {

using namespace test;

program::Bound over_nodes(const char* name, const char* machine, Bytes size,
                          const plan::Parameters& parameters = {}) {
  const machine::SharedMachine shared = machine::share(machine::load(machine));
  return program::bind(
      program::load(name, {.ranks = shared->ranks(), .parameters = parameters, .machine = shared}),
      shared, {.size = size});
}

/// Of fluid against the line engine.
double error_of(const program::Bound& program) {
  const Result line = simulate(program, {.engine = Engine::line});
  const Result fluid = simulate(program, {.engine = Engine::fluid});
  return static_cast<double>(fluid.time.fs) / static_cast<double>(line.time.fs) - 1;
}

// Both take the link whole: one of a quarter more than an even part, one of a quarter less.
TEST(Shares, a_flow_of_a_larger_part_ends_first) {
  constexpr std::int64_t kOne = std::int64_t{1} << kWeightBits;
  Shares shares;
  const auto link = shares.add_resource({80}, Reason::link);
  shares.start({{link, kOne}}, 100, 0, Reason::issue, 0, {}, kEvenPart * 5 / 4);
  shares.start({{link, kOne}}, 100, 0, Reason::issue, 0, {}, kEvenPart * 3 / 4);
  shares.settle(0);
  EXPECT_EQ(shares.rate(0), 50);
  EXPECT_EQ(shares.rate(1), 30);
  Attribution charged{};
  EXPECT_EQ(shares.finish(charged), 0);
  shares.settle(2 * kSecond);
  EXPECT_EQ(shares.rate(1), 80);
}

// What one cannot take, for its own limit, goes to the other, whatever their parts.
TEST(Shares, parts_leave_nothing_over) {
  constexpr std::int64_t kOne = std::int64_t{1} << kWeightBits;
  Shares shares;
  const auto link = shares.add_resource({100}, Reason::link);
  shares.start({{link, kOne}}, 100, 20, Reason::issue, 0, {}, kEvenPart * 5 / 4);
  shares.start({{link, kOne}}, 100, 0, Reason::issue, 0, {}, kEvenPart * 3 / 4);
  shares.settle(0);
  EXPECT_EQ(shares.rate(0), 20);
  EXPECT_NEAR(static_cast<double>(shares.rate(1)), 80, 1);  // rounded down
}

// With one window for all receivers a rank waited for one while others had nothing: 2.7 ms.
TEST(FluidMessages, of_a_full_window_hold_up_none_to_others) {
  const program::Bound program = over_nodes("all-gather/direct", "dgx-h100:2", MiB(64));
  const Result fluid = simulate(program, {.engine = Engine::fluid});
  EXPECT_NEAR(static_cast<double>(fluid.time.fs) / 888e9, 1, 0.1) << "the line engine's, 10 s";
  EXPECT_GT(fluid.bound.time().fs * 10, fluid.time.fs * 6);
}

// All ranks of a node send to the same rank of the other one first.
TEST(FluidMessages, of_ranks_that_send_to_the_same_one_share_its_nic) {
  const program::Bound program = over_nodes("all-to-all/direct", "dgx-h100:2", MiB(16));
  const Time fluid = simulate(program, {.engine = Engine::fluid}).time;
  EXPECT_LT(std::abs(error_of(program)), 0.13) << error_of(program);
  const Time apart = simulate(program, {.engine = Engine::fluid, .fold = false}).time;
  EXPECT_NEAR(static_cast<double>(apart.fs) / static_cast<double>(fluid.fs), 1, 1e-6);
}

// The parts of a block wait for each other most of the time, so each has the unit for itself. With
// a third of it each, fluid said 234 us for 133 of 16 MiB.
TEST(FluidParts, of_a_block_share_what_their_unit_does_in_time) {
  const program::Bound program =
      over_nodes("all-reduce/nccl", "dgx-h100:2", MiB(2), {{"algorithm", "nvlstree"}});
  EXPECT_LT(std::abs(error_of(program)), 0.1) << error_of(program);
}

// Peers on a torus are one to three links away: with the longest latency for all, what pulls took
// 84 us for 51; and one queue for its fat links, of four ports each, made the tree take 314 for
// 199.
TEST(FluidLoads, of_near_and_far_peers_keep_their_slots_for_as_long_as_each_takes) {
  for (const char* const name : {"reduce-scatter/direct", "all-reduce/double-binary-tree"}) {
    const double error = error_of(over_nodes(name, "torus:2x4", MiB(16)));
    EXPECT_LT(std::abs(error), 0.1) << name << error;
  }
}

TEST(FluidClasses, ranks_of_a_multicast_group_are_alike) {
  const auto classes = [](const char* machine, const char* algorithm) {
    const program::Bound program =
        over_nodes("all-reduce/nccl", machine, MiB(16), {{"algorithm", algorithm}});
    return Classes(*program.machine(), program, {}, AlikeBy::time);
  };
  EXPECT_EQ(classes("dgx-h100", "nvls").agents().size(), 3U) << "scatter, reduce, gather";
  // Of the two trees each has one root and one leaf.
  EXPECT_EQ(classes("dgx-h100:2", "nvlstree").agents().size(), 7U);
}

}  // namespace
}  // namespace hemiola::sim
