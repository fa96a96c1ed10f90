// Launches, streams, dispatch, repetitions, host proxies and copy engines.

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;
using program::StreamItem;

Op busy(Time duration) {
  Op op{.kind = OpKind::compute};
  op.duration = duration;
  return op;
}
/// A kernel of one workgroup, from its start to the release of its stream.
std::int64_t kernel(const Costs& c, Time duration) {
  return c.gpu.dispatch_latency.fs + c.overhead() + duration.fs + c.end();
}

TEST(Dispatch, workgroups_start_one_interval_apart) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.cu.count", "8"}});
  const Costs c(machine);
  const Ops ops = {busy(Time::from_us(2))};
  const Result result = run(machine, {{ops, ops, ops, ops}, {}});
  EXPECT_EQ(result.time.fs, c.gpu.launch_stream_latency.fs + 3 * c.gpu.dispatch_interval.fs +
                                kernel(c, Time::from_us(2)));
}

TEST(Dispatch, a_workgroup_without_room_starts_when_another_ends) {
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.cu.count", "2"}, {"gpu.cu.max_workgroups", "1"}});
  const Costs c(machine);
  const Ops ops = {busy(Time::from_us(2))};
  const Result result = run(machine, {{ops, ops, ops, ops, ops}, {}});
  const std::int64_t each = kernel(c, Time::from_us(2)) - c.end();
  EXPECT_EQ(result.time.fs, c.gpu.launch_stream_latency.fs + 3 * each + c.end());
}

TEST(Dispatch, threads_limit_the_workgroups_of_a_unit) {
  // Room for two workgroups of 32 threads: the third begins when the shorter one of the first two
  // ends.
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.cu.count", "1"}, {"gpu.cu.max_threads", "64"}});
  const Costs c(machine);
  const Result result =
      run(machine,
          {{{busy(Time::from_us(1))}, {busy(Time::from_us(5))}, {busy(Time::from_us(2))}}, {}});
  // The unit itself is shared: 1 us, then 5 us, then the 2 us that were asked for in the meantime.
  const std::int64_t first = c.start() + c.overhead() + Time::from_us(1).fs;
  EXPECT_EQ(result.time.fs, first + Time::from_us(5 + 2).fs + c.end());
  const machine::Machine narrow =
      distinct("ring:2", {{"gpu.cu.count", "1"}, {"gpu.cu.max_threads", "32"}});
  const Result alone = run(
      narrow, {{{busy(Time::from_us(1))}, {busy(Time::from_us(5))}, {busy(Time::from_us(2))}}, {}});
  EXPECT_EQ(alone.time.fs, c.gpu.launch_stream_latency.fs + 3 * (kernel(c, Time{0}) - c.end()) +
                               Time::from_us(8).fs + c.end());
}

TEST(Dispatch, parts_of_a_block_start_together_on_one_unit) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.cu.count", "8"}});
  const Costs c(machine);
  const Ops ops = {busy(Time::from_us(2))};
  program::Bound program = make(machine, {{ops, ops, ops, ops}, {}});
  program = program::changed(program, [&](auto& p) { p.kernels[0].blocks = {0, 0, 0, 1}; });
  // One interval for two blocks; three parts compute one after the other.
  EXPECT_EQ(simulate(machine, program, {}).time.fs,
            c.gpu.launch_stream_latency.fs + kernel(c, Time::from_us(3 * 2)));
  const machine::Machine narrow =
      distinct("ring:2", {{"gpu.cu.count", "2"}, {"gpu.cu.max_workgroups", "2"}});
  program = program::changed(program, [&](auto& p) {
    p.kernels[0].blocks = {0, 1, 1, 2};
  });  // the last one finds the place of the first
  EXPECT_EQ(
      simulate(narrow, program, {}).time.fs,
      c.gpu.launch_stream_latency.fs + c.gpu.dispatch_interval.fs + kernel(c, Time::from_us(2 * 2)))
      << "which is done before the second one is";
}

/// Rank 0 runs these streams; kernel 0 computes for `duration`.
Result run_streams(const machine::Machine& machine, std::vector<program::Stream> streams,
                   Time duration, const Options& options = {}) {
  program::Bound program = make(machine, {{{busy(duration)}}, {}});
  program = program::changed(program, [&](auto& p) { p.codes[0].streams = std::move(streams); });
  return simulate(machine, program, options);
}
constexpr StreamItem kKernel{};
constexpr StreamItem kRecord{.kind = StreamItem::Kind::event_record, .index = 0, .duration = {}};
constexpr StreamItem kAwait{.kind = StreamItem::Kind::event_wait, .index = 0, .duration = {}};

TEST(Streams, kernels_of_a_stream_start_no_sooner_than_their_interval) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  for (const Time duration : {Time::from_ns(100), Time::from_us(7)}) {
    const std::int64_t each = kernel(c, duration);
    for (const Launch launch : {Launch::stream, Launch::graph}) {
      const bool graph = launch == Launch::graph;
      const std::int64_t begin =
          graph ? c.gpu.launch_graph_latency.fs : c.gpu.launch_stream_latency.fs;
      const std::int64_t interval =
          graph ? c.gpu.launch_graph_interval.fs : c.gpu.launch_stream_interval.fs;
      const Result result =
          run_streams(machine, {{kKernel, kKernel, kKernel}}, duration, {.launch = launch});
      EXPECT_EQ(result.time.fs, begin + 2 * std::max(each, interval) + each);
    }
  }
}

TEST(Streams, an_event_holds_another_stream_back) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Time duration = Time::from_us(2);
  // Either order of the streams: the wait may come before the record or after it.
  for (const bool waits_first : {false, true}) {
    std::vector<program::Stream> streams = {{kKernel, kRecord}, {kAwait, kKernel}};
    if (waits_first) std::swap(streams[0], streams[1]);
    const Result result = run_streams(machine, streams, duration);
    EXPECT_EQ(result.time.fs, c.gpu.launch_stream_latency.fs + 2 * kernel(c, duration));
  }
}

TEST(Streams, a_host_function_takes_its_duration) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const StreamItem host{.kind = StreamItem::Kind::host, .index = 0, .duration = Time::from_us(9)};
  const Result result = run_streams(machine, {{host, kKernel}}, Time::from_us(2));
  EXPECT_EQ(result.time.fs,
            c.gpu.launch_stream_latency.fs + Time::from_us(9).fs + kernel(c, Time::from_us(2)));
}

TEST(Iterations, the_time_is_the_period_after_the_warm_up) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  // A repetition follows the last by 1 fs (no arrival at t creates another at t), but no sooner
  // than the launch interval.
  for (const Time duration : {Time::from_ns(100), Time::from_us(7)}) {
    const std::int64_t period = std::max(kernel(c, duration) + 1, c.gpu.launch_stream_interval.fs);
    const Result result =
        run_streams(machine, {{kKernel}}, duration, {.warmup = 2, .iterations = 5});
    EXPECT_EQ(result.time.fs, period);
    EXPECT_EQ(sum(result.attribution[0]), period);
  }
}

TEST(Iterations, caches_stay_warm) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.l2.size", "16 KiB"}});
  const Ops ops = {transfer(OpKind::copy, {at(0, kInput)}, {})};
  const Result cold = run(machine, {{ops}, {}}, {}, {.iterations = 1});
  const Result warm = run(machine, {{ops}, {}}, {}, {.warmup = 1, .iterations = 4});
  EXPECT_EQ(cold.counters.at("l2.misses"), 1);
  EXPECT_EQ(warm.counters.at("l2.misses"), 1);
  EXPECT_EQ(warm.counters.at("l2.hits"), 4);
}

TEST(Iterations, semaphores_and_barriers_count_on) {
  const machine::Machine machine = distinct("ring:2");
  Op barrier{.kind = OpKind::barrier};
  barrier.workgroups = 2;
  const std::vector<std::vector<Ops>> bodies = {{{signal(1), wait(0), barrier}, {barrier}},
                                                {{wait(1), signal(0)}}};
  const Result result = run(machine, bodies, {}, {.warmup = 3, .iterations = 4});
  EXPECT_EQ(result.counters.at("requests.flags"), 7 * (2 + 2));
}

// The bound is of a whole repetition; a rank that polls seldom ends those that warm up when the
// other one has already sent what it will find in the first measured one.
TEST(Iterations, may_be_shorter_than_the_bound_of_one_where_ranks_are_ahead) {
  const machine::Machine machine = distinct(
      "ring:2", {{"link.link.bandwidth", "10 MB/s"}, {"gpu.sync.poll_interval", "100 us"}});
  const std::vector<std::vector<Ops>> bodies = {
      {{wait(0)}}, {{transfer(OpKind::put, {at(1, kInput)}, {at(0, kOutput)}), sync(), signal(0)}}};
  const Result result = run(machine, bodies, {}, {.warmup = 1, .iterations = 1});
  EXPECT_LT(result.time, result.bound.time());
  EXPECT_GE(run(machine, bodies, {}, {.iterations = 1}).time, result.bound.time());
}

// --- Proxy, copy engine, NIC.

/// Four KiB in bursts of one KiB by rank 0 to rank 1, awaited with a flush.
constexpr std::int64_t kBurst = 1024, kBursts = 4;
std::vector<std::vector<Ops>> posted() {
  Op op = through_port(transfer(OpKind::put_signal_flush, {at(0, kInput)}, {at(1, kOutput)}));
  op.semaphores = {{constant(1), 0}};
  return {{{op}}, {}};
}
Shape four_bursts() {
  return {.chunk_bytes = kBurst * kBursts};
}
/// From t = 0 to the engine's first burst.
std::int64_t to_engine(const Costs& c, Time request, std::int64_t start_latency) {
  return c.start() + c.overhead() + c.gpu.sync_fence_latency.fs + c.gpu.proxy_fifo_latency.fs +
         request.fs + start_latency;
}
/// A burst in memory, read or written.
Stream& in_memory(Stream& s, const Costs& c, bool read) {
  s.serve(c.gpu.l2_slice_rate.time_for(kBurst).fs).after(c.gpu.l2_latency.fs);
  return s.serve(c.hbm(kBurst)).after(read ? c.gpu.hbm_latency.fs : 0);
}
Stream& port(Stream& s, const Costs& c, std::int64_t payload) {
  return s.serve(c.io(payload) - c.gpu.noc_io_latency.fs).after(c.gpu.noc_io_latency.fs);
}

TEST(CopyEngine, bursts_follow_each_other_and_the_flush_returns_after_the_last) {
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.dma.burst", "1 KiB"}, {"gpu.dma.max_payload", "512 B"}});
  const Costs c(machine);
  const Result result = run(machine, posted(), four_bursts());
  Stream s(kBursts, to_engine(c, c.gpu.proxy_request_time,
                              c.gpu.dma_control_latency.fs + c.gpu.dma_schedule_latency.fs));
  s.serve(c.gpu.dma_rate.time_for(kBurst).fs);
  port(in_memory(s, c, true), c, kBurst);
  s.serve(c.wire.bandwidth.time_for(kBurst + 2 * c.wire.header.count).fs).after(c.wire.latency.fs);
  port(in_memory(port(s, c, kBurst), c, false), c, 0);
  port(s.serve(c.serial(0)).after(c.wire.latency.fs), c, 0).after(c.noc());
  const std::int64_t done = s.last() + c.gpu.dma_sync_latency.fs;
  EXPECT_EQ(result.time.fs, done + c.gpu.proxy_return_latency.fs + c.end());
  EXPECT_EQ(result.counters.at("requests.bursts"), kBursts);
  EXPECT_EQ(result.counters.at("stores.injected_bytes"), kBurst * kBursts);
  EXPECT_EQ(result.counters.at("stores.delivered_bytes"), kBurst * kBursts);
}

TEST(CopyEngine, one_burst_in_flight_makes_a_round_trip_each) {
  const machine::Machine machine = distinct(
      "ring:2",
      {{"gpu.dma.burst", "1 KiB"}, {"gpu.dma.max_payload", "512 B"}, {"gpu.dma.outstanding", "1"}});
  const Costs c(machine);
  const Result result = run(machine, posted(), four_bursts());
  const std::int64_t trip =
      c.gpu.dma_rate.time_for(kBurst).fs + c.slice(kBurst) + c.read(kBurst) + 2 * c.io(kBurst) +
      c.wire.bandwidth.time_for(kBurst + 2 * c.wire.header.count).fs + c.wire.latency.fs +
      c.slice(kBurst) + c.hbm(kBurst) + 2 * c.io(0) + c.link(0) + c.noc();
  EXPECT_EQ(result.time.fs,
            to_engine(c, c.gpu.proxy_request_time,
                      c.gpu.dma_control_latency.fs + c.gpu.dma_schedule_latency.fs) +
                kBursts * trip + c.gpu.dma_sync_latency.fs + c.gpu.proxy_return_latency.fs +
                c.end());
}

TEST(CopyEngine, its_flag_follows_the_completion) {
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.dma.burst", "1 KiB"}, {"gpu.sync.poll_interval", "99991 ns"}});
  const Costs c(machine);
  auto bodies = posted();
  const Result sender = run(machine, bodies, four_bursts());
  bodies[1] = {{wait(1)}};
  const Result result = run(machine, bodies, four_bursts());
  EXPECT_EQ(result.rank_end[0], sender.rank_end[0]);
  const std::int64_t done = sender.rank_end[0].fs - c.gpu.proxy_return_latency.fs - c.end();
  const std::int64_t flag = done + 2 * c.io(32) + c.link(32);
  // One poll too early, one that sees it.
  const std::int64_t first = c.start() + c.overhead() + c.issue() + c.cu(0) + c.noc();
  const std::int64_t rest = c.slice(32) + c.read(32) + c.cu(32) + c.noc();
  const std::int64_t period = rest + c.gpu.sync_poll_interval.fs + c.issue() + c.cu(0) + c.noc();
  ASSERT_LT(flag, first + period);
  EXPECT_EQ(result.rank_end[1].fs, first + period + rest + c.end());
}

TEST(CopyEngine, what_nobody_waits_for_still_arrives) {
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.dma.burst", "1 KiB"}, {"link.link.credits", "1"}});
  const Costs c(machine);
  const Op op = through_port(transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)}));
  const Result result = run(machine, {{{op}}, {}}, four_bursts());
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.gpu.sync_fence_latency.fs + c.end());
  EXPECT_EQ(result.counters.at("stores.injected_bytes"), kBurst * kBursts);
  EXPECT_EQ(result.counters.at("stores.delivered_bytes"), kBurst * kBursts);
  EXPECT_EQ(result.counters.at("credits.taken"), result.counters.at("credits.returned"));
}

TEST(Proxy, requests_are_served_one_after_the_other) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.dma.engines", "2"}});
  const Costs c(machine);
  // Two workgroups post one signal each at nearly the same time, and wait for it to be done.
  Op op = through_port(flag(OpKind::signal, 1, 0));
  const Ops ops = {op, {.kind = OpKind::flush}};
  const Result result = run(machine, {{ops, ops}, {}});
  // The engine starts both one after the other too: 1718 ns each, far more than the proxy's 307 ns.
  const std::int64_t engine = c.gpu.dma_control_latency.fs + c.gpu.dma_schedule_latency.fs;
  EXPECT_EQ(result.time.fs, to_engine(c, c.gpu.proxy_request_time, engine) + engine +
                                c.gpu.proxy_return_latency.fs + c.end());
}

TEST(Nic, a_message_travels_as_packets_of_its_mtu) {
  const machine::Machine machine = distinct("clos:1x1x2", {{"switch.latency", "97 ns"},
                                                           {"nic.mtu", "1 KiB"},
                                                           {"nic.message_time", "751 ns"},
                                                           {"nic.latency", "303 ns"},
                                                           {"nic.rate", "6 GB/s"}});
  const Costs c(machine);
  const Result result = run(machine, posted(), four_bursts());
  const std::int64_t nic = Time::from_ns(303).fs;
  Stream s(kBursts, to_engine(c, c.gpu.proxy_network_time, Time::from_ns(751).fs));
  s.serve(Rate{6'000'000'000}.time_for(kBurst).fs);
  port(in_memory(s, c, true), c, kBurst);
  const std::int64_t wire = c.wire.bandwidth.time_for(kBurst + c.wire.header.count).fs;
  s.serve(wire)
      .after(c.wire.latency.fs + nic)
      .serve(wire)
      .after(c.wire.latency.fs + c.switches.latency.fs);
  s.serve(wire).after(c.wire.latency.fs + nic).serve(wire).after(c.wire.latency.fs);
  port(in_memory(port(s, c, kBurst), c, false), c, 0);
  s.serve(c.serial(0))
      .after(c.wire.latency.fs + nic)
      .serve(c.serial(0))
      .after(c.wire.latency.fs + c.switches.latency.fs);
  s.serve(c.serial(0)).after(c.wire.latency.fs + nic).serve(c.serial(0)).after(c.wire.latency.fs);
  port(s, c, 0).after(c.noc());
  EXPECT_EQ(result.time.fs, s.last() + nic + c.gpu.proxy_return_latency.fs + c.end());
  EXPECT_EQ(result.counters.at("requests.bursts"), kBursts);
}

// --- Queues of copies.

/// Rank 0 gives its copy engines these operations, and runs these workgroups beside them.
Result run_queue(const machine::Machine& machine, const Ops& copies,
                 const std::vector<Ops>& workgroups = {}) {
  program::Bound program = make(machine, {workgroups, {}}, {.chunk_bytes = 4096, .chunks = 2});
  program = program::changed(program, [&](auto& p) {
    p.codes[0].streams.push_back(
        {{.kind = StreamItem::Kind::engine, .index = static_cast<std::int32_t>(p.bodies.size())}});
    p.bodies.push_back({copies});
  });
  return simulate(machine, program);
}

TEST(CopyQueue, does_one_copy_after_the_other) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Op copy = transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)});
  const std::int64_t launch = c.gpu.launch_stream_latency.fs;
  const std::int64_t one = run_queue(machine, {copy}).time.fs - launch;
  EXPECT_GT(one, c.gpu.dma_control_latency.fs + c.gpu.dma_schedule_latency.fs +
                     c.gpu.dma_sync_latency.fs + c.serial(4096));
  EXPECT_EQ(run_queue(machine, {copy, copy, copy}).time.fs, launch + 3 * one);
}

TEST(CopyQueue, waits_for_the_flag_of_a_workgroup_and_sets_one_behind_its_copies) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Op copy = transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)});
  const std::int64_t alone = run_queue(machine, {copy}).time.fs;
  const Time late = Time::from_us(50);
  const Result result = run_queue(machine, {wait(0, 0), copy, signal(0, 1)},
                                  {{busy(late), signal(0, 0), wait(0, 1)}});
  // The flag starts the copy, and the kernel ends when it has seen that the copy is done.
  const std::int64_t copied = alone - c.gpu.launch_stream_latency.fs;
  EXPECT_GT(result.time.fs, c.start() + late.fs + copied + c.end());
  EXPECT_LT(result.time.fs, c.start() + late.fs + copied + c.end() + Time::from_us(5).fs);
}

TEST(CopyQueue, that_waits_for_nobody_is_a_deadlock) {
  const machine::Machine machine = distinct("ring:2");
  try {
    run_queue(machine, {wait(0, 0)});
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    EXPECT_NE(std::string(failure.what()).find("copy queue of rank 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace hemiola::sim
