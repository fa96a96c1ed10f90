// Submissions of copies: each phase costs what it says, no more and no less.
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "program/program.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;
using program::StreamItem;

constexpr std::int64_t kChunk = 4096;  // one burst

Op put_to(int peer, std::int64_t chunk = 0) {
  return transfer(OpKind::put, {at(0, kInput, chunk)}, {at(peer, kOutput, chunk)});
}
Op batched(Op op) {
  op.batched = true;
  return op;
}
Op broadcast_to(int first, int second) {
  return transfer(OpKind::copy, {at(0, kInput)}, {at(first, kOutput), at(second, kOutput)});
}
Op swap_with(int peer) {
  return transfer(OpKind::swap, {at(0, kOutput), at(peer, kOutput)},
                  {at(peer, kOutput), at(0, kOutput)});
}

struct Queue {
  Ops ops;
  bool prelaunched = false;
};

program::Bound queues_of(const machine::Machine& machine, const std::vector<Queue>& queues) {
  program::Bound program =
      make(machine, std::vector<std::vector<Ops>>(static_cast<std::size_t>(machine.ranks())),
           {.chunk_bytes = kChunk, .chunks = 4});
  return program::changed(program, [&](auto& p) {
    for (const Queue& queue : queues) {
      p.codes[0].streams.push_back({{.kind = StreamItem::Kind::engine,
                                     .index = static_cast<std::int32_t>(p.bodies.size()),
                                     .prelaunched = queue.prelaunched}});
      p.bodies.push_back({queue.ops});
    }
  });
}

/// From the start of rank 0's streams to their end.
std::int64_t time_of(const machine::Machine& machine, const std::vector<Queue>& queues,
                     Options options = {}) {
  options.engine = Engine::reference;
  return simulate(machine, queues_of(machine, queues), options).time.fs -
         machine.model(0).launch_stream_latency.fs;
}

struct CopyPhases : ::testing::Test {
  // Memory that two copies read at a time without being in each other's way.
  machine::Machine machine = distinct("ring:3", {{"gpu.dma.engines", "4"},
                                                 {"gpu.dma.completion_time", "53 ns"},
                                                 {"gpu.hbm.rate", "inf"},
                                                 {"gpu.l2.slice_rate", "inf"}});
  Costs c{machine};
  /// A burst alone in an engine, the slowest thing on its way.
  std::int64_t burst = c.gpu.dma_rate.time_for(kChunk).fs;
  std::int64_t one = time_of(machine, {{{put_to(1)}}});
};

TEST_F(CopyPhases, sum_to_the_time_of_a_copy) {
  const machine::Machine bare = distinct("ring:3", {{"gpu.dma.engines", "4"},
                                                    {"gpu.hbm.rate", "inf"},
                                                    {"gpu.l2.slice_rate", "inf"},
                                                    {"gpu.dma.control_latency", "1 fs"},
                                                    {"gpu.dma.schedule_latency", "1 fs"},
                                                    {"gpu.dma.sync_latency", "1 fs"}});
  EXPECT_EQ(
      one - time_of(bare, {{{put_to(1)}}}),
      c.gpu.dma_control_latency.fs + c.gpu.dma_schedule_latency.fs + c.gpu.dma_sync_latency.fs - 3);
}

TEST_F(CopyPhases, of_prelaunched_commands_are_a_poll_the_copy_and_sync) {
  EXPECT_EQ(time_of(machine, {{{put_to(1)}, true}}), one - c.gpu.dma_control_latency.fs -
                                                         c.gpu.dma_schedule_latency.fs +
                                                         c.gpu.sync_poll_interval.fs);
}

TEST_F(CopyPhases,
       of_a_batch_come_once_and_its_copies_follow_each_other_at_the_rate_of_the_engine) {
  EXPECT_EQ(time_of(machine, {{{batched(put_to(1)), batched(put_to(1, 1)), put_to(1, 2)}}}),
            one + 2 * burst);
  EXPECT_EQ(time_of(machine, {{{put_to(1), put_to(1, 1), put_to(1, 2)}}}), 3 * one);
}

TEST_F(CopyPhases, of_a_batch_to_several_peers_are_those_of_one_engine) {
  EXPECT_EQ(time_of(machine, {{{batched(put_to(1)), put_to(2)}}}), one + burst);
  EXPECT_EQ(time_of(machine, {{{put_to(1)}}, {{put_to(2)}}}), one + 1)
      << "two engines, two links; the memory itself takes a femtosecond for each";
}

TEST_F(CopyPhases, of_a_broadcast_are_those_of_one_copy_with_twice_the_bytes_in_the_engine) {
  EXPECT_EQ(time_of(machine, {{{broadcast_to(1, 2)}}}), one + burst);
}

TEST_F(CopyPhases, of_a_swap_are_those_of_one_copy_with_twice_the_bytes_in_the_engine) {
  EXPECT_EQ(time_of(machine, {{{swap_with(1)}}}), one + burst);
}

TEST_F(CopyPhases, end_a_batch_before_the_flag_that_follows_it) {
  Op open = batched(put_to(1));  // a signal comes next: nothing is left to wait for
  EXPECT_EQ(time_of(machine, {{{open, signal(0, 1)}}}),
            time_of(machine, {{{put_to(1), signal(0, 1)}}}));
  EXPECT_EQ(time_of(machine, {{{open}}}), one);
}

TEST_F(CopyPhases, of_all_queues_take_turns_where_one_host_gives_the_commands) {
  Options one_host;
  one_host.one_host = true;
  const std::int64_t control = c.gpu.dma_control_latency.fs;
  const std::int64_t seen = c.gpu.dma_completion_time.fs;
  // Without the femtosecond of handing over, which the host's work contains.
  const std::int64_t alone = time_of(machine, {{{put_to(1)}}}, one_host);
  EXPECT_EQ(alone, one - 1 + seen);
  EXPECT_EQ(time_of(machine, {{{put_to(1)}}, {{put_to(2)}}}, one_host), alone + control);
  EXPECT_EQ(time_of(machine, {{{put_to(1)}, true}, {{put_to(2)}, true}}, one_host),
            time_of(machine, {{{put_to(1)}, true}}) + 2 * seen)
      << "both end together, and one is seen after the other";
}

TEST_F(CopyPhases, are_longer_by_every_row) {
  const auto rows = [&](const char* row_time) {
    const machine::Machine slow =
        distinct("ring:3", {{"gpu.dma.row_time", row_time}, {"gpu.dma.engines", "4"}});
    Op strided = put_to(1);
    for (auto* operands : {&strided.src, &strided.dst}) {
      operands->front().chunks = 2;
      operands->front().run = 1;
      operands->front().pitch = 2;
    }
    return time_of(slow, {{{strided}}});
  };
  EXPECT_EQ(rows("70 ns") - rows("0 ns"), 2 * Time::from_ns(70).fs);
}

TEST_F(CopyPhases, in_fluid_are_the_same_but_for_what_a_flow_takes) {
  const auto fluid = [&](const std::vector<Queue>& queues) {
    Options options;
    options.engine = Engine::fluid;
    return simulate(machine, queues_of(machine, queues), options).time.fs -
           machine.model(0).launch_stream_latency.fs;
  };
  const std::int64_t alone = fluid({{{put_to(1)}}});
  const std::int64_t phases = c.gpu.dma_control_latency.fs + c.gpu.dma_schedule_latency.fs;
  EXPECT_EQ(fluid({{{put_to(1)}, true}}), alone - phases + c.gpu.sync_poll_interval.fs);
  const auto is_near = [&](std::int64_t time, std::int64_t expected) {
    EXPECT_NEAR(static_cast<double>(time), static_cast<double>(expected), 1000) << "fs";
  };
  is_near(fluid({{{batched(put_to(1)), put_to(1, 1)}}}), alone + burst);
  is_near(fluid({{{broadcast_to(1, 2)}}}), alone + burst);
  is_near(fluid({{{swap_with(1)}}}), alone + burst);
}

TEST_F(CopyPhases, are_not_below_the_bound) {
  for (const Queue& queue : std::vector<Queue>{{{put_to(1)}},
                                               {{put_to(1)}, true},
                                               {{batched(put_to(1)), put_to(2)}},
                                               {{broadcast_to(1, 2)}},
                                               {{swap_with(1)}, true}}) {
    const Result result = simulate(machine, queues_of(machine, {queue}), {});
    EXPECT_GE(result.time, result.bound.latency);
    EXPECT_GE(result.time, result.bound.bandwidth);
    EXPECT_GT(result.bound.latency.fs, machine.model(0).dma_sync_latency.fs);
  }
}

TEST(CopyEngines, that_a_machine_has_not_are_refused) {
  const machine::SharedMachine none =
      machine::share(distinct("ring:2", {{"gpu.dma.engines", "0"}}));
  const auto bind = [&](const char* realization) {
    const program::Program program = program::load(
        "all-gather/direct", {.ranks = 2, .parameters = {{"realization", realization}}});
    return program::bind(program, none, {.size = KiB(4), .type = DataType::float32});
  };
  EXPECT_NE(hemiola::test::message_of([&] { bind("copy-engine"); }).find("have no copy engines"),
            std::string::npos);
  EXPECT_GT(simulate(*none, bind("bulk")).time.fs, 0);
}

}  // namespace
}  // namespace hemiola::sim
