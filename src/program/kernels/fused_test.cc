// Fused kernels: how tiles are dealt, what is refused, and what a program costs for many ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/kernels/fused.h"

namespace hemiola::program {
namespace {

using ::testing::HasSubstr;
using Order = Dealing::Order;

Program kernel_of(const std::string& name, int ranks,
                  const std::vector<std::pair<std::string, std::string>>& parameters = {}) {
  return load(name, {.ranks = ranks, .parameters = parameters});
}

std::string kernel_refusal(const std::string& name, int ranks,
                           const std::vector<std::pair<std::string, std::string>>& parameters) {
  try {
    kernel_of(name, ranks, parameters);
  } catch (const Failure& failure) {
    const Diagnostic& first = failure.diagnostics().items().front();
    return first.message + "; " + first.hint;
  }
  return "taken";
}

TEST(Dealing, every_tile_has_one_workgroup_and_all_are_evenly_loaded) {
  for (const std::int64_t tiles : {1, 3, 8, 20}) {
    for (const std::int64_t workgroups : {1, 3, 8, 32}) {
      for (const Order order : {Order::remote_first, Order::own_first, Order::spread}) {
        const Dealing dealing{4, tiles, workgroups, order};
        std::set<std::pair<int, std::int64_t>> seen;
        std::int64_t least = 1 << 20, most = 0;
        for (std::int64_t w = 0; w < workgroups; ++w) {
          std::int64_t own = 0;
          for (int i = 0; i < 4; ++i) {
            const int position = dealing.position(w, i);
            const std::int64_t group = dealing.group(position, w);
            for (std::int64_t t = 0; group >= 0 && t < dealing.in_group(group); ++t, ++own) {
              const std::int64_t tile = group + t * dealing.groups();
              EXPECT_LT(tile, tiles);
              EXPECT_TRUE(seen.insert({dealing.distance(position), tile}).second);
            }
          }
          least = std::min(least, own);
          most = std::max(most, own);
        }
        EXPECT_EQ(std::ssize(seen), 4 * tiles);
        EXPECT_LE(most - least, tiles <= workgroups ? 1 : 4) << tiles << " on " << workgroups;
      }
    }
  }
}

TEST(Dealing, the_own_tiles_are_first_or_last_and_peers_one_by_one_or_all_at_once) {
  const auto first = [](Order order, std::int64_t workgroup, int i) {
    const Dealing dealing{4, 9, 3, order};
    return dealing.distance(dealing.position(workgroup, i));
  };
  for (const std::int64_t w : {0, 1, 2}) {
    EXPECT_EQ(first(Order::own_first, w, 0), 0);
    EXPECT_EQ(first(Order::remote_first, w, 0), 1);
    EXPECT_EQ(first(Order::remote_first, w, 3), 0);
    EXPECT_EQ(first(Order::spread, w, 0), 1 + w);
    EXPECT_EQ(first(Order::spread, w, 3), 0);
  }
}

TEST(FusedPrograms, have_one_size_that_of_what_is_moved) {
  const Program gemv = kernel_of("gemv-ar/fused", 8, {{"m", "1024"}, {"n", "2"}});
  EXPECT_EQ(gemv.fixed_size, Bytes{1024 * 2 * 2});
  EXPECT_EQ(gemv.fixed_type, DataType::float16);
  EXPECT_EQ(bind(gemv, nullptr, {.size = gemv.fixed_size}).size(), gemv.fixed_size);
  EXPECT_THROW(bind(gemv, nullptr, {.size = KiB(64)}), Failure);
}

TEST(FusedPrograms, that_do_not_divide_are_refused_with_what_does) {
  EXPECT_THAT(kernel_refusal("gemv-ar/fused", 4, {{"m", "1000"}}),
              HasSubstr("cannot divide m = 1000 into 4 chunks of whole tiles of 16 rows; m is a "
                        "multiple of 64: 960 or 1024"));
  EXPECT_THAT(kernel_refusal("gemv-ar/unfused", 3, {{"m", "48"}}),
              HasSubstr("cannot divide k = 8192"));
  EXPECT_THAT(kernel_refusal("gemm-a2a/fused", 4, {{"n", "100"}}),
              HasSubstr("into tiles of 128 columns"));
  EXPECT_THAT(kernel_refusal("embedding-a2a/fused", 4, {{"slice", "50"}}),
              HasSubstr("tiles of 16 bags"));
  EXPECT_THAT(kernel_refusal("embedding-a2a/fused", 4, {{"lookups", "9"}, {"rows", "4"}}),
              HasSubstr("cannot look up 9 of 4 rows"));
  EXPECT_THAT(kernel_refusal("gemv-ar/fused", 4, {{"m", "0"}}), HasSubstr("cannot be 0"));
  EXPECT_THAT(kernel_refusal("gemv-ar/fused", 4, {{"skew", "5"}}), HasSubstr("a time such as 5us"));
  EXPECT_THAT(kernel_refusal("gemv-ar/fused", 4, {{"threads", "32"}}),
              HasSubstr("from 256 to 1024"));
  EXPECT_THAT(kernel_refusal("gemv-ar/fused", 4, {{"tile", "32"}}),
              HasSubstr("no parameter 'tile'"));
  EXPECT_THAT(kernel_refusal("embedding-a2a/fused", 4, {{"order", "spread"}}),
              HasSubstr("it takes remote-first, own-first"));
}

/// How late each rank starts, us.
std::vector<double> starts(const std::vector<std::pair<std::string, std::string>>& parameters) {
  std::vector<std::pair<std::string, std::string>> all = parameters;
  all.emplace_back("m", "256");
  const Program program = kernel_of("gemv-ar/fused", 4, all);
  std::vector<double> late;
  for (const std::int32_t code : program.code_of) {
    const StreamItem& first = program.codes.at(static_cast<std::size_t>(code)).streams[0][0];
    late.push_back(
        first.kind == StreamItem::Kind::host ? static_cast<double>(first.duration.fs) * 1e-9 : 0);
  }
  return late;
}

TEST(FusedPrograms, start_as_late_as_they_are_told_to) {
  EXPECT_THAT(starts({}), testing::ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(starts({{"skew", "6us"}}), testing::ElementsAre(0, 0, 0, 6));
  const std::vector<double> linear = starts({{"skew", "6us"}, {"late", "linear"}});
  EXPECT_NEAR(linear[1], 2, 1e-4);
  EXPECT_NEAR(linear[2], 4, 1e-4);
  const std::vector<std::pair<std::string, std::string>> random{{"skew", "6us"},
                                                                {"late", "random"}};
  EXPECT_EQ(starts(random), starts(random));
  std::vector<std::pair<std::string, std::string>> other = random;
  other.emplace_back("seed", "1");
  EXPECT_NE(starts(random), starts(other));
  for (const double late : starts(other)) EXPECT_TRUE(late >= 0 && late <= 6) << late;
}

/// Operations, operands and semaphores that a program names.
std::int64_t parts(const Program& program) {
  std::int64_t count = std::ssize(program.semaphores) + std::ssize(program.codes);
  for (const Body& body : program.bodies)
    for (const Op& op : body.ops)
      count += 1 + std::ssize(op.src) + std::ssize(op.dst) + std::ssize(op.semaphores);
  return count;
}

TEST(FusedPrograms, grow_with_the_ranks_and_not_with_their_square) {
  // Two tiles for each rank: what a rank does grows with the ranks, and all share it.
  const auto of = [](int ranks) {
    const std::string rows = std::to_string(32 * ranks);
    return parts(kernel_of("gemv-ar/fused", ranks, {{"m", rows}, {"k", rows}}));
  };
  const std::int64_t few = of(64), many = of(1024);
  EXPECT_LT(many, 20 * few);
  EXPECT_LT(many, 64 * 1024);
}

}  // namespace
}  // namespace hemiola::program
