#include "compile/describe/expression.h"

#include <gtest/gtest.h>

namespace hemiola::compile {
namespace {

class Expressions : public ::testing::Test {
 protected:
  Algebra algebra;
  Expr m = algebra.parameter("M", false), n = algebra.parameter("N", false);
  Expr block = algebra.parameter("BLOCK", true), pid = algebra.program(0);
};

TEST_F(Expressions, sums_are_equal_in_any_order) {
  const Expr a = algebra.add(algebra.multiply(m, n), algebra.add(n, Algebra::number(3)));
  const Expr b = algebra.add(Algebra::number(3), algebra.add(n, algebra.multiply(n, m)));
  EXPECT_EQ(a, b);
  EXPECT_TRUE(algebra.subtract(a, b).is_zero());
}

TEST_F(Expressions, a_tile_number_taken_apart_by_division_and_remainder_is_itself_again) {
  const Expr quotient = algebra.infix("//", pid, n), rest = algebra.infix("%", pid, n);
  EXPECT_EQ(algebra.add(algebra.multiply(quotient, n), rest), pid);
  // In any multiple of it, and with something beside it.
  const Expr scaled =
      algebra.add(algebra.multiply(algebra.multiply(quotient, n), m), algebra.multiply(rest, m));
  EXPECT_EQ(algebra.add(scaled, block), algebra.add(algebra.multiply(pid, m), block));
}

TEST_F(Expressions, rounding_up_by_hand_is_cdiv) {
  const Expr by_hand =
      algebra.infix("//", algebra.subtract(algebra.add(m, block), Algebra::number(1)), block);
  EXPECT_EQ(by_hand, algebra.infix("cdiv", m, block));
  EXPECT_EQ(algebra.text(by_hand), "tl.cdiv(M, BLOCK)");
}

TEST_F(Expressions, constants_are_divided_as_python_does) {
  const auto divided = [&](std::int64_t a, std::int64_t b) {
    return algebra.infix("//", Algebra::number(a), Algebra::number(b)).constant();
  };
  EXPECT_EQ(divided(7, 2), 3);
  EXPECT_EQ(divided(-7, 2), -4);
  EXPECT_EQ(algebra.infix("%", Algebra::number(-7), Algebra::number(4)).constant(), 1);
  EXPECT_EQ(algebra.infix("cdiv", Algebra::number(9), Algebra::number(4)).constant(), 3);
}

TEST_F(Expressions, what_branches_have_in_common_stands_outside_of_the_choice) {
  const Expr chosen =
      algebra.choose(algebra.parameter("C", true), algebra.add(m, n), algebra.add(m, block));
  EXPECT_EQ(algebra.text(chosen), "M + tl.where(C, N, BLOCK)");
}

TEST_F(Expressions, dimensions_move_inside_of_functions_too) {
  const Expr range = algebra.range({}, block, 0);
  const Expr wrapped = algebra.infix("%", algebra.add(algebra.multiply(pid, block), range), m);
  const Expr moved = algebra.move_dims(wrapped, {1});
  EXPECT_NE(moved, wrapped);
  EXPECT_EQ(algebra.flat(moved), wrapped);
}

TEST_F(Expressions, data_from_the_same_loads_is_not_the_same_data) {
  const Expr data = algebra.data({1}, false, false);
  EXPECT_FALSE(algebra.subtract(data, data).is_zero());
  EXPECT_TRUE(algebra.difference(data, data).is_zero());
}

TEST_F(Expressions, numbers_that_do_not_fit_are_not_wrong) {
  const Expr large = Algebra::number(std::int64_t{1} << 62);
  EXPECT_TRUE(algebra.traits(algebra.add(large, large)).has_opaque);
  EXPECT_TRUE(algebra.traits(algebra.multiply(large, large)).has_opaque);
}

TEST_F(Expressions, work_on_long_expressions_is_bounded) {
  Expr sum = m;
  for (int i = 0; i < 40; ++i)
    sum = algebra.add(sum, algebra.parameter("p" + std::to_string(i), false));
  const Expr squared = algebra.multiply(sum, sum);
  EXPECT_LT(squared.terms.size(), 100U);
  EXPECT_TRUE(algebra.traits(squared).has_opaque);
}

}  // namespace
}  // namespace hemiola::compile
