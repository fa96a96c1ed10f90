#include "hemiola/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace {

using ::testing::HasSubstr;

TEST(RuleOfC, picks_by_every_shipped_rule) {
  for (const char* name : {"analytic", "paper"}) {
    std::array<char, 256> error{};
    hemiola_rule* rule = hemiola_rule_open(name, "mi300x-8", 0, "bf16", error.data(), error.size());
    ASSERT_NE(rule, nullptr) << error.data();
    hemiola_pick pick{};
    const hemiola_operator op{
        .kind = HEMIOLA_AG_GEMM, .gathers_b = 0, .m = 8192, .n = 28672, .k = 8192};
    EXPECT_EQ(hemiola_rule_pick(rule, &op, &pick), 0);
    EXPECT_THAT(pick.family, HasSubstr("D "));
    EXPECT_GT(pick.degree, 1);
    const hemiola_operator odd{
        .kind = HEMIOLA_AG_GEMM, .gathers_b = 0, .m = 8191, .n = 28672, .k = 8192};
    EXPECT_EQ(hemiola_rule_pick(rule, &odd, &pick), -1);
    EXPECT_STREQ(pick.family, "serial");
    hemiola_rule_close(rule);
  }
}

TEST(RuleOfC, says_what_is_wrong) {
  std::array<char, 256> error{};
  EXPECT_EQ(hemiola_rule_open("tree-that-is-not-there", "mi300x-8", 0, "bf16", error.data(),
                              error.size()),
            nullptr);
  EXPECT_THAT(error.data(), HasSubstr("tree-that-is-not-there"));
  EXPECT_EQ(hemiola_rule_open("analytic", "mi300", 0, "bf16", error.data(), error.size()), nullptr);
  EXPECT_THAT(error.data(), HasSubstr("mi300"));
  std::array<char, 8> few{};
  EXPECT_EQ(hemiola_rule_open("analytic", "mi300", 0, "bf16", few.data(), few.size()), nullptr);
  EXPECT_EQ(std::string(few.data()).size(), 7U);
  EXPECT_EQ(hemiola_rule_open("analytic", "mi300x-8", 0, "brain", error.data(), error.size()),
            nullptr);
  EXPECT_EQ(hemiola_rule_open(nullptr, nullptr, 0, nullptr, nullptr, 0), nullptr);
}

}  // namespace
