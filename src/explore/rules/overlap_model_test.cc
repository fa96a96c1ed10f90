#include "explore/rules/overlap_model.h"

#include <gtest/gtest.h>

#include <array>

#include "machine/devices/gemm_model.h"
#include "machine/machine.h"

namespace hemiola::explore {
namespace {

const machine::Machine& mesh() {
  static const machine::Machine machine = machine::load("mi300x-8");
  return machine;
}

PieceModel pieces_of(DataType type = DataType::bfloat16) {
  return PieceModel::of(mesh().model(0), type);
}

TEST(PieceModel, a_tile_too_many_is_a_wave) {
  const PieceModel model = pieces_of();
  Pieces pieces{.rows = 256, .columns = 304 * 128, .depth = 4096, .places = 304};
  const double one = model.time({256, 128}, pieces, false, {});
  pieces.columns += 128;
  const double more = model.time({256, 128}, pieces, false, {});
  EXPECT_GT(more, 1.4 * one);  // the last wave is one tile, which the power limit does not slow
  EXPECT_LT(more, 1.9 * one);
  pieces.columns = 608 * 128;
  EXPECT_GT(model.time({256, 128}, pieces, false, {}), 1.9 * one);
  // Transfers beside it take units.
  pieces.columns = 304 * 128;
  pieces.places = 296;
  EXPECT_GT(model.time({256, 128}, pieces, false, {}), 1.3 * one);
}

TEST(PieceModel, pieces_lose_what_the_whole_has) {
  const PieceModel model = pieces_of();
  const Pieces whole{.rows = 8192, .columns = 8192, .depth = 8192, .places = 304};
  const double once = model.time({256, 256}, whole, false, {});
  Pieces deep = whole;
  deep.depth /= 8;
  const double steps = 8 * model.time({256, 256}, deep, false, {});
  EXPECT_GT(steps, once);  // results are stored eight times
  deep.adds = true;
  EXPECT_GE(8 * model.time({256, 256}, deep, false, {}), steps);
  // The device's model of products says about the same of the whole. It lets the power limit catch
  // up behind the stores of results, which engines, and this model, do not: 13 % here.
  const double estimate = static_cast<double>(
      machine::estimate_gemm(mesh().model(0), {.m = 8192, .n = 8192, .k = 8192},
                             {.split_k = 1, .tile = Tile{256, 256}, .steady = true})
          .time.fs);
  EXPECT_NEAR(once / estimate, 1, 0.15);
}

TEST(PieceModel, side_by_side_launches_fill_each_others_waves) {
  const PieceModel model = pieces_of();
  Pieces pieces{.blocks = 4, .rows = 1024, .columns = 1024, .depth = 4096, .places = 304};
  const double fused = model.time({128, 128}, pieces, false, {});
  pieces.together = 4;
  EXPECT_NEAR(model.time({128, 128}, pieces, false, {}) / fused, 1, 1e-9);
  Pieces alone = pieces;
  alone.blocks = alone.together = 1;
  EXPECT_GT(4 * model.time({128, 128}, alone, false, {}), 1.5 * fused);
  EXPECT_EQ(model.terms(256, 256, false).occupancy(), 1);
  EXPECT_EQ(model.terms(256, 128, false).occupancy(), 2);
}

TEST(PieceModel, narrow_types_take_half_the_time) {
  const Pieces pieces{.rows = 8192, .columns = 8192, .depth = 8192, .places = 304};
  const double wide = pieces_of().time({256, 256}, pieces, false, {});
  const double narrow = pieces_of(DataType::fp8_e4m3).time({256, 256}, pieces, false, {});
  EXPECT_NEAR(narrow / wide, 0.5, 0.06);
}

OverlapCase gathered() {
  return OverlapCase::of({.ranks = 8, .m = 8192, .n = 28672, .k = 8192}, pieces_of());
}

TEST(OverlapModel, time_is_between_the_longer_of_both_and_their_sum) {
  const PieceModel pieces = pieces_of();
  const OverlapCase of = gathered();
  const std::array<TileTerms, 2> tiles{pieces.terms(256, 256, of.cached),
                                       pieces.terms(256, 128, of.cached)};
  const OverlapModel model(pieces, of, tiles);
  const double whole = model.whole();
  for (const double moving : {0.1 * whole, whole, 3 * whole}) {
    for (const bool hetero : {false, true}) {
      const Transfers transfers{.chunk = moving / 4, .places = 304};
      const Steps steps{.family = {Division::rows, hetero, true}, .degree = 4};
      const double time =
          model.time(steps, transfers, model.step(steps, transfers), model.block(304));
      EXPECT_GT(time, std::max(moving, 0.95 * whole));
      EXPECT_LT(time, 1.3 * (moving + whole));
    }
  }
}

TEST(OverlapModel, own_rows_hide_the_first_chunk_or_are_added_in_the_end) {
  const PieceModel pieces = pieces_of();
  const std::array<TileTerms, 1> tile{pieces.terms(256, 256, false)};
  const OverlapCase gathers = gathered();
  const OverlapModel gather(pieces, gathers, tile);
  const double own = gather.block(304);
  const Transfers transfers{.chunk = own, .places = 304};
  const auto time = [&](const OverlapModel& model, bool hetero, const Transfers& moved) {
    const Steps steps{.family = {Division::rows, hetero, true}, .degree = 4};
    return model.time(steps, moved, model.step(steps, moved), own);
  };
  EXPECT_LT(time(gather, true, transfers), time(gather, false, transfers));
  const OverlapCase scatters = OverlapCase::of(
      {.kind = OperatorKind::gemm_rs, .ranks = 8, .m = 8192, .n = 8192, .k = 8192}, pieces);
  const OverlapModel scatter(pieces, scatters, tile);
  const Transfers long_ones{.chunk = 10 * own, .sum = own, .places = 304};
  EXPECT_NEAR(time(scatter, true, long_ones) - time(scatter, false, long_ones), own,
              own);  // 4 steps x 2 of 8 blocks that are read to add up
}

}  // namespace
}  // namespace hemiola::explore
