#include "core/affine.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace hemiola {
namespace {

TEST(Affine, the_left_neighbour_wraps_round) {
  const Affine left = neighbour(-1, 8);
  EXPECT_EQ(left({.rank = 0}), 7);
  EXPECT_EQ(left({.rank = 3}), 2);
}

TEST(Affine, loops_scale_and_offset_apply_in_that_order) {
  const Affine chunk{
      .constant = 1, .rank = 2, .loop = {3, 4}, .modulus = 7, .scale = 10, .offset = 5};
  EXPECT_EQ(chunk({.rank = 1, .loop = {1, 2}}), (1 + 2 + 3 + 8) % 7 * 10 + 5);
}

TEST(Affine, a_value_with_a_modulus_is_always_within_it) {
  EXPECT_TRUE(rc::check([] {
    const auto small = rc::gen::inRange<std::int64_t>(-1000, 1000);
    const auto modulus = *rc::gen::inRange<std::int64_t>(1, 64);
    const Affine expression{
        .constant = *small, .rank = *small, .loop = {*small, *small}, .modulus = modulus};
    const std::int64_t value = expression({.rank = *small, .loop = {*small, *small}});
    RC_ASSERT(value >= 0 && value < modulus);
  }));
}

TEST(Affine, only_expressions_without_variables_are_constant) {
  EXPECT_TRUE(constant(5).is_constant());
  EXPECT_FALSE(own_rank().is_constant());
  EXPECT_FALSE((Affine{.loop = {0, 1}}).is_constant());
}

}  // namespace
}  // namespace hemiola
