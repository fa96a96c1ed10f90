// Ranks that do the same get one code, and steps of a product are a loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "program/bind/bound.h"
#include "program/built_in.h"
#include "program/walk/cursor.h"
#include "program/walk/rotation.h"

namespace hemiola::program {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

Program product(const std::string& name, int ranks, Parameters parameters) {
  parameters.insert(parameters.end(), {{"workgroups", "2"}, {"compute_workgroups", "3"}});
  return load(name, {.ranks = ranks, .parameters = parameters});
}

std::size_t count_ops(const Program& program) {
  return std::accumulate(program.bodies.begin(), program.bodies.end(), std::size_t{0},
                         [](std::size_t sum, const Body& body) { return sum + body.ops.size(); });
}

/// Bytes of a buffer of the rank that its computes load, and how often all of them are loaded.
std::pair<std::set<std::int64_t>, std::int64_t> loaded(const Bound& bound, int rank,
                                                       std::int32_t buffer) {
  std::set<std::int64_t> rows;
  std::int64_t bytes = 0;
  for (const Stream& stream : bound.code(rank).streams) {
    for (const std::int32_t body :
         bound.kernels()[static_cast<std::size_t>(stream.front().index)].bodies) {
      Cursor cursor(bound, rank, body);
      for (Primitive p; cursor.next(p);) {
        if (p.kind != PrimitiveKind::move || !p.posted || p.src.front().buffer != buffer) continue;
        EXPECT_EQ(p.src.front().rank, rank);
        p.src.front().each_part(0, p.bytes, [&](std::int64_t offset, std::int64_t, std::int64_t) {
          rows.insert(offset);
        });
        bytes += p.bytes;
      }
    }
  }
  return {rows, bytes};
}

const Parameters kShape{{"m", "64"},      {"n", "64"},      {"k", "256"},
                        {"tile_m", "16"}, {"tile_n", "16"}, {"tile_k", "16"}};

TEST(LowerSymmetry, ranks_that_do_the_same_up_to_a_rotation_have_one_code) {
  for (const char* name : {"ag-gemm/swizzle", "ag-gemm/ring", "gemm-rs/direct", "gemm-rs/ring",
                           "gemm-rs/collective", "a2a-gemm/direct"}) {
    const Program program = product(name, 4, kShape);
    EXPECT_EQ(program.codes.size(), 1U) << name;
    EXPECT_EQ(program.bodies.size(), 5U) << name;
    const Bound bound = bind(program, nullptr, {.size = program.fixed_size});
    EXPECT_EQ(rotation_of(bound, 1).period, 1) << name;
  }
  EXPECT_EQ(product("ag-gemm/double-ring", 4, kShape).codes.size(), 2U);
}

TEST(LowerSymmetry, ranks_whose_tiles_reach_over_several_blocks_have_codes_of_their_own) {
  Parameters shape = kShape;
  shape[3].second = "32";  // two blocks of 16 rows
  EXPECT_EQ(product("ag-gemm/ring", 4, shape).codes.size(), 2U);
  shape[3].second = "64";
  EXPECT_EQ(product("ag-gemm/ring", 4, shape).codes.size(), 4U);
}

TEST(LowerSymmetry, columns_turn_within_their_rows) {
  const Program program = product("a2a-gemm/direct", 4, kShape);
  const Bound bound = bind(program, nullptr, {.size = program.fixed_size});
  const Rotation rotation = rotation_of(bound, 128);
  const auto buffer = [&](const std::string& name) {
    const auto& all = program.buffers;
    return static_cast<std::size_t>(
        std::find_if(all.begin(), all.end(), [&](const Buffer& b) { return b.name == name; }) -
        all.begin());
  };
  EXPECT_EQ(rotation.period, 1);
  EXPECT_EQ(rotation.turns[buffer("a")], 1);
  EXPECT_EQ(rotation.rows[buffer("a")], 256 * 2);       // [16, 256] of two bytes
  EXPECT_EQ(rotation.rows[buffer("b")], 256 * 64 * 2);  // all of it
  EXPECT_EQ(rotation.turns[buffer("c")], 0);
}

TEST(LowerSymmetry, every_rank_loads_all_of_its_matrices) {
  const Program program = product("a2a-gemm/direct", 4, kShape);
  const Bound bound = bind(program, nullptr, {.size = program.fixed_size});
  for (int rank = 0; rank < 4; ++rank) {
    const auto [rows_a, bytes_a] = loaded(bound, rank, 2);
    EXPECT_EQ(rows_a.size(), 16U * 16);    // rows times tiles along k
    EXPECT_EQ(bytes_a, 4 * 16 * 256 * 2);  // once for every tile of columns
    const auto [rows_b, bytes_b] = loaded(bound, rank, 1);
    EXPECT_EQ(rows_b.size(), 256U * 4);
    EXPECT_EQ(bytes_b, 256 * 64 * 2);
  }
}

TEST(LowerSymmetry, operations_do_not_grow_with_steps_and_ranks) {
  Parameters longer = kShape;
  longer[2].second = "8192";
  const std::size_t few = count_ops(product("ag-gemm/ring", 4, kShape));
  const std::size_t many = count_ops(product("ag-gemm/ring", 4, longer));
  EXPECT_EQ(few, many);
  Parameters wider = kShape;
  wider[0].second = "128";  // twice the tiles, on twice the ranks
  EXPECT_LT(count_ops(product("ag-gemm/ring", 8, wider)), 3 * few);
}

}  // namespace
}  // namespace hemiola::program
