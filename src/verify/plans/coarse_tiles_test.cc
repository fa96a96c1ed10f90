// Coarse tiles: as large as the plan lets them be, and proven exactly where the plan's own are.
#include "verify/plans/coarse_tiles.h"

#include <gtest/gtest.h>

#include "plan/template.h"
#include "verify/testing/mutants.h"
#include "verify/testing/plans.h"

namespace hemiola::verify {
namespace {

using namespace test;

std::int64_t tile_of(const plan::Plan& plan, std::size_t compute, const std::string& axis) {
  for (const plan::ComputeAxis& own : plan.codes.front().computes[compute].axes)
    if (own.name == axis) return own.tile;
  return -1;
}

plan::Plan made(const char* name, int ranks, plan::Parameters more = {}) {
  more.insert(
      more.end(),
      {{"m", "128"}, {"n", "64"}, {"k", "64"}, {"tile_m", "8"}, {"tile_n", "8"}, {"tile_k", "8"}});
  return plan::make(name, ranks, more);
}

// What arrives together is one tile; the depth of the product never matters.
TEST(CoarseTiles, reach_as_far_as_a_region) {
  const auto gathered = with_coarse_tiles(made("ag-gemm/swizzle", 4));
  ASSERT_TRUE(gathered);
  EXPECT_EQ(tile_of(*gathered, 0, "m"), 128 / 4);  // the rows of a rank
  EXPECT_EQ(tile_of(*gathered, 0, "n"), 64 / 4);   // all columns of a rank
  EXPECT_EQ(tile_of(*gathered, 0, "k"), 64);
  const auto scattered = with_coarse_tiles(made("gemm-rs/direct", 4));
  ASSERT_TRUE(scattered);
  EXPECT_EQ(tile_of(*scattered, 0, "m"), 128 / 4);  // what a peer pulls
  EXPECT_EQ(tile_of(*scattered, 0, "n"), 64);
  // Launches that add to each other's results keep their tiles of these.
  const plan::Plan sequence = made("ag-gemm/sequence", 4, {{"axis", "k"}, {"degree", "2"}});
  const auto launches = with_coarse_tiles(sequence);
  ASSERT_TRUE(launches);
  EXPECT_EQ(tile_of(*launches, 0, "m"), tile_of(sequence, 0, "m"));
  EXPECT_GT(tile_of(*launches, 0, "k"), tile_of(sequence, 0, "k"));
}

TEST(CoarseTiles, are_none_where_nothing_is_computed) {
  EXPECT_FALSE(with_coarse_tiles(plan::make("all-gather/ring", 4)));
}

// A tile that waits for too little is a race with either size, and a cycle is one.
TEST(CoarseTiles, of_mutants_are_proven_where_the_own_tiles_are) {
  std::vector<plan::Plan> good;
  for (const char* name : {"ag-gemm/swizzle", "ag-gemm/ring", "gemm-rs/direct", "gemm-rs/ring",
                           "ag-gemm/sequence", "gemm-rs/sequence", "a2a-gemm/direct"})
    good.push_back(written_out(made(name, 2, {{"m", "32"}, {"n", "32"}, {"k", "32"}})));
  good.push_back(written_out(multiply_and_all_reduce(2)));
  int proven = 0, rejected = 0, coarse = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto mutant = mutate(good[seed % good.size()], seed);
    if (!mutant) continue;
    const auto larger = with_coarse_tiles(mutant->plan);
    if (!larger) continue;
    ++coarse;
    const Proof own = check_tile_by_tile(mutant->plan);
    const Proof found = check_tile_by_tile(*larger);
    EXPECT_EQ(found.verdict == Verdict::proven, own.verdict == Verdict::proven)
        << mutant->plan.name << " " << mutant->change << "\n  own: " << own.summary
        << "\n  coarse: " << found.summary;
    EXPECT_EQ(check(mutant->plan).summary, own.summary);
    (own.verdict == Verdict::proven ? proven : rejected)++;
  }
  EXPECT_GT(proven, 10);
  EXPECT_GT(rejected, 50);
  EXPECT_GT(coarse, 100);
}

}  // namespace
}  // namespace hemiola::verify
