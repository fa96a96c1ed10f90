// A kernel and a plan as one: waves, parts, refusals, and that what is written is judged again.
#include "compile/fuse/fusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/emit/fused_kernel.h"
#include "core/testing/failure.h"
#include "plan/template.h"

namespace hemiola::compile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

plan::Plan made(const char* name, int ranks) {
  return plan::make(name, ranks, {{"m", "128"}, {"n", "64"}, {"k", "64"}});
}

/// Everything that belongs to the fusion of a kernel of examples/kernels.
struct Fused {
  Fused(const char* kernel, const plan::Plan& plan, ParameterValues constants)
      : module(library.load(HEMIOLA_SOURCE_DIR "/examples/kernels/" + std::string(kernel) + ".py")),
        description(
            describe(library, module, {.file = module.source.file(), .kernel = {}, .helpers = {}})),
        grids(grids_of(plan, "plan.json")),
        fusions(fuse(description, grids,
                     {.plan_file = "plan.json", .constants = std::move(constants)})),
        fusion(fusions.front()) {}

  Library library;
  const Module& module;
  Description description;
  Grids grids;
  Fusions fusions;
  Fusion& fusion;
};

class FusionsOfPlans : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }
};

const ParameterValues kSmall{{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "32"}};

TEST_F(FusionsOfPlans, take_chunks_in_the_order_in_which_they_arrive) {
  const plan::Plan plan = made("ag-gemm/ring", 4);
  const Fused one("gemm", plan, kSmall);
  const std::vector<FusedWave>& waves = one.fusion.ranks[2].waves;
  ASSERT_EQ(waves.size(), 4U);
  std::vector<std::int64_t> firsts;
  for (const FusedWave& wave : waves) firsts.push_back(wave.box.begin[0]);
  // The own rows, then those of the rank before, as the ring brings them.
  EXPECT_THAT(firsts, ElementsAre(64, 32, 0, 96));
  EXPECT_TRUE(waves[0].needs.empty());
  EXPECT_EQ(waves[1].needs, (std::vector<Point>{{1, 0, 0}}));
  EXPECT_EQ(waves[3].needs, (std::vector<Point>{{1, 0, 2}}));
  EXPECT_TRUE(one.fusion.waits());
  EXPECT_FALSE(one.fusion.signals());
}

TEST_F(FusionsOfPlans, tell_the_ranks_that_take_what_tiles_make) {
  const plan::Plan plan = made("gemm-rs/direct", 4);
  const Fused one("gemm", plan, kSmall);
  const FusedRank& rank = one.fusion.ranks[1];
  ASSERT_EQ(rank.parts.size(), 4U);
  for (const FusedWave& wave : rank.waves) {
    ASSERT_GE(wave.part, 0);
    EXPECT_THAT(rank.parts[static_cast<std::size_t>(wave.part)].told,
                ElementsAre(static_cast<int>(wave.box.begin[0] / 32)));
  }
  EXPECT_EQ(rank.waves.back().box.begin[0], 32);  // what the own rank takes comes last
}

TEST_F(FusionsOfPlans, name_the_blocks_that_fit_where_tiles_straddle_chunks) {
  const plan::Plan plan = made("ag-gemm/swizzle", 4);
  const std::string said = test::message_of([&] {
    const Fused one("gemm", plan, {{"BLOCK_M", "64"}, {"BLOCK_N", "16"}, {"BLOCK_K", "32"}});
  });
  EXPECT_THAT(said,
              HasSubstr("tiles of 64 elements along M straddle chunks, one of which ends at 32"));
  EXPECT_THAT(said, HasSubstr("BLOCK_M: 16, 32"));
}

TEST_F(FusionsOfPlans, find_a_kernel_that_would_wait_for_its_own_later_tiles) {
  // Rows that arrive only once the last rows are computed, which stand behind them in the order.
  plan::Plan plan = made("ag-gemm/swizzle", 2);
  const Fused one("gemm", plan, kSmall);
  Fusion fusion = one.fusion;
  ASSERT_EQ(fusion.ranks[0].waves.size(), 2U);
  EXPECT_NO_THROW(prove_progress(plan, {fusion}, "plan.json"));
  fusion.ranks[0].parts.resize(1);
  fusion.ranks[0].waves[1].part = 0;
  fusion.part_waits[fusion.ranks[0].waves[1].needs.front()] = {{.rank = 0, .part = 0}};
  try {
    prove_progress(plan, {fusion}, "plan.json");
    FAIL() << "it waits for itself";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    EXPECT_THAT(failure.what(), HasSubstr("rank 0's kernel would wait for ever: wave 1"));
  }
}

TEST_F(FusionsOfPlans, are_proven_to_take_every_tile_once) {
  const plan::Plan plan = made("ag-gemm/swizzle", 4);
  Fused one("gemm_grouped", plan, {{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"GROUP_M", "3"}});
  EXPECT_NO_THROW(prove_order(one.fusion));
  const_cast<Description*>(one.fusion.kernel)->axes[0].formula = "tl.program_id(0) % 2";
  EXPECT_THROW(prove_order(one.fusion), Failure);
}

}  // namespace
}  // namespace hemiola::compile
