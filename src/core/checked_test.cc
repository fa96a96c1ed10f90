#include "core/checked.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hemiola {
namespace {

using nlohmann::json;

TEST(Checked, whole_numbers_do_not_wrap_around) {
  EXPECT_EQ(whole_number(json(-7)), -7);
  EXPECT_EQ(whole_number(json(INT64_MAX)), INT64_MAX);
  EXPECT_EQ(whole_number(json(UINT64_MAX)), std::nullopt);
  EXPECT_EQ(whole_number(json(1.0)), std::nullopt);
  EXPECT_EQ(whole_number(json("1")), std::nullopt);
  EXPECT_EQ(whole_number(json(5), 0, 4), std::nullopt);
  EXPECT_EQ(whole_number(json(-1), 0), std::nullopt);
}

TEST(Checked, finite_numbers_are_the_whole_text) {
  EXPECT_EQ(finite_number("2e12"), 2e12);
  EXPECT_EQ(finite_number("-0.5"), -0.5);
  for (const char* text : {"", " 1", "1 ", "1x", "nan", "inf", "-inf", "1e400", "0x10", "--1"})
    EXPECT_EQ(finite_number(text), std::nullopt) << text;
}

std::string failure_in(std::string_view text) {
  const auto failure = json_failure("f.json", text, 0, text.size());
  return failure ? failure->diagnostics().render() : "";
}

TEST(Checked, json_that_is_none_has_a_place) {
  EXPECT_EQ(failure_in("{\"a\": [1, 2.5e300, \"x\"]}"), "");
  EXPECT_EQ(failure_in("{\"a\": 1,\n \"b\": 1e400}"),
            "f.json:2:7: error: the number here is too large to be read");
  EXPECT_EQ(failure_in("{\"a\": 1,\n \"b\": }"),
            "f.json:2:7: error: the JSON text is malformed here");
  EXPECT_EQ(failure_in("{\"a\": 1"),
            "f.json:1:8: error: the JSON text ends too early\n  hint: the file may be truncated");
}

}  // namespace
}  // namespace hemiola
