#include "core/affine.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "core/diagnostics.h"

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

Affine any_affine() {
  const auto small = [] { return *rc::gen::inRange<std::int64_t>(-9, 10); };
  Affine value{.constant = small(), .rank = small(), .loop = {small(), small()}};
  value.modulus = *rc::gen::inRange<std::int64_t>(0, 9);
  value.scale = small();
  value.offset = small();
  return value;
}

TEST(Affine, text_reads_back_as_the_same_function) {
  EXPECT_TRUE(rc::check("round trip", [] {
    const Affine value = any_affine();
    const std::string text = to_string(value);
    const Affine again = parse_affine(text);
    RC_ASSERT(again == normalised(value) || value.scale == 0);
    RC_ASSERT(to_string(again) == text || value.scale == 0);
    for (std::int64_t rank = 0; rank < 12; ++rank) {
      const Indices at{.rank = rank, .loop = {3 * rank % 5, rank % 4}};
      RC_ASSERT(again(at) == value(at));
    }
  }));
}

TEST(Affine, text_is_what_one_would_write) {
  EXPECT_EQ(to_string(constant(-3)), "-3");
  EXPECT_EQ(to_string(own_rank()), "rank");
  EXPECT_EQ(to_string(neighbour(1, 8)), "(rank + 1) % 8");
  EXPECT_EQ(to_string(Affine{.rank = 1, .loop = {-2, 0}, .modulus = 4, .scale = 2, .offset = 1}),
            "(rank - 2*i) % 4 * 2 + 1");
  EXPECT_EQ(parse_affine("2*(rank+1)-j*3"), (Affine{.constant = 2, .rank = 2, .loop = {0, -3}}));
  EXPECT_EQ(parse_affine("1 + rank % 8"), (Affine{.rank = 1, .modulus = 8, .offset = 1}));
}

TEST(Affine, what_is_not_affine_is_refused_with_its_place) {
  const auto failure_of = [](std::string_view text) -> std::string {
    try {
      parse_affine(text);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "no failure";
  };
  for (const auto& [text, word] :
       std::vector<std::pair<std::string, std::string>>{{"", "column 1"},
                                                        {"rank * i", "two variables"},
                                                        {"rank % 8 % 4", "second '%'"},
                                                        {"rank % 0", "at least 1"},
                                                        {"rank % i", "at least 1"},
                                                        {"(rank", "')' is missing"},
                                                        {"rank rank", "operator"},
                                                        {"tank + 1", "'tank'"},
                                                        {"99999999999999999999999", "2^50"},
                                                        {"rank % 2 + i", "'%' can only"},
                                                        {std::string(5000, '('), "longer"}})
    EXPECT_NE(failure_of(text).find(word), std::string::npos) << text << ": " << failure_of(text);
}

}  // namespace
}  // namespace hemiola
