#include "explore/closed_form.h"

#include <gtest/gtest.h>

#include <cmath>

#include "machine/machine.h"

namespace hemiola::explore {
namespace {

double rounded(double value) {
  return std::round(value * 100) / 100;
}

// Figures of "without losses, n = 8" and of shards on a full mesh: shared/research, derived there
// from the definitions of the schedules.
TEST(Ideal, pipelines_without_losses_are_ficcos_arithmetic) {
  EXPECT_EQ(rounded(Ideal::uniform(0.3, 8)), 1.25);
  EXPECT_EQ(rounded(Ideal::hetero(0.3, 8, 8)), 1.30);
  EXPECT_EQ(rounded(Ideal::uniform(0.5, 8)), 1.41);
  EXPECT_EQ(rounded(Ideal::hetero(0.5, 8, 8)), 1.50);
  EXPECT_EQ(rounded(Ideal::uniform(0.71, 8)), 1.57);
  EXPECT_EQ(rounded(Ideal::hetero(0.71, 8, 8)), 1.71);
  EXPECT_EQ(rounded(Ideal::uniform(1, 8)), 1.78);
  EXPECT_EQ(rounded(Ideal::hetero(1, 8, 8)), 1.80);
  EXPECT_EQ(rounded(Ideal::uniform(2, 8)), 1.41);
  EXPECT_EQ(rounded(Ideal::hetero(2, 8, 8)), 1.42);
}

TEST(Ideal, shards_over_a_mesh_are_slower_than_serial_unless_little_is_moved) {
  EXPECT_EQ(rounded(1 / Ideal::shards(0.1, 8)), 0.91);
  EXPECT_NEAR(1 / Ideal::shards(0.5, 8), 2.4, 0.05);
  EXPECT_NEAR(1 / Ideal::shards(1, 8), 3.6, 0.05);
  EXPECT_NEAR(1 / Ideal::shards(1.2, 8), 3.9, 0.05);
  EXPECT_NEAR(1 / Ideal::shards(2, 8), 4.7, 0.05);
}

TEST(Ideal, what_serial_leaves_is_the_shorter_of_both) {
  EXPECT_DOUBLE_EQ(Ideal::overlapped(0.5), 1.5);
  EXPECT_DOUBLE_EQ(Ideal::overlapped(2), 1.5);
  EXPECT_DOUBLE_EQ(Ideal::overlapped(1), 2);
}

TEST(ClosedForm, a_mesh_takes_one_link_for_each_peer_and_a_switch_one_port_for_all) {
  const Operator op{.ranks = 8, .m = 8192, .n = 28672, .k = 8192};
  const machine::Machine mesh = machine::load("mi300x-8"), switched = machine::load("dgx-h100");
  const Schedule shards{
      .family = {Division::shards}, .workgroups = 8, .tile = {128, 128}, .own_tile = {128, 128}};
  const Schedule steps{.family = {Division::rows, true, true},
                       .degree = 8,
                       .workgroups = 8,
                       .tile = {128, 128},
                       .own_tile = {128, 128}};
  ClosedForm on_mesh(op, mesh, sim::Launch::stream), on_switch(op, switched, sim::Launch::stream);
  EXPECT_GT(on_mesh.bound(shards).time.fs, 3 * on_mesh.bound(steps).time.fs);
  EXPECT_LT(on_switch.bound(shards).time.fs, 2 * on_switch.bound(steps).time.fs);
  EXPECT_GE(on_mesh.exchange(1e6, true), on_mesh.exchange(1e6, false));
}

}  // namespace
}  // namespace hemiola::explore
