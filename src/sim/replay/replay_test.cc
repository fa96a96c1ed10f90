// A rank that is replayed from what it saw in a full simulation does the same at the same times.
#include <gtest/gtest.h>

#include "core/testing/long_tests.h"
#include "sim/result/profile.h"
#include "sim/simulate.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

struct ReplayCase {
  const char* program;
  const char* machine;
  Bytes size;
  std::vector<std::pair<std::string, std::string>> parameters{};
};

program::Bound bound(const ReplayCase& of, const machine::Machine& machine) {
  const program::Program loaded = program::load(
      of.program,
      {.ranks = machine.ranks(), .parameters = of.parameters, .machine = machine::share(machine)});
  const Bytes size = loaded.fixed_size.count > 0
                         ? loaded.fixed_size
                         : loaded.next_legal_size(of.size, DataType::float32);
  return program::bind(loaded, machine::share(machine), {.size = size});
}

class Replay : public testing::TestWithParam<ReplayCase> {};

TEST_P(Replay, of_a_recording_ends_when_the_recorded_rank_did) {
  const machine::Machine machine = machine::load(GetParam().machine);
  const program::Bound program = bound(GetParam(), machine);
  for (const int rank : {0, machine.ranks() - 1}) {
    Profile profile;
    const Result full = simulate(program, {.record = &profile, .watched = {rank}});
    EXPECT_EQ(full.time, simulate(program).time) << "recording changes nothing";
    ASSERT_FALSE(profile.rows.empty());
    const Result alone = simulate(program, {.replay = &profile, .watched = {rank}});
    EXPECT_EQ(alone.rank_end.at(static_cast<std::size_t>(rank)),
              full.rank_end.at(static_cast<std::size_t>(rank)));
    EXPECT_LT(alone.visited_hops, full.visited_hops);
  }
}

// Several detailed ranks share links with each other and with the rest.
TEST_P(Replay, of_several_ranks_ends_when_these_did) {
  const machine::Machine machine = machine::load(GetParam().machine);
  const program::Bound program = bound(GetParam(), machine);
  for (const std::vector<int>& ranks :
       {std::vector<int>{0, 2}, std::vector<int>{3, 0, 1}, std::vector<int>{1}}) {
    for (const bool at_ports : {false, true}) {
      // One recorded at its slices, one at its ports; one rank alone: the test above.
      const std::size_t usual = at_ports ? 3 : 2;
      if (ranks.size() != usual && !long_tests()) continue;
      Profile profile;
      const Result full =
          simulate(program, {.record = &profile, .watched = ranks, .at_ports = at_ports});
      EXPECT_EQ(profile.at_ports, at_ports);
      const Result alone = simulate(program, {.replay = &profile, .watched = ranks});
      for (const int rank : ranks)
        EXPECT_EQ(alone.rank_end.at(static_cast<std::size_t>(rank)),
                  full.rank_end.at(static_cast<std::size_t>(rank)))
            << rank << " of " << ranks.size() << (at_ports ? " from ports" : "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Replay,
    testing::Values(
        ReplayCase{"all-reduce/ring", "dgx-h100", KiB(256)},
        ReplayCase{"all-reduce/ring", "ring:5", KiB(40)},
        ReplayCase{"all-reduce/two-shot", "dgx-h100", KiB(256)},
        ReplayCase{"all-reduce/one-shot", "dgx-a100", KiB(64)},
        ReplayCase{"all-gather/direct", "dgx-h100", KiB(256), {{"transfer", "pull"}}},
        ReplayCase{"all-gather/direct", "torus:2x2", KiB(64)},
        ReplayCase{"all-to-all/direct", "mi300x-8", KiB(256)},
        ReplayCase{"reduce-scatter/direct", "dgx1-v100", KiB(256)},
        ReplayCase{"all-reduce/halving-doubling", "switch:4", KiB(64)},
        ReplayCase{"all-reduce/nccl", "dgx-h100", KiB(64)},
        ReplayCase{"all-reduce/nccl", "dgx-h100", KiB(256), {{"protocol", "ll128"}}},
        ReplayCase{"all-reduce/vllm-one-stage", "dgx-h100", KiB(64)},
        ReplayCase{"gemv-ar/fused", "dgx-h100", {}, {{"m", "1024"}, {"k", "1024"}}},
        ReplayCase{"gemv-ar/fused",
                   "mi300x-8",
                   {},
                   {{"m", "1024"}, {"k", "512"}, {"skew", "7us"}, {"late", "linear"}}},
        ReplayCase{
            "gemv-ar/unfused", "switch:4", {}, {{"m", "512"}, {"k", "512"}, {"skew", "3us"}}},
        ReplayCase{
            "gemm-a2a/fused",
            "dgx-h100",
            {},
            {{"m", "1024"}, {"n", "256"}, {"k", "128"}, {"skew", "4us"}, {"order", "spread"}}},
        ReplayCase{"gemm-a2a/unfused", "torus:2x2", {}, {{"m", "512"}, {"n", "256"}, {"k", "128"}}},
        ReplayCase{"embedding-a2a/fused",
                   "mi300x-8",
                   {},
                   {{"batch", "128"},
                    {"dim", "64"},
                    {"lookups", "8"},
                    {"skew", "9us"},
                    {"late", "random"}}},
        ReplayCase{"embedding-a2a/unfused",
                   "ring:4",
                   {},
                   {{"batch", "128"}, {"dim", "64"}, {"lookups", "4"}}}),
    [](const testing::TestParamInfo<ReplayCase>& info) {
      return test::name_of_case(info.param.program, info.param.machine, info.index);
    });

}  // namespace
}  // namespace hemiola::sim
