// Wavefronts: unrolling, slots for outstanding requests, reductions, packets, barriers.

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// Wavefronts of 8 threads: one line per iteration. All parts pass a line per femtosecond, so that
/// only issue and latency count.
machine::Machine pipelined(Settings more) {
  more.emplace_back("gpu.cu.wavefront_size", "8");
  more.emplace_back("gpu.cu.issue_interval", "1 ns");
  more.emplace_back("gpu.noc.latency", "100 ns");
  return ideal("ring:2", more);
}
Shape lines_of_threads(std::int64_t count) {
  return {.chunk_bytes = count * kLine, .threads = 8};
}

TEST(Wavefronts, unrolling_pays_the_latency_once_a_batch) {
  for (const std::int64_t unroll : {1, 2, 4, 16, 64}) {
    const machine::Machine machine = pipelined({{"gpu.cu.unroll", std::to_string(unroll)}});
    const Costs c(machine);
    const Result result =
        run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}}, lines_of_threads(16));
    const std::int64_t in_batch = std::min<std::int64_t>(unroll, 16);
    const std::int64_t batch =
        in_batch * c.issue() + (c.local_load(kLine) - c.issue()) + in_batch * c.issue();
    EXPECT_EQ(result.time.fs,
              c.start() + 16 / in_batch * batch + (c.local_store(kLine) - c.issue()) + c.end())
        << unroll << " iterations at a time";
  }
}

/// Departures of `count` requests that all want to issue at `begin`, where a slot is taken from the
/// issue to the completion one round trip later.
std::vector<std::int64_t> issued(std::int64_t count, std::int64_t begin, std::int64_t interval,
                                 std::int64_t round_trip, std::int64_t slots) {
  std::vector<std::int64_t> out;
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t start = out.empty() ? begin : out.back();
    if (slots > 0 && k >= slots)
      start = std::max(start, out[static_cast<std::size_t>(k - slots)] + round_trip);
    out.push_back(start + interval);
  }
  return out;
}

TEST(Wavefronts, loads_in_flight_are_limited_and_saturate) {
  std::int64_t best = INT64_MAX;
  for (const std::int64_t slots : {1, 3, 10, 64, 500, 0}) {
    const machine::Machine machine = pipelined({{"gpu.cu.max_outstanding", std::to_string(slots)}});
    const Costs c(machine);
    const Result result =
        run(machine, {{{transfer(OpKind::copy, {at(0, kInput)}, {})}}, {}}, lines_of_threads(600));
    const std::int64_t round_trip = c.local_load(kLine) - c.issue();
    const std::int64_t last =
        issued(600, c.start(), c.issue(), round_trip, slots).back() + round_trip;
    EXPECT_EQ(result.time.fs, last + c.end()) << slots << " loads";
    best = std::min(best, result.time.fs);
    // 200 ns at one load a nanosecond: more than about 200 loads do not help.
    if (slots == 500 || slots == 0) {
      EXPECT_EQ(result.time.fs, best);
    }
  }
}

TEST(Wavefronts, stores_in_flight_are_limited) {
  for (const std::int64_t slots : {1, 7, 90, 0}) {
    machine::Machine machine = pipelined({});
    machine.models[0].cu_max_stores = slots;
    const Costs c(machine);
    const Result result =
        run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}}, lines_of_threads(200));
    const std::int64_t loaded = c.start() + 200 * c.issue() + (c.local_load(kLine) - c.issue());
    const std::int64_t round_trip = c.local_store(kLine) - c.issue();
    EXPECT_EQ(result.time.fs,
              issued(200, loaded, c.issue(), round_trip, slots).back() + round_trip + c.end())
        << slots << " stores";
  }
}

TEST(Wavefronts, what_a_unit_loads_from_peers_and_stores_to_them_keeps_to_a_rate) {
  const auto time = [](const std::string& rate, int from, int to) {
    const machine::Machine machine =
        pipelined({{"gpu.cu.peer_rate", rate}, {"gpu.cu.unroll", "16"}});
    return run(machine, {{{copy(at(from, kInput), at(to, kOutput))}}, {}}, lines_of_threads(16))
        .time.fs;
  };
  // 4 ns a line where one is issued every nanosecond: all but the first wait 3 ns each.
  constexpr std::int64_t kWait = 15 * 3'000'000;
  EXPECT_EQ(time("32 GB/s", 1, 0) - time("inf", 1, 0), kWait);
  EXPECT_EQ(time("32 GB/s", 0, 1) - time("inf", 0, 1), kWait);
  EXPECT_EQ(time("32 GB/s", 0, 0), time("inf", 0, 0));
}

TEST(Wavefronts, memory_beside_packets_takes_an_instruction_for_every_few_bytes) {
  // Threads own 8 B each: two loads of 4 B, eight stores of 1 B where one would do. A line of 64 B
  // takes 1 ns at the port of the unit again.
  const machine::Machine machine =
      pipelined({{"gpu.noc.cu_rate", "64 GB/s"}, {"gpu.cu.unroll", "8"}});
  const auto time = [&](const Op& op, std::int32_t load, std::int32_t store) {
    program::Bound program = make(machine, {{{op}}, {}}, {.chunk_bytes = 8 * 64, .threads = 8});
    program = program::changed(program, [&](auto& p) { p.kernels[0].load_bytes = load; });
    program = program::changed(program, [&](auto& p) { p.kernels[0].store_bytes = store; });
    return simulate(machine, program).time.fs;
  };
  const Op packed = transfer(OpKind::copy_packets, {at(0, kInput)}, {packets(0)});
  const Op plain = copy(at(0, kInput), at(0, kOutput));
  EXPECT_EQ(time(packed, 4, 0) - time(packed, 0, 0), 7 * 1'000'000);
  EXPECT_EQ(time(packed, 8, 1), time(packed, 0, 0)) << "packets themselves are whole";
  EXPECT_EQ(time(plain, 4, 1), time(plain, 0, 0));
}

TEST(Wavefronts, a_load_behind_a_store_without_a_slot_waits_too) {
  // Two stores, one slot: the load of the next operation stands behind the second store.
  machine::Machine machine = pipelined({});
  machine.models[0].cu_max_stores = 1;
  const Costs c(machine);
  const Result result = run(
      machine,
      {{{copy(at(0, kInput), at(0, kOutput)), transfer(OpKind::copy, {at(0, kScratch)}, {})}}, {}},
      lines_of_threads(2));
  const std::int64_t loaded = c.start() + c.issue() + c.local_load(kLine);
  const std::int64_t second =
      loaded + c.local_store(kLine) + c.issue();  // departure of the second store
  EXPECT_EQ(result.time.fs, second + c.issue() + c.local_load(kLine) + c.end());
}

TEST(Wavefronts, a_reduction_takes_all_sources_but_one_through_the_unit) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result =
      run(machine,
          {{{transfer(OpKind::reduce, {at(0, kInput, 0), at(0, kInput, 1), at(0, kInput, 2)},
                      {at(0, kOutput)})}},
           {}},
          {.chunk_bytes = kLine, .chunks = 3});
  Stream loads(3, c.start() + c.overhead());
  loads.serve(c.issue()).serve(c.cu(0)).after(c.noc());
  loads.serve(c.gpu.l2_slice_rate.time_for(kLine).fs).after(c.gpu.l2_latency.fs);
  loads.serve(c.hbm(kLine)).after(c.gpu.hbm_latency.fs).serve(c.cu(kLine)).after(c.noc());
  const std::int64_t reduce = c.gpu.cu_reduce_rate_4byte.time_for(2 * kLine).fs;
  EXPECT_EQ(result.time.fs, loads.last() + reduce + c.local_store(kLine) + c.end());
  EXPECT_EQ(spent_on(result, 0, Reason::compute), reduce);
}

TEST(Wavefronts, wavefronts_of_a_unit_share_its_reduction_rate) {
  // Two wavefronts of 8 threads, one line each; their loads come together within nanoseconds.
  const machine::Machine machine =
      pipelined({{"gpu.cu.reduce_rate_4byte", "1 GB/s"}, {"gpu.sync.barrier_latency", "9 ns"}});
  const Costs c(machine);
  const Ops ops = {transfer(OpKind::reduce, {at(0, kInput), at(0, kScratch)}, {at(0, kOutput)})};
  const Result result = run(machine, {{ops}, {}}, {.chunk_bytes = 2 * kLine, .threads = 16});
  // The first has its two lines after two issues; the unit is then busy for 2 x 128 B.
  const std::int64_t first = c.start() + c.issue() + c.local_load(kLine);
  const std::int64_t both = first + 2 * c.gpu.cu_reduce_rate_4byte.time_for(kLine).fs;
  EXPECT_EQ(result.time.fs, both + c.local_store(kLine) + c.end());
}

TEST(Wavefronts, a_sync_releases_all_when_the_last_has_come) {
  // Lines 0 and 1 are moved by wavefront 0 and 1; a second copy follows the sync.
  const machine::Machine machine = pipelined({{"gpu.sync.barrier_latency", "9 ns"}});
  const Costs c(machine);
  const Ops ops = {copy(at(0, kInput), at(0, kOutput)), sync(),
                   copy(at(0, kOutput), at(0, kScratch))};
  const Result result = run(machine, {{ops}, {}}, {.chunk_bytes = 2 * kLine, .threads = 16});
  // Wavefront 1 issues its load 1 ns after wavefront 0, and its store 1 ns after the load's return.
  const std::int64_t joined =
      c.start() + c.issue() + c.local_load(kLine) + c.issue() + c.gpu.sync_barrier_latency.fs;
  EXPECT_EQ(result.time.fs,
            joined + c.issue() + c.local_load(kLine) + c.local_store(kLine) + c.end());
  EXPECT_EQ(spent_on(result, 0, Reason::barrier), c.gpu.sync_barrier_latency.fs);
}

TEST(Packets, a_reader_sees_a_packet_with_the_first_load_after_it_has_come) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.sync.poll_interval", "977 ns"}});
  const Costs c(machine);
  // 64 B of data are one line of packets. It comes 100 ns after the return of the reader's 4th
  // load.
  const std::int64_t issue = c.start() + c.overhead();
  const std::int64_t first = issue + c.issue() + c.cu(0) + c.noc();
  const std::int64_t rest = c.slice(kLine) + c.read(kLine) + c.cu(kLine) + c.noc();
  const std::int64_t period = rest + c.gpu.sync_poll_interval.fs + c.issue() + c.cu(0) + c.noc();
  const std::int64_t travel = issue + c.local_load(64) + c.to_remote_slice(kLine, c.link(kLine));
  const std::int64_t failed = 4;
  const std::int64_t arrival = first + (failed - 1) * period + rest + Time::from_ns(100).fs;
  ASSERT_GT(arrival, travel);
  const Result result = run(machine,
                            {{{transfer(OpKind::put_packets, {at(0, kInput)}, {packets(1)})}},
                             {{transfer(OpKind::unpack_packets, {packets(1)}, {at(1, kOutput)})}}},
                            {.chunk_bytes = 64}, {.skew = {Time{arrival - travel}}});
  EXPECT_EQ(result.rank_end[1].fs, first + failed * period + rest + c.local_store(64) + c.end());
  EXPECT_EQ(result.counters.at("requests.packet_retries"), failed);
  EXPECT_EQ(result.counters.at("stores.delivered_bytes"), kLine) << "flags travel with the data";
  EXPECT_GT(spent_on(result, 1, Reason::skew), 0) << "its wait is charged to the sender";
}

TEST(Packets, ll128_moves_120_bytes_of_data_in_a_line) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  Operand to = at(1, kScratch);
  to.access = Access::ll128;
  Shape shape{.chunk_bytes = 240};
  const program::Bound program =
      make(machine, {{{transfer(OpKind::put, {at(0, kInput)}, {to})}}, {}}, shape);
  const Result result = simulate(machine, program);
  EXPECT_EQ(result.links.at(0).payload_bytes, 2 * kLine);
  EXPECT_EQ(result.counters.at("stores.delivered_bytes"), 2 * kLine);
}

TEST(Packets, lamport_data_are_their_own_flag) {
  const machine::Machine machine = distinct("ring:2");
  const Operand slot = packets(1, 0, Access::lamport);
  const Result result = run(machine,
                            {{{transfer(OpKind::copy_packets, {at(0, kInput)}, {slot})}},
                             {{transfer(OpKind::reduce_packets, {slot}, {at(1, kOutput)}),
                               transfer(OpKind::clear, {}, {slot})}}},
                            {.chunk_bytes = 2 * kLine}, {.skew = {Time::from_us(20)}});
  EXPECT_EQ(result.links.at(0).payload_bytes, 2 * kLine) << "one byte of memory per byte";
  EXPECT_GT(result.counters.at("requests.packet_retries"), 0) << "the reader was there first";
  EXPECT_EQ(result.counters.at("stores.delivered_bytes"), 2 * kLine) << "clearing is local";
}

TEST(Packets, halves_of_a_doubled_buffer_may_meet_inside_a_line) {
  const machine::Machine machine = distinct("ring:2");
  // 32 B of data are 64 B of packets: both halves are one line. The writer is two repetitions ahead
  // when the reader begins.
  program::Bound program =
      make(machine,
           {{{transfer(OpKind::put_packets, {at(0, kInput)}, {packets(1)})}},
            {{transfer(OpKind::unpack_packets, {packets(1)}, {at(1, kOutput)})}}},
           {.chunk_bytes = 32});
  program = program::changed(program, [&](auto& p) { p.buffers[kScratch].rotation = 2; });
  const Result result =
      simulate(machine, program, {.iterations = 2, .skew = {Time{0}, Time::from_us(90)}});
  EXPECT_EQ(result.counters.at("requests.packet_retries"), 0);
  EXPECT_EQ(result.counters.at("requests.loads"), 4);
}

// docs/model.md: "sync; count on a semaphore in the L2; poll it; sync".
TEST(Barrier, the_last_workgroup_releases_those_that_poll) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  Op barrier{.kind = OpKind::barrier};
  barrier.workgroups = 2;
  const Result result = run(machine, {{{barrier}, {barrier}}, {}});
  struct Step {
    std::int64_t flag, poll, back;
  };
  const auto step = [&](std::int64_t workgroup) {
    const std::int64_t begin = c.start() + workgroup * c.gpu.dispatch_interval.fs +
                               c.gpu.sync_barrier_latency.fs + c.overhead() +
                               c.gpu.sync_fence_latency.fs;
    Step s{};
    s.flag = begin + c.issue() + c.cu(kSector) + c.noc();
    s.poll = begin + 2 * c.issue() + c.cu(0) + c.noc();  // the poll is issued behind the flag
    const std::int64_t counted = s.flag + c.gpu.l2_atomic_time.fs;
    const std::int64_t look_up = std::max(s.poll, counted) + c.slice(kSector);
    const std::int64_t written = counted + c.gpu.l2_latency.fs + c.hbm(kSector);
    s.back = std::max(look_up, written) + c.read(kSector) + c.cu(kSector) + c.noc();
    return s;
  };
  const Step first = step(0), second = step(1);
  ASSERT_LT(first.poll, second.flag) << "the first poll of workgroup 0 comes too early";
  ASSERT_LT(first.flag + c.gpu.l2_atomic_time.fs + c.slice(kSector) - c.gpu.l2_latency.fs,
            second.flag);
  const std::int64_t again =
      first.back + c.gpu.sync_poll_interval.fs + c.issue() + c.cu(0) + c.noc();
  const std::int64_t seen = again + c.slice(kSector) + c.read(kSector) + c.cu(kSector) + c.noc();
  EXPECT_EQ(result.time.fs, seen + c.gpu.sync_barrier_latency.fs + c.end());
  EXPECT_EQ(result.counters.at("requests.polls"), 3);
}

}  // namespace
}  // namespace hemiola::sim
