// Every real machine file: a connected graph on which a ring all-reduce runs, or the reason why
// not.
#include <gtest/gtest.h>

#include <map>

#include "inputs.h"
#include "sim/simulate.h"
#include "verify/verify.h"

namespace hemiola::test {
namespace {

using machine::Machine;
using machine::Reach;

void expect_connected(const Machine& machine) {
  for (int from = 0; from < machine.ranks(); ++from) {
    for (int to = 0; to < machine.ranks(); ++to) {
      if (from == to) continue;
      EXPECT_NE(machine.reach(from, to), Reach::none) << from << " to " << to;
      EXPECT_GT(machine.routes(from, to).count, 0) << from << " to " << to;
    }
  }
}

void expect_ring_runs(const Machine& machine) {
  const program::Program ring =
      program::load("all-reduce/ring", {.ranks = machine.ranks(),
                                        .parameters = {{"channels", "2"}},
                                        .machine = machine::share(machine)});
  const program::Bound bound = bound_at(ring, machine::share(machine), KiB(8));
  EXPECT_EQ(verify::check(bound).verdict, verify::Verdict::proven);
  const sim::Result result = sim::simulate(bound);
  EXPECT_GE(result.time, result.bound.time());
}

TEST(NcclTopologies, are_all_connected_machines_that_run_a_ring) {
  SKIP_WITHOUT_INPUTS();
  const auto files = files_of("nccl_topo");
  EXPECT_EQ(files.size(), 35u);
  for (const auto& file : files) {
    SCOPED_TRACE(file.filename().string());
    const Machine machine = machine::load(file.string());
    EXPECT_GE(machine.ranks(), 3);
    EXPECT_LE(machine.ranks(), 16);
    expect_connected(machine);
    expect_ring_runs(machine);
  }
}

struct Expected {
  int gpus;
  bool network;  ///< some GPUs reach each other only through NICs
};

TEST(InfraGraphFiles, are_machines_with_the_gpus_they_describe) {
  SKIP_WITHOUT_INPUTS();
  const std::map<std::string, Expected> files = {
      {"closfabric.yaml", {8, true}},   {"cx5_100gbe.yaml", {0, false}},
      {"dgx_cx5_nic.yaml", {8, false}}, {"dgx_h100.yaml", {8, false}},
      {"server.yaml", {2, false}},      {"switch.yaml", {0, false}},
  };
  EXPECT_EQ(files_of("infragraph").size(), files.size());
  for (const auto& [name, expected] : files) {
    SCOPED_TRACE(name);
    const Machine machine = machine::load(shared_input("infragraph/" + name).string());
    ASSERT_EQ(machine.ranks(), expected.gpus);
    if (expected.gpus == 0) {
      EXPECT_NE(machine.warnings.render().find("no xpu"), std::string::npos);
      continue;
    }
    expect_connected(machine);
    EXPECT_EQ(machine.reach(0, expected.gpus - 1) == Reach::network, expected.network);
    expect_ring_runs(machine);
  }
}

// GPUs of one host share an NVSwitch; those of two hosts meet behind two leaf switches and a spine.
TEST(InfraGraphFiles, closfabric_stages_what_crosses_its_nics) {
  SKIP_WITHOUT_INPUTS();
  const Machine machine = machine::load(shared_input("infragraph/closfabric.yaml").string());
  EXPECT_EQ(machine.reach(0, 1), Reach::load_store);
  EXPECT_EQ(machine.reach(1, 2), Reach::network);
  const program::Program ring = program::load(
      "all-reduce/ring",
      {.ranks = 8, .parameters = {{"channels", "1"}}, .machine = machine::share(machine)});
  const sim::Result result = sim::simulate(bound_at(ring, machine::share(machine), KiB(64)));
  // 14 steps, and the 4 edges of the ring that leave a host: a message each.
  EXPECT_GE(result.counters.at("requests.bursts"), 14 * 4);
  std::int64_t through_spines = 0;
  for (const sim::LinkUse& link : result.links) {
    const bool down = link.from.find("spinesw") == 0 && link.to.find("leafsw") == 0;
    if (down) through_spines += link.payload_bytes;
  }
  // Each of the 4 edges carries 2 (n - 1) / n of the data down from a spine; credits and flags come
  // on top.
  const std::int64_t data = 4 * 2 * 7 * (64 << 10) / 8;
  EXPECT_GE(through_spines, data);
  EXPECT_LT(through_spines, data + data / 8);
}

}  // namespace
}  // namespace hemiola::test
