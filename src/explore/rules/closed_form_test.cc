#include "explore/rules/closed_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "explore/search/explorer.h"
#include "machine/machine.h"

namespace hemiola::explore {
namespace {

double rounded(double value) {
  return std::round(value * 100) / 100;
}

/// Serial over a pipeline whose product takes 1 and whose collective takes r.
double speedup(double r, const Pipeline& pipeline) {
  return (1 + r) / pipeline.time(true);
}

/// Steps of which each takes all links.
double uniform(double r, int degree) {
  return speedup(r, {.steps = degree, .transfer = r / degree, .product = 1.0 / degree});
}

/// The same with the own block first; of `ranks` blocks one is there.
double hetero(double r, int degree, int ranks) {
  const double own = 1.0 / ranks;
  return speedup(
      r, {.steps = degree, .transfer = r / degree, .product = (1 - own) / degree, .own = own});
}

/// One link busy at a time: a shard over one link takes r, as the collective has n - 1 of them at
/// once in r.
double shards(double r, int ranks) {
  const double product = 1.0 / ranks;
  return speedup(r, {.steps = ranks - 1, .transfer = r, .product = product, .own = product});
}

// Figures of "without losses, n = 8" and of shards on a full mesh: shared/research, derived there
// from the definitions of the schedules.
TEST(Pipeline, steps_without_losses_are_ficcos_arithmetic) {
  EXPECT_EQ(rounded(uniform(0.3, 8)), 1.25);
  EXPECT_EQ(rounded(hetero(0.3, 8, 8)), 1.30);
  EXPECT_EQ(rounded(uniform(0.5, 8)), 1.41);
  EXPECT_EQ(rounded(hetero(0.5, 8, 8)), 1.50);
  EXPECT_EQ(rounded(uniform(0.71, 8)), 1.57);
  EXPECT_EQ(rounded(hetero(0.71, 8, 8)), 1.71);
  EXPECT_EQ(rounded(uniform(1, 8)), 1.78);
  EXPECT_EQ(rounded(hetero(1, 8, 8)), 1.80);
  EXPECT_EQ(rounded(uniform(2, 8)), 1.41);
  EXPECT_EQ(rounded(hetero(2, 8, 8)), 1.42);
}

TEST(Pipeline, shards_over_a_mesh_are_slower_than_serial_unless_little_is_moved) {
  EXPECT_EQ(rounded(1 / shards(0.1, 8)), 0.91);
  EXPECT_NEAR(1 / shards(0.5, 8), 2.4, 0.05);
  EXPECT_NEAR(1 / shards(1, 8), 3.6, 0.05);
  EXPECT_NEAR(1 / shards(1.2, 8), 3.9, 0.05);
  EXPECT_NEAR(1 / shards(2, 8), 4.7, 0.05);
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
  ClosedForm on_mesh(op, mesh), on_switch(op, switched);
  EXPECT_GT(on_mesh.bound(shards).time.fs, 3 * on_mesh.bound(steps).time.fs);
  EXPECT_LT(on_switch.bound(shards).time.fs, 2 * on_switch.bound(steps).time.fs);
  plan::Fabric fabric(mesh);
  const ClosedForm::Rates rates = ClosedForm::rates(fabric, false);
  EXPECT_GE(rates.port, rates.wire);
  // Acknowledgements of what comes are on the same links: 46.55 GB/s were measured with all pairs
  // busy. Where a pair is alone they go the other way.
  EXPECT_NEAR(1e6 / rates.lines, 46.55, 0.01);
  const ClosedForm::Rates alone = ClosedForm::rates(fabric, true);
  EXPECT_LT(alone.lines * 7, 7 * rates.lines);
  EXPECT_NEAR(1e6 / alone.wire, 51.2, 0.01);
}

// The order in which schedules are simulated, and what rules pick, stand on it.
TEST(ClosedForm, says_about_what_fluid_says) {
  study::Laboratory laboratory;
  for (const char* machine : {"mi300x-8", "dgx-h100"}) {
    Request request{.op = {.m = 4096, .n = 8192, .k = 2048}, .machine = {.name = machine}};
    request.limits.degrees = {2, 4};
    request.losses = LossesOf::none;
    request.top = 0;
    request.fluid = 16;
    std::vector<double> ratios;
    for (const Candidate& candidate : explore(laboratory, request).candidates) {
      if (!candidate.schedule.family.in_steps()) continue;
      ratios.push_back(static_cast<double>(candidate.estimate.fs) /
                       static_cast<double>(candidate.fluid.fs));
      EXPECT_NEAR(ratios.back(), 1, 0.25) << candidate.schedule.text();
    }
    ASSERT_GT(ratios.size(), 6U);
    std::sort(ratios.begin(), ratios.end());
    EXPECT_NEAR(ratios[ratios.size() / 2], 1, 0.05) << machine;
  }
}

}  // namespace
}  // namespace hemiola::explore
