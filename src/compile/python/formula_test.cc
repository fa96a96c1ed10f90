#include "compile/python/formula.h"

#include <gtest/gtest.h>

namespace hemiola::compile {
namespace {

TEST(Formula, computes_as_python_does) {
  if (Formula("1").names().empty() && !Formula("1").is_known()) GTEST_SKIP() << "no tree-sitter";
  const Names names{{"a", 7}, {"b", -2}, {"tl.program_id(0)", 5}, {"GROUP", 4}};
  const std::pair<const char*, std::int64_t> kCases[] = {
      {"a + b * 3", 1},
      {"a // b", -4},
      {"a % b", -1},
      {"-a // 2", -4},
      {"-GROUP * (a // 2) + tl.cdiv(a, GROUP)", -10},
      {"tl.cdiv(a, 2)", 4},
      {"triton.cdiv(x=a, y=4)", 2},
      {"min(-GROUP * (tl.program_id(0) // 4) + a, GROUP)", 3},
      {"tl.program_id(axis=0) % GROUP", 1},
      {"tl.where(a > 3, a, b)", 7},
      {"a if b > 0 else 12", 12},
      {"a % 2 == 0", 0},
      {"not (a < b and True)", 1},
      {"lambda args: args[\"a\"] % args['GROUP'] == 0", 0},
      {"2 ** 5", 32},
  };
  for (const auto& [text, value] : kCases)
    EXPECT_EQ(Formula(text).value(names), std::optional<std::int64_t>(value)) << text;
}

TEST(Formula, has_no_value_where_it_says_none) {
  const Names names{{"a", 7}};
  for (const char* text : {"", "a +", "b", "a // 0", "a % 0", "f(a)", "a.shape[0]", "\"a\"", "1.5",
                           "9223372036854775807 + a", "9223372036854775807 * a", "3 ** 99",
                           "9999999999999999999999", "a; a"})
    EXPECT_EQ(Formula(text).value(names), std::nullopt) << text;
}

TEST(Literals, are_read_as_they_are_written) {
  EXPECT_EQ(integer_in("1_000"), 1000);
  EXPECT_EQ(integer_in("0x1F"), 31);
  EXPECT_EQ(integer_in("0b101"), 5);
  for (const char* none : {"", "0x", "1.5", "08x", "99999999999999999999"})
    EXPECT_EQ(integer_in(none), std::nullopt) << none;
  EXPECT_EQ(content_of("\"sys\""), "sys");
  EXPECT_EQ(content_of("r'a\\b'"), "a\\b");
  EXPECT_EQ(content_of("f\"\"\"x\"\"\""), "x");
  EXPECT_EQ(content_of("x"), "");
}

TEST(Infix, is_as_python_has_it) {
  EXPECT_EQ(infix("//", -7, 2), -4);
  EXPECT_EQ(infix("%", -7, 2), 1);
  EXPECT_EQ(infix("cdiv", 7, 2), 4);
  EXPECT_EQ(infix("<<", 3, 4), 48);
  EXPECT_EQ(infix(">>", -8, 1), -4);
  EXPECT_EQ(infix("and", 3, 4), 4);
  EXPECT_EQ(infix("+", INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(infix("//", 1, 0), std::nullopt);
  EXPECT_EQ(infix("@", 1, 1), std::nullopt);
}

}  // namespace
}  // namespace hemiola::compile
