// One request alone on its way, exact to the femtosecond: docs/model.md, "Requests".

#include <gtest/gtest.h>

#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

TEST(OneRequest, a_local_copy_is_one_load_and_one_acknowledged_store) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result = run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}});
  EXPECT_EQ(result.rank_end[0].fs,
            c.start() + c.overhead() + c.local_load(kLine) + c.local_store(kLine) + c.end());
  EXPECT_EQ(result.time, result.rank_end[0]);
  EXPECT_EQ(result.counters.at("requests.loads"), 1);
  EXPECT_EQ(result.counters.at("requests.stores"), 1);
  EXPECT_EQ(result.counters.at("hbm.read_bytes"), kLine);
  EXPECT_EQ(result.counters.at("hbm.written_bytes"), kLine);
}

TEST(OneRequest, a_rank_without_work_is_launched_and_released) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result = run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}});
  EXPECT_EQ(result.rank_end[1].fs, c.gpu.launch_stream_latency.fs + c.end());
}

TEST(OneRequest, a_partial_line_carries_whole_sectors) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result =
      run(machine, {{{copy(at(0, kInput), at(0, kOutput))}}, {}}, {.chunk_bytes = 48});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.local_load(2 * kSector) +
                                c.local_store(2 * kSector) + c.end());
}

TEST(OneRequest, a_remote_load_pays_every_server_there_and_back) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result =
      run(machine, {{{transfer(OpKind::get, {at(1, kInput)}, {at(0, kOutput)})}}, {}});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() +
                                c.remote_load(kLine, c.link(0), c.link(kLine)) +
                                c.local_store(kLine) + c.end());
}

TEST(OneRequest, a_remote_load_through_a_switch_pays_its_latency_twice) {
  const machine::Machine machine = distinct("switch:2");
  const Costs c(machine);
  const Result result =
      run(machine, {{{transfer(OpKind::get, {at(1, kInput)}, {at(0, kOutput)})}}, {}});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() +
                                c.remote_load(kLine, c.through_switch(0), c.through_switch(kLine)) +
                                c.local_store(kLine) + c.end());
}

TEST(OneRequest, a_kernel_ends_with_the_acknowledgement_of_its_remote_store) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result =
      run(machine, {{{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)})}}, {}});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.local_load(kLine) +
                                c.remote_store(kLine, c.link(kLine), c.link(0)) + c.end());
  EXPECT_EQ(result.counters.at("stores.injected_bytes"), kLine);
  EXPECT_EQ(result.counters.at("stores.delivered_bytes"), kLine);
}

TEST(OneRequest, a_line_that_passes_through_a_gpu_pays_twice_its_io_latency) {
  const machine::Machine machine = distinct("mesh:1x3");
  const Costs c(machine);
  const std::int64_t there = 2 * c.link(kLine) + 2 * c.gpu.noc_io_latency.fs;
  const std::int64_t back = 2 * c.link(0) + 2 * c.gpu.noc_io_latency.fs;
  const Result result =
      run(machine, {{{transfer(OpKind::put, {at(0, kInput)}, {at(2, kOutput)})}}, {}, {}});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.local_load(kLine) +
                                c.remote_store(kLine, there, back) + c.end());
}

TEST(OneRequest, a_line_larger_than_a_packet_pays_a_header_for_each) {
  const machine::Machine machine = distinct("ring:2", {{"link.link.max_payload", "48 B"}});
  const Costs c(machine);
  const std::int64_t there = c.wire.bandwidth.time_for(kLine + 3 * 20).fs + c.wire.latency.fs;
  const Result result =
      run(machine, {{{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)})}}, {}});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + c.local_load(kLine) +
                                c.remote_store(kLine, there, c.link(0)) + c.end());
  EXPECT_EQ(result.links.at(0).wire_bytes, kLine + 3 * 20);
  EXPECT_EQ(result.links.at(1).wire_bytes, 20) << "the acknowledgement is one header";
}

TEST(OneRequest, another_l2_partition_costs_its_latency_each_way) {
  const machine::Machine near = distinct("ring:2", {{"gpu.noc.partition_latency", "211 ns"}});
  // CU 0 is in partition 0; with two slices the line decides (x mod 2 of the line's number).
  const machine::Machine far = distinct("ring:2", {{"gpu.noc.partition_latency", "211 ns"},
                                                   {"gpu.noc.partitions", "2"},
                                                   {"gpu.l2.slices", "2"},
                                                   {"gpu.hbm.channels", "1"}});
  const Shape two{.chunk_bytes = 128, .chunks = 2};
  const auto time = [&](const machine::Machine& machine, std::int64_t from, std::int64_t to) {
    return run(machine, {{{copy(at(0, kInput, from), at(0, kOutput, to))}}, {}}, two).time.fs;
  };
  // Line 0 is in slice 0, line 1 in slice 1. The output starts at 2 MiB, line 16384, whose folds by
  // 14 are odd: slices 1 and 0.
  const std::int64_t way = Time::from_ns(211).fs;
  EXPECT_EQ(time(near, 0, 0), time(near, 1, 1));
  EXPECT_EQ(time(far, 0, 1), time(near, 0, 1));
  EXPECT_EQ(time(far, 0, 0), time(near, 0, 0) + 2 * way) << "the store and its acknowledgement";
  EXPECT_EQ(time(far, 1, 0), time(near, 1, 0) + 4 * way) << "and the load";
}

// Without caches a poll reads the memory; the flag is seen by the first poll that the slice accepts
// after it accepted the flag.
struct Polling {
  explicit Polling(const Costs& c)
      : first(c.start() + c.overhead() + c.issue() + c.cu(0) + c.noc()),
        rest(c.slice(kSector) + c.read(kSector) + c.cu(kSector) + c.noc()),
        period(rest + c.gpu.sync_poll_interval.fs + c.issue() + c.cu(0) + c.noc()) {}
  std::int64_t first;   ///< acceptance of the first poll
  std::int64_t rest;    ///< from acceptance to the return
  std::int64_t period;  ///< between acceptances
  std::int64_t return_after(std::int64_t flag) const {
    const std::int64_t polls = flag < first ? 0 : (flag - first) / period + 1;
    return first + polls * period + rest;
  }
};

TEST(OneRequest, a_wait_ends_with_the_first_poll_after_the_flag) {
  // A gap between polls that is long against everything else keeps flag and polls apart.
  const machine::Machine machine = distinct("ring:2", {{"gpu.sync.poll_interval", "30011 ns"}});
  const Costs c(machine);
  const Polling poll(c);
  const std::int64_t flag = c.start() + c.overhead() + c.gpu.sync_fence_latency.fs +
                            c.to_remote_slice(kSector, c.link(kSector));
  ASSERT_GT(flag, poll.first + poll.rest) << "the first poll comes too early";
  const Result result = run(machine, {{{signal(1)}}, {{wait(1)}}});
  EXPECT_EQ(result.rank_end[1].fs, poll.return_after(flag) + c.end());
  // The sender ends with the acknowledgement of its flag.
  EXPECT_EQ(result.rank_end[0].fs, flag + c.gpu.l2_atomic_time.fs + c.gpu.l2_latency.fs +
                                       c.hbm(kSector) + c.io(0) + c.link(0) + c.io(0) + c.noc() +
                                       c.end());
  EXPECT_EQ(result.counters.at("requests.polls"), 2);
}

TEST(OneRequest, polls_repeat_one_interval_after_the_return_of_the_last) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.sync.poll_interval", "499 ns"}});
  const Costs c(machine);
  const Polling poll(c);
  // The receiver starts first and polls 20 times; the flag comes 100 ns after the return of a poll,
  // when slice and memory are idle.
  const std::int64_t travel = c.start() + c.overhead() + c.gpu.sync_fence_latency.fs +
                              c.to_remote_slice(kSector, c.link(kSector));
  const std::int64_t flag = poll.first + 19 * poll.period + poll.rest + Time::from_ns(100).fs;
  const std::int64_t later = flag - travel;
  const Result result = run(machine, {{{signal(1)}}, {{wait(1)}}}, {}, {.skew = {Time{later}}});
  EXPECT_EQ(result.rank_end[1].fs, poll.return_after(flag) + c.end());
  EXPECT_EQ(result.counters.at("requests.polls"), 21);
}

TEST(OneRequest, a_flag_that_is_there_already_costs_one_poll) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Polling poll(c);
  const std::int64_t late = Time::from_us(20).fs;
  const Result result =
      run(machine, {{{signal(1)}}, {{wait(1)}}}, {}, {.skew = {Time{0}, Time{late}}});
  EXPECT_EQ(result.rank_end[1].fs, late + poll.first + poll.rest + c.end());
  EXPECT_EQ(result.counters.at("requests.polls"), 1);
  EXPECT_EQ(spent_on(result, 1, Reason::skew), late);
}

TEST(OneRequest, a_release_waits_for_the_acknowledgement_then_for_the_fence) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.sync.poll_interval", "50021 ns"}});
  const Costs c(machine);
  const Result result =
      run(machine,
          {{{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)}), signal(1)}}, {{wait(1)}}});
  const std::int64_t issued = c.start() + c.overhead() + c.local_load(kLine);
  const std::int64_t acknowledged = issued + c.remote_store(kLine, c.link(kLine), c.link(0));
  const std::int64_t flag =
      acknowledged + c.gpu.sync_fence_latency.fs + c.to_remote_slice(kSector, c.link(kSector));
  EXPECT_EQ(result.rank_end[0].fs, flag + c.gpu.l2_atomic_time.fs + c.gpu.l2_latency.fs +
                                       c.hbm(kSector) + c.io(0) + c.link(0) + c.io(0) + c.noc() +
                                       c.end());
  EXPECT_EQ(result.rank_end[1].fs, Polling(c).return_after(flag) + c.end());
}

TEST(OneRequest, a_relaxed_signal_does_not_wait_for_stores) {
  const machine::Machine machine = distinct("ring:2");
  const Costs c(machine);
  const Result result = run(machine, {{{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)}),
                                        flag(OpKind::relaxed_signal, 1, 0)}},
                                      {}});
  // The flag is issued one operation after the store, follows it through every server, and is
  // never in its way: the first is longer everywhere.
  const std::int64_t issued =
      c.start() + c.overhead() + c.local_load(kLine) + c.issue() + c.overhead();
  EXPECT_EQ(result.rank_end[0].fs, issued + c.to_remote_slice(kSector, c.link(kSector)) +
                                       c.gpu.l2_atomic_time.fs + c.gpu.l2_latency.fs +
                                       c.hbm(kSector) + c.io(0) + c.link(0) + c.io(0) + c.noc() +
                                       c.end());
}

TEST(OneRequest, its_attribution_names_every_cost) {
  const machine::Machine machine = distinct("switch:2");
  const Costs c(machine);
  const Result result =
      run(machine, {{{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)})}}, {}});
  EXPECT_EQ(spent_on(result, 0, Reason::launch), c.gpu.launch_stream_latency.fs + c.end());
  EXPECT_EQ(spent_on(result, 0, Reason::dispatch), c.gpu.dispatch_latency.fs);
  EXPECT_EQ(spent_on(result, 0, Reason::issue), c.overhead() + 2 * c.issue());
  EXPECT_EQ(spent_on(result, 0, Reason::noc), c.cu(0) + 2 * c.cu(kLine) + 4 * c.noc());
  EXPECT_EQ(spent_on(result, 0, Reason::io), 2 * c.io(kLine) + 2 * c.io(0));
  EXPECT_EQ(spent_on(result, 0, Reason::link), 2 * c.link(kLine) + 2 * c.link(0));
  EXPECT_EQ(spent_on(result, 0, Reason::switch_), 2 * c.switches.latency.fs);
  EXPECT_EQ(spent_on(result, 0, Reason::l2), 2 * c.slice(kLine));
  EXPECT_EQ(spent_on(result, 0, Reason::hbm), c.read(kLine) + c.hbm(kLine));
  EXPECT_EQ(sum(result.attribution[0]), result.time.fs);
  EXPECT_EQ(spent_on(result, 1, Reason::finished), result.time.fs - result.rank_end[1].fs);
}

}  // namespace
}  // namespace hemiola::sim
