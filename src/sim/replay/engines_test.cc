// What copy engines, NICs and switches of multicast groups do to a rank is recorded, too: replayed,
// it ends at the same femtosecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/result/profile.h"
#include "sim/support/index.h"
#include "sim/testing/random_groups.h"

namespace hemiola::sim {
namespace {

using namespace test;
using ::testing::HasSubstr;

/// Empty if the watched ranks end when they did. Why, if they cannot be recorded.
struct Compared {
  std::string difference, refused;
  std::int64_t bursts = 0;  ///< rows
};

Compared compare_engines(const machine::Machine& machine, const program::Bound& program,
                         Options options) {
  Compared compared;
  Profile profile;
  options.record = &profile;
  Result full;
  try {
    full = simulate(machine, program, options);
  } catch (const Failure& failure) {
    if (failure.code() != ExitCode::bad_input) throw;
    compared.refused = failure.what();
    return compared;
  }
  compared.bursts =
      std::count_if(profile.rows.begin(), profile.rows.end(),
                    [](const ProfileRow& row) { return row.kind == ProfileKind::burst; });
  options.record = nullptr;
  options.replay = &profile;
  options.at_ports = false;  // the profile says so
  const Result alone = simulate(machine, program, options);
  for (const int rank : options.watched) {
    const Time was = full.rank_end.at(static_cast<std::size_t>(rank));
    const Time is = alone.rank_end.at(static_cast<std::size_t>(rank));
    if (was != is)
      compared.difference = machine.name + " " + program.name() + ": rank " + std::to_string(rank) +
                            " of " + std::to_string(options.watched.size()) + " ended at " +
                            to_string(was) + ", replayed at " + to_string(is);
  }
  return compared;
}

/// Some ranks in any order.
std::vector<int> any_ranks(int ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::swap(all[static_cast<std::size_t>(between(0, ranks - 1))], all[0]);
  all.resize(static_cast<std::size_t>(between(1, std::min(ranks, 3))));
  return all;
}

Options any_recording(int ranks) {
  Options options;
  options.launch = one_of<Launch>({Launch::stream, Launch::graph});
  for (int rank = 0; rank < ranks; ++rank) options.skew.push_back(Time::from_ns(between(0, 500)));
  options.watched = any_ranks(ranks);
  options.at_ports = between(0, 2) == 0;
  return options;
}

TEST(ReplayEngines, give_the_same_times_on_random_machines_with_copy_engines) {
  std::int64_t bursts = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < 2; ++i) {
      machine::Machine machine = any_machine(Queues::none);
      for (const auto& [name, value] : any_engine_costs()) machine.set(name, value);
      const program::Bound program = any_exchange(machine);
      const Compared compared = compare_engines(machine, program, any_recording(program.ranks()));
      if (!compared.difference.empty()) RC_FAIL(compared.difference);
      bursts += compared.bursts;
    }
  }));
  EXPECT_GT(bursts, 50);
}

TEST(ReplayEngines, give_the_same_times_on_random_networks) {
  std::int64_t bursts = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const machine::Machine machine = any_network(Queues::none);
    const program::Bound program = any_exchange(machine);
    const Compared compared = compare_engines(machine, program, any_recording(program.ranks()));
    if (!compared.difference.empty()) RC_FAIL(compared.difference);
    bursts += compared.bursts;
  }));
  EXPECT_GT(bursts, 50);
}

TEST(ReplayEngines, give_the_same_times_on_random_planes) {
  std::int64_t compared_runs = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const machine::Machine machine = any_nvls(Queues::none);
    const program::Bound program = any_group_exchange(machine);
    Options options = any_recording(program.ranks());
    options.at_ports = false;
    options.watched.resize(1);
    const Compared compared = compare_engines(machine, program, options);
    if (!compared.difference.empty()) RC_FAIL(compared.difference);
    compared_runs += compared.refused.empty() ? 1 : 0;
  }));
  EXPECT_GT(compared_runs, 90);
}

// --- What is written by hand, and what is refused.

/// Rank 0 waits for flag 0; what rank 1, at another switch, sends through its NIC says a profile.
struct ByHand {
  machine::Machine machine = machine::load("dgx-h100:2");
  program::Bound program = [this] {
    std::vector<std::vector<Ops>> bodies(16);
    bodies[0] = {{wait(0, 0)}};
    return program::changed(make(machine, bodies), [](auto& p) { p.groups.clear(); });
  }();
  Profile profile{.file = "p.csv", .ranks = 16, .buffers = {{std::string(kWholeMemory), 1 << 16}}};

  ProfileRow& add(std::int64_t time_ns, std::int64_t message, std::int64_t packets) {
    ProfileRow row;
    row.time = Time::from_ns(time_ns);
    row.source = 8;
    row.kind = ProfileKind::burst;
    row.buffer = 0;
    row.size = 4096;
    row.message = message;
    row.packets = packets;
    return profile.rows.emplace_back(row);
  }
  Result replay() { return simulate(machine, program, {.replay = &profile}); }
  std::string fails(ExitCode code) {
    try {
      replay();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), code);
      return failure.what();
    }
    return "nothing";
  }
};

TEST(ReplayEngines, write_a_flag_behind_the_last_burst_of_all_messages_before_it) {
  const auto end = [](std::int64_t late_ns) {
    ByHand by_hand;
    by_hand.add(late_ns, 0, 2);
    by_hand.add(20'000, 0, -1);
    ProfileRow& empty = by_hand.add(30'000, 1, 1);  // it overtakes nothing
    empty.buffer = -1;
    empty.size = 32;
    empty.flag = 0;
    return by_hand.replay().time;
  };
  const Time soon = end(20'100);
  EXPECT_GT(soon, Time::from_us(30));
  EXPECT_LT(soon, Time::from_us(33));
  EXPECT_EQ(end(25'000), soon) << "before the flag";
  EXPECT_GT(end(50'000), Time::from_us(50));
}

TEST(ReplayEngines, say_which_message_a_flag_waits_for) {
  ByHand by_hand;
  by_hand.add(20'000, 1, 1).flag = 0;
  EXPECT_THAT(by_hand.fails(ExitCode::deadlock),
              HasSubstr("flags of messages from rank 8 are written in their order, and of message "
                        "0 nothing has come"));
  by_hand.add(20'100, 0, 2);
  EXPECT_THAT(by_hand.fails(ExitCode::deadlock),
              HasSubstr("of message 0 1 bursts have come, of 2"));
  by_hand.add(20'200, 0, -1).flag = 4096;
  EXPECT_THAT(by_hand.fails(ExitCode::bad_input), HasSubstr("has flag 4096, where no semaphore"));
}

// Rank 0 puts through its NIC (or a copy engine) and flushes; others answer by themselves, and what
// comes behind its signal comes when the last burst has reached them.
TEST(ReplayEngines, are_answered_by_others_and_signal_them) {
  for (const int peer : {8, 1}) {
    ByHand by_hand;
    std::vector<std::vector<Ops>> bodies(16);
    Op put = through_port(transfer(OpKind::put_signal, {at(0, kInput)}, {at(peer, kOutput)}));
    put.semaphores = {{constant(peer), 1}};
    bodies[0] = {{put, {.kind = OpKind::flush}, wait(0, 0)}};
    bodies[static_cast<std::size_t>(peer)] = {{wait(peer, 1), [&] {
                                                 const Op op = signal(0, 0);
                                                 return peer == 8 ? through_port(op) : op;
                                               }()}};
    const Shape shape{.chunk_bytes = 20'000};
    const machine::Machine& machine = by_hand.machine;
    program::Bound full = make(machine, bodies, shape);
    const Time both = simulate(machine, full).rank_end[0];
    by_hand.program = full;
    by_hand.profile.buffers.push_back({std::string(kSemaphores), 16});
    by_hand.profile.rows.clear();
    ProfileRow back;
    back.source = peer;
    back.kind = ProfileKind::add;
    back.buffer = 1;
    back.size = 8;
    back.value = 1;
    back.after_buffer = 1;
    back.after_offset = 8;
    back.after_value = 1;
    by_hand.profile.rows = {back};
    const Time alone = by_hand.replay().rank_end[0];
    EXPECT_LT(alone, both) << "nobody has to poll there";
    EXPECT_GT(alone, Time::from_us(10));
    const auto end = [&](std::int64_t delay_us) {
      by_hand.profile.rows[0].time = Time::from_us(delay_us);
      return by_hand.replay().rank_end[0];
    };
    EXPECT_GT(end(40), alone + Time::from_us(30));
    EXPECT_GT(end(80), end(40) + Time::from_us(39));
    EXPECT_LT(end(80), end(40) + Time::from_us(41));
  }
}

TEST(ReplayEngines, that_ranks_share_are_recorded_of_all_of_them) {
  // Two GPUs of each host behind one NIC.
  machine::Machine machine = machine::load("dgx-h100:2");
  std::vector<std::vector<Ops>> bodies(16);
  for (int rank = 0; rank < 2; ++rank) {
    Op op = through_port(transfer(OpKind::put_signal, {at(rank, kInput)}, {at(8 + rank, kOutput)}));
    op.semaphores = {{constant(8 + rank), 0}};
    bodies[static_cast<std::size_t>(rank)] = {{op}};
    bodies[8 + static_cast<std::size_t>(rank)] = {{wait(8 + rank, 0)}};
  }
  // The NIC of GPU 0 is that of GPU 1 as well.
  const auto nic_of = [&](int rank) {
    for (const machine::LinkId link : machine.routes(rank, rank + 8).path(0))
      if (machine.nodes[index(machine.links[index(link)].to)].kind == machine::NodeKind::nic)
        return machine.links[index(link)].to;
    return machine::NodeId{-1};
  };
  const machine::NodeId mine = nic_of(0), other = nic_of(1);
  ASSERT_NE(mine, other);
  for (machine::Link& link : machine.links) {
    if (link.from == other) link.from = mine;
    if (link.to == other) link.to = mine;
  }
  machine.forget_routes();
  const program::Bound program = make(machine, bodies);
  Options options;
  options.watched = {0};
  EXPECT_THAT(compare_engines(machine, program, options).refused,
              HasSubstr("and only rank 0 is recorded"));
  options.watched = {1, 0};
  const Compared both = compare_engines(machine, program, options);
  EXPECT_EQ(both.difference + both.refused, "");
  options.watched = {8};
  const Compared receiver = compare_engines(machine, program, options);
  EXPECT_EQ(receiver.difference + receiver.refused, "");
  EXPECT_GT(receiver.bursts, 0);
}

TEST(ReplayEngines, with_multicast_groups_are_refused_where_links_are_simulated) {
  const machine::Machine machine = machine::load("dgx-h100");
  const program::Bound program =
      built_in("all-reduce/nvls", machine, KiB(16), {{"realization", "multicast"}});
  Options options;
  options.watched = {0, 1};
  EXPECT_THAT(compare_engines(machine, program, options).refused, HasSubstr("multicast groups"));
  options.watched = {0};
  options.at_ports = true;
  EXPECT_THAT(compare_engines(machine, program, options).refused,
              HasSubstr("at the ingress of one rank"));
}

struct ShippedCase {
  const char* program;
  const char* machine;
  int ranks;
  Bytes size;
  std::vector<std::vector<int>> watched;
  Settings parameters{};
};

class ReplayEnginesShipped : public testing::TestWithParam<ShippedCase> {};

TEST_P(ReplayEnginesShipped, give_the_same_times) {
  const ShippedCase& of = GetParam();
  machine::Machine machine = machine::load(of.machine);
  std::vector<int> first(static_cast<std::size_t>(of.ranks));
  std::iota(first.begin(), first.end(), 0);
  machine.place(first);
  const program::Bound program = built_in(of.program, machine, of.size, of.parameters);
  const bool groups = of.program == std::string("all-reduce/nvls");
  std::int64_t bursts = 0;
  for (const std::vector<int>& ranks : of.watched) {
    for (const bool at_ports : {false, true}) {
      if (at_ports && groups) continue;
      Options options;
      options.watched = ranks;
      options.at_ports = at_ports;
      const Compared compared = compare_engines(machine, program, options);
      EXPECT_EQ(compared.difference + compared.refused, "") << (at_ports ? "at ports" : "");
      bursts += compared.bursts;
    }
  }
  EXPECT_EQ(bursts == 0, groups);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, ReplayEnginesShipped,
    testing::Values(
        ShippedCase{
            "all-reduce/ring", "dgx-h100:2", 16, KiB(8), {{8}, {0, 9}}, {{"channels", "2"}}},
        ShippedCase{"all-reduce/nccl",
                    "dgx-h100:2",
                    16,
                    KiB(8),
                    {{0}, {15, 3}, {7, 8}},
                    {{"channels", "1"}}},
        ShippedCase{"reduce-scatter/ring", "dgx-h100:4", 32, KiB(8), {{17}}, {{"channels", "1"}}},
        ShippedCase{"all-gather/direct", "dgx-a100:2", 16, KiB(64), {{8, 1}}},
        ShippedCase{"all-to-all/direct", "dgx-h100:2", 12, KiB(96), {{0}, {11, 8}}},
        ShippedCase{"send-recv/mscclpp-port", "dgx-h100", 2, KiB(64), {{0}, {1}}},
        ShippedCase{"micro/copy",
                    "mi300x-8",
                    8,
                    KiB(64),
                    {{0}, {3, 1}},
                    {{"engine", "proxy"}, {"ways", "all"}}},
        ShippedCase{
            "all-reduce/nvls", "dgx-h100", 8, KiB(128), {{0}, {5}}, {{"realization", "multicast"}}},
        ShippedCase{
            "all-reduce/nvls", "dgx-h100", 4, KiB(64), {{3}}, {{"realization", "multicast"}}}),
    [](const testing::TestParamInfo<ShippedCase>& info) {
      return name_of_case(info.param.program, info.param.machine, info.index);
    });

}  // namespace
}  // namespace hemiola::sim
