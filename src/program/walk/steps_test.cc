// Steps of a tile taken together are those that come one by one.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "plan/template.h"
#include "program/lower/lower.h"
#include "program/walk/cursor.h"

namespace hemiola::program {
namespace {

/// What a walk loads and computes between two primitives that are neither.
struct Stretch {
  std::int64_t computes = 0, loaded = 0, flop = 0;
  std::vector<std::int64_t> first_loads;  ///< offsets of the operands of the first compute
  bool operator==(const Stretch&) const = default;
};
struct Walked {
  std::vector<Stretch> stretches{1};
  std::vector<std::tuple<PrimitiveKind, std::int32_t, std::int64_t>> others;  ///< kind, op, bytes
  bool operator==(const Walked&) const = default;
};

Walked one_by_one(Cursor cursor) {
  Walked walked;
  Primitive primitive;
  while (cursor.next(primitive)) {
    Stretch& stretch = walked.stretches.back();
    if (primitive.kind == PrimitiveKind::move && primitive.posted) {
      stretch.loaded += primitive.bytes;
      if (stretch.computes == 0) stretch.first_loads.push_back(primitive.src.front().offset);
    } else if (primitive.kind == PrimitiveKind::compute) {
      ++stretch.computes;
      stretch.flop += primitive.flop;
    } else {
      walked.others.emplace_back(primitive.kind, primitive.op, primitive.bytes);
      walked.stretches.emplace_back();
    }
  }
  return walked;
}

Walked together(Cursor cursor, const Body& body) {
  Walked walked;
  Primitive primitive;
  ComputeSteps steps;
  while (cursor.next(primitive, steps)) {
    Stretch& stretch = walked.stretches.back();
    if (steps.steps == 0) {
      walked.others.emplace_back(primitive.kind, primitive.op, primitive.bytes);
      walked.stretches.emplace_back();
      continue;
    }
    EXPECT_EQ(primitive.kind, PrimitiveKind::compute);
    stretch.computes += steps.steps;
    for (const ComputeSteps::Read& read : steps.reads) {
      stretch.loaded += read.bytes * read.times;
      if (std::ssize(stretch.first_loads) == read.operand)
        stretch.first_loads.push_back(read.first.offset);
    }
    for (const ComputeSteps::Part& part : steps.parts)
      stretch.flop += body.ops[static_cast<std::size_t>(part.op)].flop * part.times;
  }
  return walked;
}

class Steps : public testing::TestWithParam<const char*> {};

TEST_P(Steps, together_are_those_one_by_one) {
  const plan::Plan plan = plan::make(GetParam(), 4,
                                     {{"m", "256"},
                                      {"n", "128"},
                                      {"k", "256"},
                                      {"tile_m", "32"},
                                      {"tile_n", "32"},
                                      {"tile_k", "16"}});
  const auto program =
      std::make_shared<const Program>(lower(plan, {.workgroups = 2, .compute_workgroups = 3}));
  const Bound bound =
      bind(program, nullptr, {.size = program->fixed_size, .type = DataType::float16});
  std::int64_t computes = 0;
  for (const int rank : {0, 3}) {
    for (const Stream& stream : bound.code(rank).streams) {
      for (const StreamItem& item : stream) {
        if (item.kind != StreamItem::Kind::kernel) continue;
        for (const std::int32_t body :
             bound.kernels()[static_cast<std::size_t>(item.index)].bodies) {
          const Walked expected = one_by_one(Cursor(bound, rank, body));
          const Walked found =
              together(Cursor(bound, rank, body), bound.bodies()[static_cast<std::size_t>(body)]);
          EXPECT_EQ(found.others, expected.others);
          EXPECT_EQ(found.stretches, expected.stretches);
          for (const Stretch& stretch : found.stretches) computes += stretch.computes;
        }
      }
    }
  }
  EXPECT_GT(computes, 0);
}

INSTANTIATE_TEST_SUITE_P(Plans, Steps,
                         testing::Values("ag-gemm/swizzle", "gemm-rs/direct", "gemm-rs/ring",
                                         "ag-gemm/sequence", "gemm-ar/partitioned"));

// What is left of the tiles of a body when everything between them is passed over.
TEST(TileSteps, are_found_behind_what_is_passed_over) {
  const plan::Plan plan = plan::make("ag-gemm/swizzle", 2,
                                     {{"m", "64"},
                                      {"n", "64"},
                                      {"k", "64"},
                                      {"tile_m", "16"},
                                      {"tile_n", "16"},
                                      {"tile_k", "16"}});
  const auto program = std::make_shared<const Program>(lower(plan, {.compute_workgroups = 1}));
  const Bound bound =
      bind(program, nullptr, {.size = program->fixed_size, .type = DataType::float16});
  std::int64_t tiles = 0, steps = 0;
  for (std::size_t body = 0; body < bound.bodies().size(); ++body) {
    Cursor cursor(bound, 0, static_cast<std::int32_t>(body));
    ComputeSteps found;
    while (cursor.skip_to_steps(found)) {
      tiles += found.tiles;
      steps += found.steps * found.tiles;
      EXPECT_EQ(found.stored, 16 * 16 * 2);
    }
  }
  EXPECT_EQ(tiles, 4 * 2);      // 64 x 32 of a rank
  EXPECT_EQ(steps, 4 * 2 * 4);  // 64 along k
}

}  // namespace
}  // namespace hemiola::program
