// NVLS: stores that a switch replicates, loads that it reduces.

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

machine::Machine nvls(const std::string& topology, Settings more = {}) {
  more.emplace_back("switch.multicast", "true");
  more.emplace_back("switch.reduce_rate", "9 GB/s");
  more.emplace_back("switch.reduce_latency", "67 ns");
  return distinct(topology, more);
}
Ops store(int rank) {
  return {transfer(OpKind::group_store, {at(rank, kInput)}, {multicast(kOutput)})};
}
Ops load(int rank) {
  return {transfer(OpKind::group_load_reduce, {multicast(kInput)}, {at(rank, kOutput)})};
}

TEST(Multicast, a_store_is_acknowledged_when_all_members_have_answered) {
  for (const std::string topology : {"switch:2", "switch:4"}) {
    const machine::Machine machine = nvls(topology);
    const Costs c(machine);
    std::vector<std::vector<Ops>> bodies(static_cast<std::size_t>(machine.ranks()));
    bodies[0] = {store(0)};
    const Result result = run(machine, bodies);
    const std::int64_t member = c.link(kLine) + c.io(kLine) + c.slice(kLine) + c.hbm(kLine) +
                                c.io(0) + c.link(0) + c.switches.latency.fs;
    const std::int64_t stored = c.issue() + c.cu(kLine) + c.noc() + c.io(kLine) + c.link(kLine) +
                                c.switches.latency.fs + member + c.link(0) + c.io(0) + c.noc();
    EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.local_load(kLine) + stored + c.end())
        << topology;
    EXPECT_EQ(result.counters.at("requests.multicasts"), 1);
    const std::int64_t others = machine.ranks() - 1;
    EXPECT_EQ(result.counters.at("stores.delivered_bytes"), others * kLine);
    EXPECT_EQ(result.counters.at("stores.injected_bytes"), others * kLine)
        << "copies for other ranks";
  }
}

TEST(Multicast, a_load_reduces_one_operand_after_the_other) {
  for (const std::string topology : {"switch:2", "switch:4"}) {
    const machine::Machine machine = nvls(topology);
    const Costs c(machine);
    std::vector<std::vector<Ops>> bodies(static_cast<std::size_t>(machine.ranks()));
    bodies[0] = {load(0)};
    const Result result = run(machine, bodies);
    const std::int64_t operand = c.link(0) + c.io(0) + c.slice(kLine) + c.read(kLine) +
                                 c.io(kLine) + c.link(kLine) + c.switches.latency.fs;
    const std::int64_t reduced =
        machine.ranks() * c.switches.reduce_rate.time_for(kLine).fs + c.switches.reduce_latency.fs;
    const std::int64_t loaded = c.issue() + c.cu(0) + c.noc() + c.io(0) + c.link(0) +
                                c.switches.latency.fs + operand + reduced + c.link(kLine) +
                                c.io(kLine) + c.cu(kLine) + c.noc();
    EXPECT_EQ(result.time.fs, c.start() + c.overhead() + loaded + c.local_store(kLine) + c.end())
        << topology;
    EXPECT_EQ(spent_on(result, 0, Reason::switch_), 2 * c.switches.latency.fs + reduced)
        << topology;
  }
}

TEST(Multicast, credits_come_back_from_the_switch_and_do_not_change_a_single_request) {
  for (const Ops& ops : {store(0), load(0)}) {
    const machine::Machine free = nvls("switch:3");
    const machine::Machine one = nvls("switch:3", {{"link.link.credits", "1"}});
    const Result expected = run(free, {{ops}, {}, {}});
    const Result result = run(one, {{ops}, {}, {}});
    EXPECT_EQ(result.time, expected.time);
    // Up, down to three members, up from three members, down.
    EXPECT_EQ(result.counters.at("credits.taken"), 8);
    EXPECT_EQ(result.counters.at("credits.returned"), 8);
  }
}

TEST(Multicast, a_stream_with_one_credit_makes_progress) {
  const machine::Machine machine =
      nvls("switch:3", {{"link.link.credits", "1"}, {"gpu.cu.unroll", "16"}});
  const Result result =
      run(machine, {{store(0)}, {store(1)}, {load(2)}}, {.chunk_bytes = 32 * kLine});
  EXPECT_EQ(result.counters.at("credits.taken"), 3 * 32 * 8);
  EXPECT_EQ(result.counters.at("credits.returned"), 3 * 32 * 8);
}

}  // namespace
}  // namespace hemiola::sim
