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

}  // namespace
}  // namespace hemiola::compile
