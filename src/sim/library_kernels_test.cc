// What kernels of libraries do otherwise: the gap between calls, large code, a wavefront that
// posts.

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

machine::Machine pair() {
  return distinct("ring:2",
                  {{"gpu.launch.library_interval", "5000001 ps"}, {"gpu.cu.code_fetch", "7 us"}});
}

Ops copies(int count) {
  return Ops(static_cast<std::size_t>(count),
             transfer(OpKind::copy, {at(0, kInput)}, {at(0, kOutput)}));
}

TEST(LibraryCalls, follow_each_other_after_the_gap_on_a_stream_and_at_once_in_a_graph) {
  const machine::Machine machine = pair();
  for (const Launch launch : {Launch::stream, Launch::graph}) {
    const Options options{.launch = launch, .warmup = 2, .iterations = 3};
    program::Bound program = make(machine, {{copies(40)}, {}});
    const Result plain = simulate(machine, program, options);
    program = program::changed(program, [&](auto& p) { p.library_call = true; });
    const Result call = simulate(machine, program, options);
    const std::int64_t gap = machine.model(0).launch_library_interval.fs;
    EXPECT_EQ(call.time.fs - plain.time.fs, launch == Launch::stream ? gap - 1 : 0);
  }
}

TEST(LibraryCalls, of_one_host_thread_are_made_for_one_rank_after_the_other) {
  // 8 ms a round for four ranks, whose kernels take less: the thread is what limits.
  const machine::Machine machine = distinct("ring:4", {{"gpu.launch.library_interval", "2 ms"}});
  program::Bound program = make(machine, {{copies(1)}, {}, {}, {}});
  program = program::changed(program, [&](auto& p) { p.library_call = true; });
  for (const Engine engine : {Engine::reference, Engine::line}) {
    Options options{.engine = engine, .warmup = 1, .iterations = 3, .one_host = true};
    EXPECT_EQ(simulate(machine, program, options).time, Time::from_ns(8'000'000));
    const Result cold = simulate(machine, program, {.engine = engine, .one_host = true});
    EXPECT_EQ(spent_on(cold, 3, Reason::software), Time::from_ns(6'000'000).fs);
    EXPECT_EQ(spent_on(cold, 3, Reason::skew), 0) << "nobody asked for --skew";
    options.launch = Launch::graph;
    EXPECT_LT(simulate(machine, program, options).time, Time::from_ns(1'000'000)) << "no calls";
  }
}

TEST(LargeCode, is_fetched_once_for_each_kind_of_operation) {
  const machine::Machine machine = pair();
  const std::int64_t fetch =
      machine.model(0).cu_code_fetch.fs - machine.model(0).sync_op_overhead.fs;
  for (const int count : {1, 3}) {
    program::Bound program = make(machine, {{copies(count)}, {}});
    const Result small = simulate(machine, program);
    program = program::changed(program, [&](auto& p) { p.kernels[0].large_code = true; });
    const Result large = simulate(machine, program);
    EXPECT_EQ(large.time.fs - small.time.fs, fetch);
  }
}

// What is fitted to a library is not the hardware's: it has a reason of its own.
TEST(Software, is_charged_with_large_code_and_with_gaps_between_calls) {
  const machine::Machine machine = pair();
  const std::int64_t fetch =
      machine.model(0).cu_code_fetch.fs - machine.model(0).sync_op_overhead.fs;
  for (const Engine engine : {Engine::reference, Engine::line, Engine::fluid}) {
    SCOPED_TRACE(name_of(engine));
    program::Bound program = make(machine, {{copies(3)}, {}});
    const Result small = simulate(machine, program, {.engine = engine});
    EXPECT_EQ(spent_on(small, 0, Reason::software), 0);
    program = program::changed(program, [&](auto& p) { p.kernels[0].large_code = true; });
    const Result large = simulate(machine, program, {.engine = engine});
    EXPECT_EQ(spent_on(large, 0, Reason::software), fetch);
    EXPECT_EQ(spent_on(large, 0, Reason::issue), spent_on(small, 0, Reason::issue));
    program = program::changed(program, [&](auto& p) { p.kernels[0].large_code = false; });
    const Options twice{.engine = engine, .warmup = 0, .iterations = 2};
    const Result plain = simulate(machine, program, twice);
    program = program::changed(program, [&](auto& p) { p.library_call = true; });
    const Result calls = simulate(machine, program, twice);
    EXPECT_GT(spent_on(calls, 0, Reason::software), Time::from_ns(1000).fs);
    EXPECT_NEAR(static_cast<double>(spent_on(calls, 0, Reason::software)),
                static_cast<double>((calls.time - plain.time).fs), 2)
        << "all that the library takes longer, to what a division leaves";
    EXPECT_EQ(sum(calls.attribution[0]), calls.time.fs);
  }
}

TEST(LargeCode, of_several_workgroups_is_fetched_one_after_the_other) {
  const auto time = [](const std::string& interval, bool connected) {
    const machine::Machine machine = distinct("ring:2", {{"gpu.cu.code_fetch_interval", interval}});
    program::Bound program = make(machine, {{copies(1), copies(1), copies(1)}, {}});
    program = program::changed(program, [&](auto& p) { p.kernels[0].large_code = true; });
    if (connected) program = program::changed(program, [](auto& p) { p.inbound = 1; });
    return simulate(machine, program).time.fs;
  };
  constexpr std::int64_t kMicrosecond = 1'000'000'000;
  EXPECT_NEAR(static_cast<double>(time("2 us", false) - time("0 ns", false)), 6. * kMicrosecond,
              .1 * kMicrosecond);
  EXPECT_EQ(time("2 us", true), time("0 ns", true)) << "no copy is large beside connections";
}

TEST(Posting, apart_lets_the_next_slice_go_on_during_a_fence) {
  const machine::Machine machine = machine::load("dgx-h100");
  const program::Program ring = program::load(
      "all-gather/ring",
      {.ranks = 2, .parameters = {{"channels", "1"}, {"threads", "512"}, {"piece", "2MiB"}}});
  program::Bound program = program::bind(ring, machine::share(machine), {.size = MiB(4)});
  const Result together = simulate(machine, program);
  program = program::changed(program, [](auto& p) {
    for (program::Kernel& kernel : p.kernels) {
      kernel.threads += 32;
      kernel.posts_apart = true;
    }
  });
  const Result apart = simulate(machine, program);
  EXPECT_LT(apart.time, together.time);
  EXPECT_GE(apart.time, apart.bound.time());
}

// A fence for a NIC and one for a peer, of different wavefronts, would wait for the same stores at
// once: the last one forgot the first, and a ring over two nodes stood still.
TEST(Posting, apart_is_done_by_one_wavefront_for_peers_and_for_nics) {
  const machine::Machine machine = machine::load("dgx-h100:2");
  program::Program ring = program::load(
      "all-reduce/ring", {.ranks = 16, .parameters = {{"channels", "1"}, {"piece", "1KiB"}}});
  for (program::Kernel& kernel : ring.kernels) kernel.posts_apart = true;
  const program::Bound program = program::bind(ring, machine::share(machine), {.size = KiB(128)});
  const Result line = simulate(machine, program);
  const Result reference = simulate(machine, program, {.engine = Engine::reference});
  EXPECT_EQ(line.time, reference.time);
  EXPECT_GE(line.time, line.bound.time());
  const Result fluid = simulate(machine, program, {.engine = Engine::fluid});
  EXPECT_NEAR(fluid.time.ns() / line.time.ns(), 1, 0.15);
}

}  // namespace
}  // namespace hemiola::sim
