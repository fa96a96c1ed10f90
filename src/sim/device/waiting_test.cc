// How wavefronts wait: closed forms of spinning, wake-ups, tables, switched workgroups.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "core/diagnostics.h"
#include "sim/result/profile.h"
#include "sim/testing/compare_results.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

Settings with_policy(const std::string& policy, Settings more = {}) {
  more.insert(more.begin(), {"gpu.sync.wait", policy});
  return more;
}

/// Of the distinct machine (testing/machines.h); waits have costs of their own too.
machine::Machine waiting_machine(const std::string& topology, const Settings& more) {
  Settings settings = {{"gpu.sync.line_time", "61 ns"},
                       {"gpu.sync.backoff_start", "83 ns"},
                       {"gpu.sync.backoff_limit", "1307 ns"},
                       {"gpu.sync.wake_latency", "19 ns"},
                       {"gpu.sync.handover_time", "503 ns"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return distinct(topology, settings);
}

/// Rank 0: `waiters` workgroups; each waits for a semaphore of its own, which is consumed, or all
/// for number 0. Rank 1 does nothing.
std::vector<std::vector<Ops>> waits(int waiters, bool shared = false) {
  std::vector<std::vector<Ops>> bodies(2);
  for (int w = 0; w < waiters; ++w) bodies[0].push_back({wait(0, shared ? 0 : w)});
  bodies[1].push_back({});
  return bodies;
}

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// Rank 1 adds `value` to each of these semaphores of rank 0 at `at`.
Profile flags_at(Time at, const std::vector<int>& semaphores, std::int64_t value = 1) {
  Profile profile{.file = "test", .ranks = 2, .buffers = {}, .rows = {}};
  profile.buffers = {{std::string(kSemaphores), 8 * 16}};
  for (const int semaphore : semaphores) {
    ProfileRow row;
    row.time = at;
    row.source = 1;
    row.destination = 0;
    row.kind = ProfileKind::add;
    row.buffer = 0;
    row.offset = 8 * semaphore;
    row.size = 8;
    row.value = value;
    row.order = semaphore;
    profile.rows.push_back(row);
  }
  return profile;
}

/// Without the multicast group that no operation of it uses: the line engine takes it.
program::Bound without_groups(const machine::Machine& machine,
                              const std::vector<std::vector<Ops>>& bodies,
                              const Shape& shape = {.semaphores = 16}) {
  program::Bound program = make(machine, bodies, shape);
  program = program::changed(program, [&](auto& p) { p.groups.clear(); });
  return program;
}

Result replayed(const machine::Machine& machine, const program::Bound& program,
                const Profile& profile) {
  return simulate(machine, program, {.replay = &profile, .watched = {0}});
}

struct Line {
  double slope, r2;
};
Line fit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    sxy += x[i] * y[i];
    syy += y[i] * y[i];
  }
  const double cov = n * sxy - sx * sy;
  return {cov / (n * sxx - sx * sx), cov * cov / ((n * sxx - sx * sx) * (n * syy - sy * sy))};
}

/// Flag and data reads of rank 0 while the flags come 0, 5, ..., 40 us late.
struct Sweep {
  std::vector<double> wait_ns, flag_reads;
  std::vector<std::int64_t> data_reads;
};
Sweep sweep(const machine::Machine& machine, int pollers) {
  auto bodies = waits(pollers);
  for (Ops& ops : bodies[0]) ops.push_back(copy(at(0, kInput), at(0, kOutput)));
  const program::Bound program = without_groups(machine, bodies);
  Sweep result;
  for (int us = 0; us <= 40; us += 5) {
    const Result one = replayed(machine, program,
                                flags_at(Time::from_ns(3000 + 1000 * us), first_numbers(pollers)));
    result.wait_ns.push_back(1000 * us);
    result.flag_reads.push_back(static_cast<double>(one.counters.at("reads.flag.cu")));
    result.data_reads.push_back(one.counters.at("reads.data.cu"));
  }
  return result;
}

TEST(Reads, of_flags_and_of_data_are_counted_at_every_level) {
  const std::vector<std::vector<Ops>> bodies = {{{copy(at(1, kInput), at(0, kOutput)), wait(1, 0)}},
                                                {{signal(1, 0)}}};
  Options late;
  late.skew = {Time{0}, Time::from_ns(20'000)};
  struct Case {
    Settings settings;
    bool l2, memory;  ///< whether flags are read there, again and again
  };
  const std::vector<Case> cases = {
      {{}, true, true},
      {{{"gpu.l2.size", "64 KiB"}}, true, false},
      {{{"gpu.l2.size", "64 KiB"}, {"gpu.sync.uncached", "true"}}, false, true}};
  for (const Case& expected : cases) {
    const machine::Machine machine = waiting_machine("ring:2", expected.settings);
    const Result result = simulate(machine, without_groups(machine, bodies), late);
    const auto count = [&](const char* name) { return result.counters.at(name); };
    const std::int64_t flags = count("reads.flag.cu");
    EXPECT_GT(flags, 8);
    EXPECT_EQ(count("reads.poll.cu"), flags - 1);
    EXPECT_EQ(count("reads.flag.fabric"), flags);
    EXPECT_EQ(count("reads.poll.fabric"), flags - 1);
    EXPECT_EQ(count("reads.flag.l2"), expected.l2 ? flags : 0);
    EXPECT_EQ(count("reads.flag.memory"), expected.memory ? flags : 1);
    EXPECT_EQ(count("reads.poll.memory"), expected.memory ? flags - 1 : 0);
    for (const char* level :
         {"reads.data.cu", "reads.data.l2", "reads.data.memory", "reads.data.fabric"})
      EXPECT_EQ(count(level), 1) << level;
  }
}

TEST(Waiting, by_spinning_reads_as_often_as_the_closed_form_says) {
  for (const int pollers : {1, 2, 5, 16}) {
    SCOPED_TRACE(pollers);
    const machine::Machine machine =
        waiting_machine("ring:2", {{"gpu.sync.uncached", "true"}, {"gpu.cu.count", "32"}});
    const Sweep spun = sweep(machine, pollers);
    const Costs c(machine);
    const double line = static_cast<double>(c.gpu.sync_line_time.fs) * 1e-6;
    const double trip =
        line + static_cast<double>(c.local_load(32) + c.gpu.sync_poll_interval.fs) * 1e-6;
    const Line line_of = fit(spun.wait_ns, spun.flag_reads);
    EXPECT_GT(line_of.r2, 0.99);
    EXPECT_NEAR(line_of.slope, std::min(pollers / trip, 1 / line), 0.02 * line_of.slope);
    for (std::size_t i = 0; i < spun.wait_ns.size(); ++i) {
      const double expected =
          spun.flag_reads[0] + spun.wait_ns[i] * std::min(pollers / trip, 1 / line);
      EXPECT_NEAR(spun.flag_reads[i], expected, 2 * pollers) << spun.wait_ns[i];
      EXPECT_EQ(spun.data_reads[i], spun.data_reads[0]);
    }
  }
}

TEST(Waiting, by_monitor_and_syncmon_reads_as_often_however_long_it_lasts) {
  for (const std::string uncached : {"true", "false"}) {
    const Settings more = {{"gpu.sync.uncached", uncached},
                           {"gpu.sync.flag_spacing", "128 B"},
                           {"gpu.cu.count", "16"}};
    const Sweep spun = sweep(waiting_machine("ring:2", with_policy("spin", more)), 16);
    for (const std::string policy : {"monitor", "syncmon"}) {
      SCOPED_TRACE(policy + " " + uncached);
      const Sweep monitored = sweep(waiting_machine("ring:2", with_policy(policy, more)), 16);
      for (std::size_t i = 0; i < monitored.wait_ns.size(); ++i) {
        EXPECT_NEAR(monitored.flag_reads[i], monitored.flag_reads[0],
                    0.05 * monitored.flag_reads[0]);
        EXPECT_EQ(monitored.data_reads[i], spun.data_reads[i]);
      }
      // Looks of a wait: before, after arming, after the wake-up; SyncMon needs no second one.
      EXPECT_EQ(monitored.flag_reads.back(), 16 * (policy == "monitor" ? 3 : 2));
      EXPECT_GT(spun.flag_reads.back(), 10 * monitored.flag_reads.back());
    }
  }
}

TEST(Waiting, by_backoff_reads_with_the_logarithm_of_the_wait_then_at_its_limit) {
  const machine::Machine machine = waiting_machine("ring:2", with_policy("backoff"));
  const Costs c(machine);
  const program::Bound program = without_groups(machine, waits(1));
  const std::int64_t trip = c.local_load(32) + c.gpu.sync_poll_interval.fs;
  const std::int64_t began = c.start() + c.overhead();
  for (const int us : {1, 3, 10, 40}) {
    const std::int64_t flag = began + us * 1'000'000'000LL;
    // Looks come to the slice at these times; the flag is taken there behind port and slice.
    const std::int64_t taken = flag + c.io(32);
    std::int64_t at = began + c.issue() + c.cu(0) + c.noc(), sleep = c.gpu.sync_backoff_start.fs;
    std::int64_t looks = 1;
    while (at < taken) {
      at += trip + std::min(sleep, c.gpu.sync_backoff_limit.fs);
      sleep = std::min(2 * sleep, c.gpu.sync_backoff_limit.fs);
      ++looks;
    }
    const Result result = replayed(machine, program, flags_at({flag}, {0}));
    EXPECT_EQ(result.counters.at("reads.flag.cu"), looks) << us;
    EXPECT_EQ(result.counters.at("reads.poll.cu"), looks - 1) << us;
  }
}

TEST(Waiting, woken_by_a_monitor_ends_wake_latency_and_one_look_after_the_write) {
  const machine::Machine machine = waiting_machine("ring:2", with_policy("monitor"));
  const Costs c(machine);
  const Time flag = Time::from_ns(20'000);
  const Result result = replayed(machine, without_groups(machine, waits(1)), flags_at(flag, {0}));
  const std::int64_t written = flag.fs + c.io(32) + c.gpu.l2_atomic_time.fs + c.gpu.l2_latency.fs;
  const std::int64_t woken = written + c.gpu.sync_wake_latency.fs + c.noc();
  EXPECT_EQ(result.rank_end[0].fs, woken + c.local_load(32) + c.end());
  EXPECT_EQ(result.counters.at("waits.wakes"), 1);
  EXPECT_EQ(result.counters.at("waits.arms"), 1);
  EXPECT_EQ(result.counters.at("waits.false_wakes"), 0);
}

TEST(Waiting, for_packed_flags_has_false_wake_ups_and_for_padded_ones_none) {
  const std::vector<int> flags = {0, 1, 2, 3};
  Profile profile = flags_at(Time::from_ns(20'000), flags);
  for (std::size_t i = 0; i < flags.size(); ++i)
    profile.rows[i].time.fs += static_cast<std::int64_t>(i) * 10'000'000'000LL;
  const Settings padded = {{"gpu.sync.flag_spacing", "128 B"}, {"gpu.cu.count", "4"}};
  const Settings packed = {{"gpu.cu.count", "4"}};
  const auto false_wakes = [&](const std::string& policy, const Settings& layout) {
    const machine::Machine machine = waiting_machine("ring:2", with_policy(policy, layout));
    return replayed(machine, without_groups(machine, waits(4)), profile)
        .counters.at("waits.false_wakes");
  };
  EXPECT_EQ(false_wakes("monitor", packed), 3 + 2 + 1);
  EXPECT_EQ(false_wakes("monitor", padded), 0);
  EXPECT_EQ(false_wakes("syncmon", packed), 0);
}

TEST(Waiting, without_room_in_the_table_goes_on_by_backoff_or_through_the_log) {
  const Settings small = {{"gpu.sync.monitor_entries", "1"}, {"gpu.cu.count", "4"}};
  const Profile profile = flags_at(Time::from_ns(20'000), {0}, 4);
  const auto result = [&](const std::string& policy) {
    const machine::Machine machine = waiting_machine("ring:2", with_policy(policy, small));
    return replayed(machine, without_groups(machine, waits(4, true)), profile);
  };
  const Result monitor = result("monitor");
  EXPECT_GE(monitor.counters.at("waits.refused"), 3);
  EXPECT_GT(monitor.counters.at("reads.flag.cu"), 4 * 3);
  const Result syncmon = result("syncmon");
  EXPECT_EQ(syncmon.counters.at("waits.log_writes"), 3);
  EXPECT_EQ(syncmon.counters.at("waits.log_reads"), 3);
  EXPECT_EQ(syncmon.counters.at("reads.flag.cu"), 4 * 2);
  const std::int64_t entries = 3 * 32;
  const Settings large = {{"gpu.sync.monitor_entries", "16"}, {"gpu.cu.count", "4"}};
  const machine::Machine roomy = waiting_machine("ring:2", with_policy("syncmon", large));
  const Result table = replayed(roomy, without_groups(roomy, waits(4, true)), profile);
  EXPECT_EQ(table.counters.at("waits.log_writes"), 0);
  EXPECT_EQ(syncmon.counters.at("hbm.written_bytes") - table.counters.at("hbm.written_bytes"),
            entries);
  EXPECT_EQ(syncmon.counters.at("hbm.read_bytes") - table.counters.at("hbm.read_bytes"), entries);
}

TEST(Waiting, by_syncmon_wakes_one_after_one_update_and_all_after_several) {
  const Settings more = {{"gpu.cu.count", "4"}};
  const machine::Machine machine = waiting_machine("ring:2", with_policy("syncmon", more));
  const Costs c(machine);
  const auto end = [&](const std::vector<int>& flags) {
    std::vector<std::vector<Ops>> bodies(2);
    Op all = wait(0, flags[0]);
    for (std::size_t i = 1; i < flags.size(); ++i)
      all.semaphores.push_back({constant(0), flags[i]});
    for (int w = 0; w < 4; ++w) bodies[0].push_back({all});
    bodies[1].push_back({});
    return replayed(machine, without_groups(machine, bodies),
                    flags_at(Time::from_ns(20'000), flags, 4))
        .rank_end[0]
        .fs;
  };
  const std::int64_t atomic = c.gpu.l2_atomic_time.fs, slice = c.slice(32) - c.gpu.l2_latency.fs;
  const std::int64_t taken = 20'000'000'000LL + c.io(32), rest = c.noc() + c.end();
  const std::int64_t woken = atomic + c.gpu.l2_latency.fs + c.gpu.sync_wake_latency.fs;
  EXPECT_EQ(end({0}), taken + woken + 3 * c.gpu.sync_handover_time.fs + rest + c.local_load(32));
  // Both flags take the port, then the slice; four wake-ups, whose looks queue at the slice.
  const std::int64_t second = taken + c.gpu.noc_io_rate.time_for(32).fs;
  const std::int64_t last = second + woken + 3 * atomic;
  EXPECT_GE(end({0, 1}), last + rest + c.local_load(32));
  EXPECT_LE(end({0, 1}), last + rest + c.local_load(32) + 3 * slice + 3 * c.read(32));
}

/// More workgroups than the GPU holds: the last one signals all others.
std::vector<std::vector<Ops>> oversubscribed(int workgroups) {
  std::vector<std::vector<Ops>> bodies(2);
  for (int w = 1; w < workgroups; ++w)
    bodies[0].push_back({wait(0, w), copy(at(0, kInput), at(0, kOutput))});
  Ops signals;
  for (int w = 1; w < workgroups; ++w) signals.push_back(signal(0, w));
  bodies[0].push_back(signals);
  bodies[1].push_back({});
  return bodies;
}

TEST(Waiting, oversubscribed_ends_with_syncmon_and_is_a_deadlock_without) {
  const Shape shape{.semaphores = 8};
  const Settings one_place = {{"gpu.cu.count", "1"}, {"gpu.cu.max_workgroups", "2"}};
  for (const std::string policy : {"spin", "backoff", "monitor", "syncmon"}) {
    SCOPED_TRACE(policy);
    const machine::Machine machine = waiting_machine("ring:2", with_policy(policy, one_place));
    const program::Bound program = without_groups(machine, oversubscribed(6), shape);
    for (const Engine engine : {Engine::reference, Engine::line}) {
      if (policy == "syncmon") {
        const Result result = simulate(machine, program, {.engine = engine});
        const std::int64_t out = result.counters.at("waits.switched_out");
        EXPECT_GE(out, 4);
        EXPECT_EQ(result.counters.at("waits.switched_in"), out);
        // 32 threads of 256 B in lines of 128 B, each way.
        EXPECT_EQ(result.counters.at("waits.state_requests"), out * 2 * 64);
        continue;
      }
      try {
        simulate(machine, program, {.engine = engine});
        FAIL() << "no deadlock";
      } catch (const Failure& failure) {
        EXPECT_EQ(failure.code(), ExitCode::deadlock);
      }
    }
  }
}

TEST(Waiting, that_cannot_end_is_a_deadlock_under_every_policy) {
  for (const std::string policy : {"spin", "backoff", "monitor", "syncmon"}) {
    for (const std::string uncached : {"true", "false"}) {
      const machine::Machine machine =
          waiting_machine("ring:2", with_policy(policy, {{"gpu.sync.uncached", uncached}}));
      for (const Engine engine : {Engine::reference, Engine::line}) {
        SCOPED_TRACE(policy);
        try {
          simulate(machine, without_groups(machine, waits(2)), {.engine = engine});
          FAIL() << "no deadlock";
        } catch (const Failure& failure) {
          EXPECT_EQ(failure.code(), ExitCode::deadlock);
          EXPECT_NE(std::string(failure.what()).find("channel 0"), std::string::npos);
        }
      }
    }
  }
}

TEST(Waiting, for_a_row_that_the_profile_does_not_have_is_a_deadlock) {
  for (const std::string policy : {"spin", "backoff", "monitor", "syncmon"}) {
    SCOPED_TRACE(policy);
    const machine::Machine machine = waiting_machine("ring:2", with_policy(policy));
    try {
      replayed(machine, without_groups(machine, waits(2)), flags_at(Time::from_ns(9000), {0}));
      FAIL() << "no deadlock";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::deadlock);
      EXPECT_NE(std::string(failure.what()).find("channel 1"), std::string::npos);
    }
  }
}

// The write comes at any time from before the first look to after the sleep: it is always seen.
TEST(Waiting, misses_no_wake_up_however_the_write_races_with_arming) {
  EXPECT_TRUE(rc::check("ends", [] {
    const auto pick = [](const std::vector<std::string>& of) {
      return of[*rc::gen::inRange<std::size_t>(0, of.size())];
    };
    const machine::Machine machine =
        waiting_machine("ring:2", {{"gpu.cu.count", "3"},
                                   {"gpu.sync.wait", pick({"monitor", "syncmon"})},
                                   {"gpu.sync.uncached", pick({"true", "false"})},
                                   {"gpu.sync.flag_spacing", pick({"8 B", "128 B"})},
                                   {"gpu.sync.monitor_entries", pick({"0", "1", "2", "16"})},
                                   {"gpu.sync.wake_latency", pick({"1 fs", "19 ns", "700 ns"})}});
    std::vector<std::vector<Ops>> bodies(2);
    for (int w = 0; w < 3; ++w) bodies[0].push_back({wait(0, w), wait(0, 3 + w)});
    bodies[1].push_back({});
    const program::Bound program = without_groups(machine, bodies);
    Profile profile = flags_at({}, first_numbers(6));
    for (ProfileRow& row : profile.rows)
      row.time = Time::from_ns(*rc::gen::inRange<std::int64_t>(900, 4000));
    std::int64_t latest = 0;
    for (const ProfileRow& row : profile.rows) latest = std::max(latest, row.time.fs);
    const Result result = replayed(machine, program, profile);  // a missed one is a deadlock
    RC_ASSERT(result.rank_end[0].fs > latest);
    RC_ASSERT(result.rank_end[0].fs < std::max<std::int64_t>(latest, 1200000000) + 20000000000);
  }));
}

}  // namespace
}  // namespace hemiola::sim
