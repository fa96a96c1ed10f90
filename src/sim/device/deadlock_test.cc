// Waits that cannot end: reported with rank, workgroup, operation and what is missing, after a
// bounded number of polls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;
using ::testing::HasSubstr;

/// What simulate() says; fails the test if it ends.
std::string deadlock(const machine::Machine& machine, const program::Bound& program) {
  try {
    simulate(machine, program);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    return failure.what();
  }
  ADD_FAILURE() << "the simulation ended";
  return {};
}
std::string deadlock(const machine::Machine& machine, const std::vector<std::vector<Ops>>& bodies) {
  return deadlock(machine, make(machine, bodies));
}

TEST(Deadlock, a_missing_signal_is_named) {
  const std::string text =
      deadlock(distinct("ring:2"), {{{sync()}}, {{sync()}, {sync(), wait(1, 2)}}});
  EXPECT_THAT(text, HasSubstr("a wait cannot end"));
  EXPECT_THAT(text, HasSubstr("rank 1 workgroup 1 op 1 (wait)"));
  EXPECT_THAT(text, HasSubstr("semaphore 'channel 2' of rank 1 to reach 1, it is 0"));
}

TEST(Deadlock, one_signal_too_few_is_counted) {
  const std::string text =
      deadlock(distinct("ring:2"), {{{signal(1), signal(1)}}, {{wait(1), wait(1), wait(1)}}});
  EXPECT_THAT(text, HasSubstr("rank 1 workgroup 0 op 2 (wait)"));
  EXPECT_THAT(text, HasSubstr("to reach 3, it is 2"));
}

TEST(Deadlock, a_cycle_names_every_side) {
  const std::string text =
      deadlock(distinct("ring:2"), {{{wait(0), signal(1)}}, {{wait(1), signal(0)}}});
  EXPECT_THAT(text, HasSubstr("rank 0 workgroup 0 op 0 (wait)"));
  EXPECT_THAT(text, HasSubstr("rank 1 workgroup 0 op 0 (wait)"));
}

TEST(Deadlock, missing_packets_are_named) {
  const std::string text =
      deadlock(distinct("ring:2"),
               {{{}}, {{transfer(OpKind::unpack_packets, {packets(1)}, {at(1, kOutput)})}}});
  EXPECT_THAT(text, HasSubstr("rank 1 workgroup 0 op 0"));
  EXPECT_THAT(text, HasSubstr("waits for packets that nobody sends"));
}

TEST(Deadlock, packets_of_half_a_line_do_not_release_a_reader_of_all_of_it) {
  const machine::Machine machine = distinct("ring:2");
  const std::string text = deadlock(
      machine, make(machine,
                    {{{transfer(OpKind::put_packets, {at(0, kInput, 0)}, {packets(1, 0)})}},
                     {{transfer(OpKind::unpack_packets, {packets(1, 0)}, {at(1, kOutput, 0)}),
                       transfer(OpKind::unpack_packets, {packets(1, 1)}, {at(1, kOutput, 1)})}}},
                    {.chunk_bytes = 32, .chunks = 2}));
  EXPECT_THAT(text, HasSubstr("rank 1 workgroup 0 op 1"));
}

TEST(Deadlock, a_barrier_whose_workgroups_are_not_all_resident_is_named) {
  Op barrier{.kind = OpKind::barrier};
  barrier.workgroups = 3;
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.cu.count", "2"}, {"gpu.cu.max_workgroups", "1"}});
  const std::string text = deadlock(machine, {{{barrier}, {barrier}, {barrier}}, {}});
  EXPECT_THAT(text, HasSubstr("rank 0 workgroup 0 op 0 (barrier)"));
  EXPECT_THAT(text, HasSubstr("barrier 0 of rank 0 to reach 3, it is 2"));
}

TEST(Deadlock, an_event_that_is_never_recorded_is_reported) {
  const machine::Machine machine = distinct("ring:2");
  program::Bound program = make(machine, {{{sync()}}, {}});
  program = program::changed(program, [](auto& p) {
    p.codes[0].streams = {
        {{.kind = program::StreamItem::Kind::event_wait, .index = 3, .duration = {}}}};
  });
  EXPECT_THAT(deadlock(machine, program), HasSubstr("rank 0 stream 0 waits for event 3"));
}

// Polls that queue at arbitrated outputs are no progress either.
TEST(Deadlock, is_found_where_polls_queue_for_arbitration) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.noc.kind", "mesh"},
                                                       {"gpu.noc.mesh_columns", "3"},
                                                       {"gpu.noc.mesh_rows", "1"},
                                                       {"gpu.cu.count", "3"},
                                                       {"gpu.noc.arbitration", "fair"}});
  EXPECT_THAT(deadlock(machine, {{{}, {}, {wait(0)}}, {}}),
              HasSubstr("rank 0 workgroup 2 op 0 (wait)"));
}

TEST(Deadlock, is_found_where_polls_cross_links_with_credits) {
  const machine::Machine machine = distinct("ring:2", {{"link.link.credits", "2"}});
  EXPECT_THAT(deadlock(machine, {{{wait(1)}}, {}}), HasSubstr("rank 0 workgroup 0 op 0 (wait)"));
}

TEST(Deadlock, stores_behind_polls_that_take_turns_for_one_slot_are_none) {
  const machine::Machine machine =
      machine::load("switch:4", {.set = {{"gpu.cu.max_outstanding", "1"},
                                         {"gpu.l2.slices", "1"},
                                         {"gpu.l2.size", "12 KiB"},
                                         {"gpu.l2.latency", "30 ns"},
                                         {"gpu.noc.latency", "1 fs"},
                                         {"link.*.latency", "1 fs"}}});
  const program::Bound program =
      built_in("all-reduce/nccl", machine, KiB(8), {{"protocol", "ll128"}, {"channels", "1"}});
  for (const Engine engine : {Engine::line, Engine::reference})
    EXPECT_GT(simulate(machine, program, {.engine = engine}).time, Time::from_us(100));
}

TEST(Deadlock, a_long_computation_is_none) {
  Op compute{.kind = OpKind::compute};
  compute.duration = Time::from_us(20'000);  // 20 ms against polls every microsecond
  const machine::Machine machine = distinct("ring:2");
  const Result result = run(machine, {{{compute, signal(1)}}, {{wait(1)}}});
  EXPECT_GT(result.counters.at("requests.polls"), 10'000);
}

}  // namespace
}  // namespace hemiola::sim
