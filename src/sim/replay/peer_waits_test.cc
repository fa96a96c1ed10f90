// Where the time of a replayed rank goes: to peers and their flags, not to links that nobody
// simulated.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/testing/long_tests.h"
#include "sim/replay/peer_waits.h"
#include "sim/result/profile.h"
#include "sim/simulate.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

constexpr auto kPeer = static_cast<std::size_t>(Reason::peer);
constexpr auto kLink = static_cast<std::size_t>(Reason::link);

Result replay_in_order(const machine::Machine& machine, const program::Bound& program,
                       Profile profile, Options options = {}) {
  profile = in_order(std::move(profile));
  options.replay = &profile;
  return simulate(machine, program, options);
}

/// Every interval has one reason, `peer` is what its waits say, and nothing is below zero.
void expect_sums(const Result& result, const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const Attribution& spent = result.attribution.at(static_cast<std::size_t>(rank));
    EXPECT_EQ(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}), result.time.fs);
    EXPECT_GE(*std::min_element(spent.begin(), spent.end()), 0) << "rank " << rank;
    std::int64_t waited = 0;
    for (const PeerWait& wait : result.peer_waits)
      if (wait.rank == rank) waited += wait.time.fs;
    EXPECT_EQ(waited, spent[kPeer]) << "rank " << rank;
  }
}

TEST(PeerWaits, of_two_flags_are_named_by_peer_and_flag_and_begin_with_the_wait) {
  const machine::Machine machine = distinct("switch:4");
  const program::Bound program = ops_alone(machine, {wait(0, 1), wait(0, 2)});
  Profile profile{.file = "p.csv", .ranks = 4};
  register_write(profile, 3, 0, Time::from_us(20), kSemaphores, 8, 1);
  register_write(profile, 2, 0, Time::from_us(60), kSemaphores, 16, 1);
  const Result result = replay_in_order(machine, program, profile);
  expect_sums(result, {0});
  ASSERT_EQ(result.peer_waits.size(), 2U);
  const PeerWait& longest = result.peer_waits[0];
  EXPECT_EQ(longest.peer, 2);
  EXPECT_EQ(longest.kind, ProfileKind::add);
  EXPECT_EQ(longest.buffer, kSemaphores);
  EXPECT_EQ(longest.offset, 16);
  EXPECT_EQ(longest.waits, 1);
  // The second wait begins when the first one is over.
  EXPECT_GT(longest.time, Time::from_us(38));
  EXPECT_LT(longest.time, Time::from_us(40));
  EXPECT_EQ(result.peer_waits[1].peer, 3);
  EXPECT_LT(result.peer_waits[1].time, Time::from_us(20));
  EXPECT_EQ(result.attribution[0][kLink], 0) << "no link was simulated";
}

TEST(PeerWaits, are_none_for_what_came_before_the_wait) {
  const machine::Machine machine = distinct("ring:2");
  const program::Bound program = ops_alone(machine, {wait(0, 1)});
  Profile profile{.file = "p.csv", .ranks = 2};
  register_write(profile, 1, 0, Time{}, kSemaphores, 8, 1);
  const Result result = replay_in_order(machine, program, profile);
  expect_sums(result, {0});
  EXPECT_EQ(result.attribution[0][kPeer], 0);
  EXPECT_TRUE(result.peer_waits.empty());
}

// The flag has left its port when the wait begins, and comes in behind it: that is its way.
TEST(PeerWaits, keep_the_part_of_a_way_that_was_left) {
  const machine::Machine machine = distinct("switch:4");
  const program::Bound program = ops_alone(machine, {wait(0, 1)});
  for (std::int64_t ns = 0; ns < 12'000; ns += 250) {
    Profile profile{.file = "p.csv", .ranks = 4, .at_ports = true};
    register_write(profile, 1, 0, Time::from_ns(ns), kSemaphores, 8, 1);
    expect_sums(replay_in_order(machine, program, profile), {0});
  }
}

// Recorded answers are waited for, too; all ways to wait, packets, NICs and copy engines.
TEST(PeerWaits, sum_to_the_reason_in_all_replays) {
  const std::tuple<const char*, const char*, Bytes> cases[] = {
      {"all-reduce/ring", "ring:5", KiB(40)},
      {"all-reduce/two-shot", "mi300x-8", KiB(64)},
      {"all-reduce/nccl", "dgx-h100", KiB(16)},
      {"all-to-all/direct", "dgx-h100:2", KiB(32)},
      {"all-gather/direct", "torus:2x2", KiB(64)}};
  int turn = 0;
  for (const auto& [name, where, size] : cases) {
    turn += 2;
    for (const char* policy : {"spin", "backoff", "monitor", "syncmon"}) {
      for (const char* uncached : {"false", "true"}) {
        // Every other one, in another order in every other case, so that each policy meets both.
        if (++turn % 4 > 1 && !long_tests()) continue;
        const machine::Machine machine = machine::load(
            where, {.set = {{"gpu.sync.wait", policy}, {"gpu.sync.uncached", uncached}}});
        const program::Program loaded =
            program::load(name, {.ranks = machine.ranks(), .machine = machine::share(machine)});
        const program::Bound program =
            program::bind(loaded, machine::share(machine), {.size = size});
        Profile profile;
        simulate(machine, program, {.record = &profile, .watched = {1, 2}});
        for (const Answers answers : {Answers::recorded, Answers::live}) {
          SCOPED_TRACE(testing::Message() << name << ' ' << policy << ' ' << uncached);
          const Result result = simulate(
              machine, program, {.replay = &profile, .watched = {1, 2}, .answers = answers});
          expect_sums(result, {1, 2});
        }
      }
    }
  }
}

TEST(Delay, moves_the_rows_of_a_rank_once) {
  Profile profile{.file = "p.csv", .ranks = 4};
  const auto add = [&](int source, std::int64_t ns, std::int32_t after) {
    register_write(profile, source, 0, Time::from_ns(ns), kSemaphores, 8 * source, 1);
    profile.rows.back().after_row = after;
  };
  add(1, 100, -1);
  add(2, 200, -1);
  add(1, 300, 0);  // comes along with the first
  add(1, 400, 1);  // behind one of another rank
  add(2, 500, 0);
  add(1, 600, 4);  // that already comes along
  profile = in_order(std::move(profile));
  delay(profile, 1, Time::from_ns(7));
  std::vector<std::int64_t> times;
  for (const ProfileRow& row : profile.rows) times.push_back(row.time.fs / 1'000'000);
  EXPECT_EQ(times, (std::vector<std::int64_t>{107, 200, 300, 407, 500, 600}));
}

// With the rest on time, a rank that sends late is one that starts late.
TEST(Delay, of_a_rank_that_waits_for_nobody_is_a_later_start) {
  const machine::Machine machine = distinct("switch:4");
  std::vector<std::vector<Ops>> bodies(4);
  bodies[0] = {{wait(0, 1), wait(0, 2)}};
  bodies[1] = {{signal(0, 1)}};
  bodies[2] = {{signal(0, 2)}};
  const program::Bound program = make(machine, bodies);
  Profile profile;
  simulate(machine, program, {.record = &profile});
  delay(profile, 2, Time::from_us(9));
  const Result late = simulate(machine, program, {.skew = {{}, {}, Time::from_us(9)}});
  EXPECT_EQ(replay_in_order(machine, program, profile).rank_end[0], late.rank_end[0]);
}

}  // namespace
}  // namespace hemiola::sim
