#include "explore/rules/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "explore/search/thresholds.h"

namespace hemiola::explore {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTree =
    "hemiola-rule 1\n"
    "name of-a-test  # a comment\n"
    "\n"
    "if ratio < 0.5 then 1 else 2\n"
    "pick 1D hetero fused, 4 steps\n"
    "if m < 100 then 3 else 4\n"
    "pick serial\n"
    "pick 2D uniform unfused, 16 steps\n";

Features of(double ratio, double m) {
  Features features{};
  features[static_cast<std::size_t>(Feature::ratio)] = ratio;
  features[static_cast<std::size_t>(Feature::m)] = m;
  return features;
}

TEST(Rules, of_a_text_decide_by_thresholds) {
  const Rule rule = Rule::parse(kTree, "tree.rule");
  EXPECT_EQ(rule.name(), "of-a-test");
  EXPECT_EQ(rule.pick(of(0.4, 0)).family.text(), "1D hetero fused");
  EXPECT_EQ(rule.pick(of(0.4, 0)).degree, 4);
  EXPECT_EQ(rule.pick(of(0.5, 99)).family.text(), "serial");
  EXPECT_EQ(rule.pick(of(0.5, 100)).family.text(), "2D uniform unfused");
  EXPECT_EQ(rule.pick(of(0.5, 100)).degree, 16);
}

TEST(Rules, that_are_none_are_refused_with_their_line) {
  const auto refusal = [](const std::string& text) {
    return test::message_of([&] { Rule::parse(text, "tree.rule"); });
  };
  const std::string head = "hemiola-rule 1\n";
  EXPECT_THAT(refusal("pick serial\n"), HasSubstr("not a rule"));
  EXPECT_THAT(refusal(""), HasSubstr("not a rule"));
  EXPECT_THAT(refusal(head), HasSubstr("no node"));
  EXPECT_THAT(refusal(head + "pick fast\n"), HasSubstr("'fast' is not a family"));
  EXPECT_THAT(refusal(head + "if rows < 1 then 1 else 2\n"), HasSubstr("'rows' is not a feature"));
  EXPECT_THAT(refusal(head + "if m < 1 then 0 else 2\n"), HasSubstr("does not come after"));
  EXPECT_THAT(refusal(head + "if m < 1 then 1 else 2\npick serial\n"), HasSubstr("no node 2"));
  EXPECT_THAT(refusal(head + "if m > 1 then 1 else 2\n"), HasSubstr("if FEATURE < NUMBER"));
  EXPECT_THAT(refusal(head + "pick 1D hetero fused, 4\n"), HasSubstr("number of steps"));
  EXPECT_THAT(refusal(head + "pick 1D hetero fused, 1e30 steps\n"), HasSubstr("number of steps"));
  EXPECT_THAT(refusal(head + "pick 1D hetero fused, nan steps\n"),
              HasSubstr("'nan' is not a number"));
  EXPECT_THAT(refusal(head + "if m < 1 then nan else 2\n"), HasSubstr("'nan' is not a number"));
  EXPECT_THAT(refusal(head + "take serial\n"), HasSubstr("'take'"));
  EXPECT_THAT(refusal(head + "factor serial 0\n"), HasSubstr("above zero"));
  EXPECT_THAT(refusal(head + "factor serial\n"), HasSubstr("factor FAMILY NUMBER"));
  EXPECT_THAT(refusal(head + "factor serial 1\npick serial\n"), HasSubstr("has no factors"));
}

TEST(Rules, of_factors_pick_the_least_of_the_times) {
  const RuleMachine constants = RuleMachine::of(machine::load("mi300x-8"), DataType::bfloat16);
  const Operator op{.ranks = 8, .m = 8192, .n = 28672, .k = 8192};
  const std::string head = "hemiola-rule 1\nname f\n";
  EXPECT_EQ(Rule::parse(head + "factor serial 0.01\n", "f").pick(op, constants).family.text(),
            "serial");
  const Rule shards = Rule::parse(head + "factor 2D hetero fused 0.001\n", "f");
  EXPECT_EQ(shards.pick(op, constants).family.text(), "2D hetero fused");
  EXPECT_GT(shards.pick(op, constants).degree, 1);
  const AnalyticTimes times = analytic_times(op, constants);
  EXPECT_LT(times.time[0], 1.3e12);  // serial: 1.1 ms
  EXPECT_GT(times.time[0], 0.9e12);
}

TEST(Rules, that_are_shipped_pick_for_every_operator) {
  for (const char* name : {"mi300x-8", "dgx-h100"}) {
    const machine::Machine machine = machine::load(name);
    const RuleMachine constants = RuleMachine::of(machine, DataType::bfloat16);
    EXPECT_GT(1 / constants.pieces.power, 0.5);  // PFLOP/s
    EXPECT_LT(1 / constants.pieces.power, 2);
    for (const OperatorKind kind :
         {OperatorKind::ag_gemm, OperatorKind::gemm_rs, OperatorKind::gemm_ar,
          OperatorKind::a2a_gemm, OperatorKind::gemm_a2a}) {
      const Operator op{.kind = kind, .ranks = 8, .m = 8192, .n = 8192, .k = 8192};
      const Features features = features_of(op, constants);
      for (const double value : features) EXPECT_GE(value, 0);
      EXPECT_GE(shipped_rules().size(), 1U);
      for (const Rule& rule : shipped_rules()) {
        const Pick pick = rule.pick(op, constants);
        EXPECT_EQ(parse_family(pick.family.text(), {}), pick.family);
      }
    }
    const double one_link = features_of({.ranks = 8, .m = 8192, .n = 8192, .k = 8192},
                                        constants)[static_cast<std::size_t>(Feature::one_link)];
    EXPECT_NEAR(one_link, std::string(name) == "mi300x-8" ? 7 : 1, 0.01);
  }
}

/// Of two, as if they had been found: serial the faster for few rows.
Exploration found_with(std::int64_t m, bool overlaps) {
  Exploration found{.op = {.ranks = 8, .m = m, .n = 1024, .k = 1024}, .machine = "test"};
  found.serial.time = Time::from_us(100);
  Candidate candidate;
  candidate.schedule = {.family = {Division::rows, true, true}, .degree = 4};
  candidate.fluid = Time::from_us(overlaps ? 80 : 120);
  found.candidates.push_back(candidate);
  return found;
}

TEST(Thresholds, are_a_rule_that_says_what_was_found) {
  const std::vector<Exploration> found{found_with(64, false), found_with(256, false),
                                       found_with(1024, true), found_with(4096, true)};
  EXPECT_EQ(pays_from(found), 1024);
  const Rule rule = Rule::parse(threshold_rule(found), "thresholds");
  EXPECT_EQ(rule.pick(of(0, 64)).family.text(), "serial");
  EXPECT_EQ(rule.pick(of(0, 511)).family.text(), "serial");
  EXPECT_EQ(rule.pick(of(0, 512)).family.text(), "1D hetero fused");
  EXPECT_EQ(rule.pick(of(0, 512)).degree, 4);
  EXPECT_FALSE(pays_from({found_with(64, true), found_with(128, false)}));
  EXPECT_EQ(Rule::parse(threshold_rule({found_with(64, true)}), "one").pick(of(0, 1)).degree, 4);
}

}  // namespace
}  // namespace hemiola::explore
