// What a profile has to have: with it a replay ends, without any one of its rows it does not.
#include "study/profiles/needed_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "machine/machine.h"
#include "sim/result/profile.h"
#include "sim/simulate.h"
#include "study/profiles/profile_file.h"

namespace hemiola::study {
namespace {

program::Bound bound(const char* name, const machine::Machine& machine, Bytes size,
                     std::vector<std::pair<std::string, std::string>> parameters = {}) {
  const program::Program loaded = program::load(name, {.ranks = machine.ranks(),
                                                       .parameters = std::move(parameters),
                                                       .machine = machine::share(machine)});
  if (loaded.fixed_size.count > 0) size = loaded.fixed_size;
  return program::bind(loaded, machine::share(machine), {.size = size});
}

TEST(NeededRows, let_the_rank_end_as_a_profile_from_a_file) {
  const std::tuple<const char*, const char*, Bytes> cases[] = {
      {"all-reduce/ring", "dgx-h100", KiB(64)},
      {"all-reduce/ring", "ring:5", MiB(20)},  // its FIFO slots are used again
      {"all-reduce/two-shot", "dgx-h100", KiB(64)},
      {"all-reduce/nccl", "dgx-h100", KiB(64)},  // packets
      {"all-to-all/direct", "dgx-h100:2", KiB(32)},
      {"gemv-ar/fused", "switch:4", {}}};
  for (const auto& [name, where, size] : cases) {
    const machine::Machine machine = machine::load(where);
    const program::Bound program = bound(name, machine, size);
    for (const std::vector<int>& ranks : {std::vector<int>{0}, {machine.ranks() - 1, 1}}) {
      const NeededRows needed = needed_rows(program, ranks);
      EXPECT_FALSE(needed.flags.empty());
      const sim::Profile read = read_profile(write_profile_csv(needed.profile), "needed.csv");
      EXPECT_EQ(read.rows, needed.profile.rows) << name;
      const sim::Result result = sim::simulate(program, {.replay = &read, .watched = ranks});
      EXPECT_GT(result.time, Time{}) << name << " on " << where;
    }
  }
}

TEST(NeededRows, are_all_needed) {
  const machine::Machine machine = machine::load("dgx-h100");
  const program::Bound program =
      bound("all-reduce/two-shot", machine, KiB(64), {{"workgroups", "1"}});
  const NeededRows needed = needed_rows(program, {0});
  ASSERT_FALSE(needed.profile.rows.empty());
  for (std::size_t r = 0; r < needed.profile.rows.size(); ++r) {
    sim::Profile without = needed.profile;
    without.rows.erase(without.rows.begin() + static_cast<std::ptrdiff_t>(r));
    try {
      sim::simulate(program, {.replay = &without});
      ADD_FAILURE() << "row " << r << " is not needed";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::deadlock);
    }
  }
}

TEST(NeededRows, name_flags_as_the_program_does) {
  const machine::Machine machine = machine::load("switch:4");
  const program::Bound program =
      bound("gemv-ar/fused", machine, {}, {{"m", "64"}, {"k", "64"}, {"workgroups", "1"}});
  const NeededRows needed = needed_rows(program, {2});
  ASSERT_EQ(needed.flags.size(), 6U) << "a ready and a gathered flag of each of the others";
  std::int64_t rows = 0;
  for (const NeededFlag& flag : needed.flags) {
    EXPECT_EQ(flag.rank, 2);
    EXPECT_NE(flag.source, 2);
    EXPECT_EQ(flag.kind, sim::ProfileKind::add);
    EXPECT_EQ(flag.buffer, sim::kSemaphores);
    EXPECT_EQ(flag.end, flag.offset + 8);
    EXPECT_THAT(flag.name, testing::HasSubstr("of the rank"));
    rows += flag.rows;
  }
  EXPECT_EQ(rows, std::ssize(needed.profile.rows));
}

}  // namespace
}  // namespace hemiola::study
