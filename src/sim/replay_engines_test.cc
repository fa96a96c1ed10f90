// What copy engines, NICs and switches of multicast groups do to a rank is recorded, too: replayed,
// it ends at the same femtosecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>

#include "sim/random_groups.h"

namespace hemiola::sim {
namespace {

using namespace test;
using ::testing::HasSubstr;

/// Empty if the watched ranks end when they did. Why, if they cannot be recorded.
struct Compared {
  std::string difference, refused;
  std::int64_t bursts = 0;  ///< rows
};

Compared compare(const machine::Machine& machine, const program::Program& program,
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
      compared.difference = machine.name + " " + program.name + ": rank " + std::to_string(rank) +
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
      const program::Program program = any_exchange(machine);
      const Compared compared = compare(machine, program, any_recording(program.ranks));
      if (!compared.difference.empty()) RC_FAIL(compared.difference);
      bursts += compared.bursts;
    }
  }));
  EXPECT_GT(bursts, 50);
}

TEST(ReplayEngines, give_the_same_times_on_random_networks) {
  std::int64_t bursts = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const machine::Machine machine = any_network();
    const program::Program program = any_exchange(machine);
    const Compared compared = compare(machine, program, any_recording(program.ranks));
    if (!compared.difference.empty()) RC_FAIL(compared.difference);
    bursts += compared.bursts;
  }));
  EXPECT_GT(bursts, 50);
}

TEST(ReplayEngines, give_the_same_times_on_random_planes) {
  std::int64_t compared_runs = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const machine::Machine machine = any_nvls();
    const program::Program program = any_group_exchange(machine);
    Options options = any_recording(program.ranks);
    options.at_ports = false;
    options.watched.resize(1);
    const Compared compared = compare(machine, program, options);
    if (!compared.difference.empty()) RC_FAIL(compared.difference);
    compared_runs += compared.refused.empty() ? 1 : 0;
  }));
  EXPECT_GT(compared_runs, 90);
}

struct Case {
  const char* program;
  const char* machine;
  int ranks;
  Bytes size;
  std::vector<std::vector<int>> watched;
  Settings parameters{};
};

class ReplayEnginesShipped : public testing::TestWithParam<Case> {};

TEST_P(ReplayEnginesShipped, give_the_same_times) {
  const Case& of = GetParam();
  machine::Machine machine = machine::load(of.machine);
  std::vector<int> first(static_cast<std::size_t>(of.ranks));
  std::iota(first.begin(), first.end(), 0);
  machine.place(first);
  const program::Program program = built_in(of.program, machine, of.size, of.parameters);
  const bool groups = of.program == std::string("all-reduce/nvls");
  std::int64_t bursts = 0;
  for (const std::vector<int>& ranks : of.watched) {
    for (const bool at_ports : {false, true}) {
      if (at_ports && groups) continue;
      Options options;
      options.watched = ranks;
      options.at_ports = at_ports;
      const Compared compared = compare(machine, program, options);
      EXPECT_EQ(compared.difference + compared.refused, "") << (at_ports ? "at ports" : "");
      bursts += compared.bursts;
    }
  }
  EXPECT_EQ(bursts == 0, groups);
}

INSTANTIATE_TEST_SUITE_P(
    Machines, ReplayEnginesShipped,
    testing::Values(
        Case{"all-reduce/ring", "dgx-h100:2", 16, KiB(32), {{8}, {0, 9}}},
        Case{"all-reduce/nccl",
             "dgx-h100:2",
             16,
             KiB(8),
             {{0}, {15, 3}, {7, 8}},
             {{"channels", "1"}}},
        Case{"reduce-scatter/ring", "dgx-h100:4", 32, KiB(8), {{0}, {17}}, {{"channels", "1"}}},
        Case{"all-gather/direct", "dgx-a100:2", 16, KiB(64), {{0}, {8, 1}}},
        Case{"all-to-all/direct", "dgx-h100:2", 12, KiB(96), {{0}, {11, 8}}},
        Case{
            "all-reduce/nvls", "dgx-h100", 8, KiB(128), {{0}, {5}}, {{"realization", "multicast"}}},
        Case{"all-reduce/nvls", "dgx-h100", 4, KiB(64), {{3}}, {{"realization", "multicast"}}}),
    [](const testing::TestParamInfo<Case>& info) {
      std::string name = info.param.program + std::string("_") + info.param.machine;
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name + "_" + std::to_string(info.index);
    });

}  // namespace
}  // namespace hemiola::sim
