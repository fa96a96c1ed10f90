// Rows of profiles that were not recorded: closed loops, both tables, any order, what is refused,
// and which row should have ended a wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/replay/write_table.h"
#include "sim/result/profile.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;
using ::testing::HasSubstr;

Profile profile_of(const machine::Machine& machine) {
  Profile profile{.file = "p.csv", .ranks = machine.ranks()};
  profile.buffers = {{std::string(kSemaphores), 32}};
  return profile;
}
/// Rank 1 adds 1 to a semaphore of rank 0.
ProfileRow add(std::int64_t time_ns, std::int32_t semaphore) {
  ProfileRow row;
  row.time = Time::from_ns(time_ns);
  row.source = 1;
  row.kind = ProfileKind::add;
  row.buffer = 0;
  row.offset = 8 * std::int64_t{semaphore};
  row.size = 8;
  row.value = 1;
  return row;
}
ProfileRow after_signal(ProfileRow row, std::int32_t semaphore, std::int64_t value) {
  row.after_buffer = 0;
  row.after_offset = 8 * std::int64_t{semaphore};
  row.after_value = value;
  return row;
}

Result replay(const machine::Machine& machine, const program::Bound& program,
              const Profile& profile, Options options = {}) {
  options.replay = &profile;
  return simulate(machine, program, options);
}

TEST(ReplayRows, end_a_wait_when_they_come) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {wait(0, 1)});
  Profile profile = profile_of(machine);
  profile.rows = {add(20'000, 1)};
  const Costs c(machine);
  const Result result = replay(machine, program, profile);
  // The poll that finds it comes at most one round after it; the row passes the port and the slice.
  const std::int64_t come = Time::from_us(20).fs + c.io(32);
  const std::int64_t poll = c.local_load(32) + c.gpu.sync_poll_interval.fs;
  EXPECT_GT(result.time.fs, come + c.end());
  EXPECT_LT(result.time.fs, come + c.end() + 2 * poll);
}

TEST(ReplayRows, behind_a_signal_come_that_much_after_it_has_reached_their_source) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {signal(1, 0), wait(0, 1)});
  const Costs c(machine);
  // To the far end of the link.
  const std::int64_t reached = c.start() + c.overhead() + c.gpu.sync_fence_latency.fs + c.issue() +
                               c.cu(32) + c.noc() + c.io(32) + c.link(32);
  for (const std::int64_t delay : {0, 700, 9'000}) {
    Profile closed = profile_of(machine), open = closed;
    closed.rows = {after_signal(add(delay, 1), 0, 1)};
    open.rows = {add(0, 1)};
    open.rows[0].time = Time{reached} + Time::from_ns(delay);
    EXPECT_EQ(replay(machine, program, closed).time, replay(machine, program, open).time);
    // A femtosecond decides: it is not earlier and not later.
    const auto polls = [&](Time time) {
      open.rows[0].time = time;
      return replay(machine, program, open).time;
    };
    std::int64_t low = 0, high = Time::from_us(40).fs;  // the first time with a later end
    const Time end = polls(open.rows[0].time);
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (polls(Time{middle}) > end ? high : low) = middle;
    }
    const std::int64_t slack = low - reached - Time::from_ns(delay).fs;
    closed.rows[0].time = Time{Time::from_ns(delay).fs + slack};
    EXPECT_EQ(replay(machine, program, closed).time, end);
    closed.rows[0].time.fs += 1;
    EXPECT_GT(replay(machine, program, closed).time, end);
  }
}

TEST(ReplayRows, behind_rows_come_that_much_after_them) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {wait(0, 1), wait(0, 2)});
  Profile chain = profile_of(machine), open = chain;
  chain.rows = {add(8'000, 1), add(3'000, 2)};
  chain.rows[1].after_row = 0;
  open.rows = {add(8'000, 1), add(11'000, 2)};
  EXPECT_EQ(replay(machine, program, in_order(chain)).time, replay(machine, program, open).time);
}

TEST(ReplayRows, through_the_fabric_come_later_by_the_way_and_queue) {
  const machine::Machine machine = distinct("switch:4");
  const program::Bound program = ops_alone(machine, {wait(0, 1)});
  const Costs c(machine);
  Profile ports = profile_of(machine), ingress = ports;
  ports.rows = ingress.rows = {add(20'000, 1)};
  ingress.rows[0].time.fs += c.through_switch(32);
  const Time way = replay(machine, program, ingress).time;
  EXPECT_EQ(replay(machine, program, ports, {.at_ports = true}).time, way);
  // 1,000 writes of ranks 2 and 3 each from 18 us on: to rank 0 they meet at the switch's output,
  // where about 2 us of them wait when the flag comes; to each other they meet nobody.
  const auto stuffed = [&](bool to_rank_0) {
    Profile profile = ports;
    for (int i = 0; i < 1000; ++i)
      for (const int rank : {2, 3})
        register_write(profile, rank, to_rank_0 ? 0 : 5 - rank, Time::from_us(18), kWholeMemory, 0,
                       0, 128);
    return replay(machine, program, in_order(std::move(profile)), {.at_ports = true}).time;
  };
  EXPECT_GT(stuffed(true), way + Time::from_us(1));
  EXPECT_LT(stuffed(true), way + Time::from_us(3));
  EXPECT_EQ(stuffed(false), way);
}

TEST(ReplayRows, are_answered_by_others_where_no_row_does) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program =
      ops_alone(machine, {transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)}), signal(1, 0)});
  const Result full = simulate(machine, program);
  const Result result = replay(machine, program, profile_of(machine));
  EXPECT_GT(result.time, Time{});
  // Nothing else is under way, so the memory of the other is as late as it would be, but for HBM.
  EXPECT_LE(result.time, full.time);
  EXPECT_GT(result.time.fs, full.time.fs - Time::from_us(1).fs);
}

/// A profile with everything in it, and its program.
struct Recorded {
  machine::Machine machine = machine::load("dgx-h100");
  program::Bound program = program::bind(
      program::load("all-reduce/two-shot", {.ranks = 8, .machine = machine::share(machine)}),
      machine::share(machine), {.size = KiB(64)});
  Profile profile;
  Recorded() { simulate(program, {.record = &profile}); }
};

TEST(ReplayRows, give_the_same_from_both_tables_in_any_order) {
  const Recorded recorded;
  const Result heap = simulate(recorded.machine, recorded.program, {.replay = &recorded.profile});
  const Result polled = simulate(recorded.machine, recorded.program,
                                 {.replay = &recorded.profile, .table = TableKind::polled});
  EXPECT_EQ(heap.rank_end, polled.rank_end);
  EXPECT_EQ(heap.counters, polled.counters);
  EXPECT_EQ(heap.line_hops, polled.line_hops);
  Profile other = recorded.profile;
  std::reverse(other.rows.begin(), other.rows.end());
  std::rotate(other.rows.begin(), other.rows.begin() + 17, other.rows.end());
  EXPECT_NE(other.rows, recorded.profile.rows);
  other = in_order(std::move(other));
  EXPECT_EQ(other.rows, recorded.profile.rows) << "a recording is in order";
  const Result shuffled = simulate(recorded.machine, recorded.program, {.replay = &other});
  EXPECT_EQ(heap.counters, shuffled.counters);
  EXPECT_EQ(heap.time, shuffled.time);
}

TEST(ReplayRows, of_closed_loops_give_the_same_from_both_tables) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {signal(1, 0), wait(0, 1), wait(0, 2)});
  Profile profile = profile_of(machine);
  profile.rows = {after_signal(add(900, 1), 0, 1), add(300, 2)};
  profile.rows[1].after_row = 0;
  profile = in_order(std::move(profile));
  const Result heap = replay(machine, program, profile);
  const Result polled = replay(machine, program, profile, {.table = TableKind::polled});
  EXPECT_EQ(heap.time, polled.time);
  EXPECT_EQ(heap.counters, polled.counters);
}

// Whole periods of polls are skipped while nothing else comes; the polled table skips nothing.
TEST(ReplayRows, that_come_late_cost_no_more_and_give_what_all_polls_give) {
  for (const char* name : {"ring:2", "dgx-h100"}) {
    const machine::Machine machine =
        name[0] == 'r' ? distinct(name, {{"gpu.l2.size", "4 KiB"}}) : machine::load(name);
    std::vector<std::vector<Ops>> bodies(2);
    bodies[0] = {{wait(0, 1), wait(0, 2)}, {wait(0, 0)}, {wait(0, 3)}};
    program::Bound program = make(machine, bodies);
    program = program::changed(program, [&](auto& p) { p.groups.clear(); });
    const auto with = [&](std::int64_t late, TableKind kind) {
      Profile profile = profile_of(machine);
      profile.ranks = 2;
      profile.rows = {add(20'000, 1), add(late, 0), add(late, 2), add(late + 300'000, 3)};
      return replay(machine, program, profile, {.table = kind});
    };
    const Result heap = with(6'000'000, TableKind::heap);
    const Result polled = with(6'000'000, TableKind::polled);
    EXPECT_EQ(heap.time, polled.time);
    EXPECT_EQ(heap.counters, polled.counters);
    EXPECT_EQ(heap.attribution, polled.attribution);
    EXPECT_EQ(heap.line_hops, polled.line_hops);
    EXPECT_GT(polled.visited_hops, 5 * heap.visited_hops);
    const Result far = with(3'000'000'000, TableKind::heap);
    EXPECT_GT(far.counters.at("requests.polls"), 400 * heap.counters.at("requests.polls"));
    EXPECT_LT(far.visited_hops, 3 * heap.visited_hops);
  }
}

// Thousands of GPUs that are not simulated.
TEST(ReplayRows, of_4095_eidolons_are_put_in) {
  const machine::Machine machine = machine::load("switch:4096");
  std::vector<std::vector<Ops>> bodies(4096);
  bodies[0] = {{wait(0, 1)}};
  program::Bound program = make(machine, bodies);
  program = program::changed(program, [&](auto& p) { p.groups.clear(); });
  Profile profile{.file = {}, .ranks = 4096};
  for (int rank = 1; rank < 4096; ++rank)
    register_write(profile, rank, 0, Time::from_us(rank % 50), kWholeMemory, 128 * (rank % 64), 0,
                   128);
  register_write(profile, 4095, 0, Time::from_us(60), kSemaphores, 8, 1);
  const Result result = replay(machine, program, in_order(std::move(profile)));
  EXPECT_GT(result.rank_end[0], Time::from_us(60));
  EXPECT_LT(result.rank_end[0], Time::from_us(70));
}

std::string replay_deadlock(const machine::Machine& machine, const program::Bound& program,
                            const Profile& profile) {
  try {
    replay(machine, program, profile);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    return failure.what();
  }
  ADD_FAILURE() << "the replay ended";
  return {};
}

TEST(ReplayRows, that_never_come_are_named_with_the_wait) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {signal(1, 0), wait(0, 1)});
  Profile profile = profile_of(machine);
  std::string text = replay_deadlock(machine, program, profile);
  EXPECT_THAT(text, HasSubstr("rank 0 workgroup 0 op 1 (wait)"));
  EXPECT_THAT(text, HasSubstr("semaphore 'channel 1' of rank 0 to reach 1, it is 0"));
  EXPECT_THAT(text, HasSubstr("no row writes @semaphores+8 of rank 0"));
  profile.rows = {after_signal(add(0, 1), 0, 2)};
  profile.rows[0].tag = "ready";
  profile.places = {"line 7"};
  text = replay_deadlock(machine, program, profile);
  EXPECT_THAT(text,
              HasSubstr("the row at line 7 'ready' of rank 1 would write it, but it waits for "
                        "@semaphores+0>=2 at rank 1, where 1 has come"));
  profile.rows.push_back(add(5, 1));
  profile.rows.back().after_row = 0;
  std::swap(profile.rows[0].offset, profile.rows[1].after_offset);
  profile.rows[0].offset = 16;  // the first one writes another flag
  profile.places = {"line 7", "line 8"};
  text = replay_deadlock(machine, program, profile);
  EXPECT_THAT(text, HasSubstr("the row at line 8 of rank 1 would write it, but comes after the row "
                              "at line 7 'ready', which waits for @semaphores+0>=2"));
  profile.rows = {add(1'000, 1)};
  profile.rows[0].value = 0;
  profile.places.clear();
  EXPECT_THAT(replay_deadlock(machine, program, profile),
              HasSubstr("all 1 rows that write it have come"));
}

TEST(ReplayRows, that_cannot_be_are_refused) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {wait(0, 1)});
  const auto refused = [&](const Profile& profile, const Options& options = {}) {
    try {
      replay(machine, program, profile, options);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      return std::string(failure.what());
    }
    return std::string("nothing");
  };
  Profile profile = profile_of(machine);
  profile.rows = {add(1'000, 1)};
  profile.rows[0].path = 7;
  profile.rows[0].links = 1;
  EXPECT_THAT(refused(profile), HasSubstr("there is no path 7"));
  profile.rows[0].path = -1;
  profile.rows[0].links = 9;
  EXPECT_THAT(refused(profile), HasSubstr("is to pass 9 links, its way has 1"));
  profile.rows[0].links = 0;
  EXPECT_THAT(refused(profile, {.watched = {2}}), HasSubstr("there is no rank 2"));
  EXPECT_THAT(refused(profile, {.watched = {0, 0}}), HasSubstr("named twice"));
}

TEST(RegisterWrite, adds_rows_in_any_order_and_takes_no_time) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {wait(0, 1)});
  Profile profile{.file = {}, .ranks = 2};
  register_write(profile, 1, 0, Time::from_us(20), kSemaphores, 8, 1);
  register_write(profile, 1, 0, Time::from_us(3), kWholeMemory, 256, 0, 64);
  profile = in_order(std::move(profile));
  EXPECT_EQ(profile.rows.front().kind, ProfileKind::write);
  EXPECT_EQ(profile.buffers[1].bytes, 320);
  Profile by_hand = profile_of(machine);
  by_hand.rows = {add(20'000, 1)};
  EXPECT_EQ(replay(machine, program, profile).time, replay(machine, program, by_hand).time);
  EXPECT_THROW(register_write(profile, 1, 1, Time{}, kSemaphores, 0, 1), Failure);
  EXPECT_THROW(register_write(profile, 2, 0, Time{}, kSemaphores, 0, 1), Failure);
  EXPECT_THROW(register_write(profile, 1, 0, Time{-1}, kSemaphores, 0, 1), Failure);
  EXPECT_THROW(register_write(profile, 1, 0, Time{}, kSemaphores, -8, 1), Failure);
}

TEST(WriteTable, implementations_agree) {
  for (const TableKind kind : {TableKind::heap, TableKind::polled}) {
    const auto table = make_write_table(kind, Time{10});
    table->add(35, 2);
    table->add(7, 1);
    table->add(35, 0);
    EXPECT_EQ(table->take(7), -1) << "not before its time";
    EXPECT_EQ(table->take(8), 1);
    EXPECT_EQ(table->take(35), -1);
    table->add(36, 3);
    table->add(35, 5);
    EXPECT_LE(table->next(), 35);
    std::vector<std::int32_t> order;
    for (std::int32_t r = table->take(100); r >= 0; r = table->take(100)) order.push_back(r);
    EXPECT_EQ(order, (std::vector<std::int32_t>{0, 2, 5, 3}));
    EXPECT_TRUE(table->empty());
    EXPECT_EQ(table->next(), INT64_MAX);
  }
}

}  // namespace
}  // namespace hemiola::sim
