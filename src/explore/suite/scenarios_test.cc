// What a suite file means, and what is refused in one.
#include "explore/suite/scenarios.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <tuple>

#include "core/testing/failure.h"

namespace hemiola::explore {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kOne = "- {name: a, operator: ag-gemm, gemm: [512, 1024, 256], ranks: 8}\n";

std::string suite_failure(const std::string& yaml) {
  return test::message_of([&] { parse_scenarios(yaml, "s.yaml"); });
}

TEST(Scenarios, every_key_reaches_the_operator) {
  const Suite suite = parse_scenarios(
      "models:\n  tiny: {hidden: 256, source: 'a book'}\nscenarios:\n"
      "- {name: a, model: tiny, set: unseen, operator: a2a-gemm, gemm: [64, 512, 256],\n"
      "   dtype: fp8_e4m3, ranks: 8}\n",
      "s.yaml");
  EXPECT_THAT(suite.scenarios, ElementsAre(Scenario{.name = "a",
                                                    .model = "tiny",
                                                    .set = "unseen",
                                                    .op = {.kind = OperatorKind::a2a_gemm,
                                                           .ranks = 8,
                                                           .m = 64,
                                                           .n = 512,
                                                           .k = 256,
                                                           .type = DataType::fp8_e4m3}}));
}

TEST(Scenarios, of_gathered_b_count_the_rows_of_one_rank) {
  const auto op_of = [](const std::string& gather) {
    return parse_scenarios("scenarios:\n- {name: a, operator: ag-gemm, gather: " + gather +
                               ", gemm: [512, 1024, 256], ranks: 4}\n",
                           "s.yaml")
        .scenarios.at(0)
        .op;
  };
  EXPECT_EQ(op_of("a").m, 512);
  EXPECT_EQ(op_of("b").m, 2048);
  EXPECT_TRUE(op_of("b").gathers_b);
  EXPECT_EQ(local_product(op_of("b")).m, 512) << "what each rank multiplies";
}

TEST(Scenarios, are_bf16_where_nothing_is_said) {
  const Suite suite = parse_scenarios("scenarios:\n" + kOne, "s.yaml");
  EXPECT_EQ(suite.scenarios.at(0).op.type, DataType::bfloat16);
  EXPECT_EQ(suite.scenarios.at(0).set, "");
}

TEST(Scenarios, are_refused_with_line_and_suggestion) {
  const auto expect = [](const std::string& scenario, const std::string& message) {
    EXPECT_THAT(suite_failure("scenarios:\n" + kOne + scenario), HasSubstr(message)) << scenario;
  };
  const auto edited = [](const std::string& from, const std::string& to) {
    std::string text = kOne;
    text.replace(text.find("name: a"), 7, "name: b");
    return text.replace(text.find(from), from.size(), to);
  };
  expect(edited("ranks: 8", "rank: 8"),
         "s.yaml:3: error: unknown key 'rank'\n  hint: did you mean 'ranks'?");
  expect(edited("ag-gemm", "ag-gem"),
         "s.yaml:3: error: 'ag-gem' is not an operator\n  hint: did you mean 'ag-gemm'?");
  expect(edited(", ranks: 8", ""), "s.yaml:3: error: the key 'ranks' is missing");
  expect(edited("ranks: 8", "ranks: 1"), "s.yaml:3: error: 'ranks' must be a number from 2 to");
  expect(edited("512, ", ""), "s.yaml:3: error: 'gemm' must be a list of three sizes");
  expect(edited("512", "0"), "s.yaml:3: error: a size of 'gemm' must be a number from 1 to");
  expect(edited("512", "[512]"), "s.yaml:3: error: a size of 'gemm' must be a number");
  expect(edited("512", "500"), "s.yaml:3: error: M = 500 does not divide by 8");
  expect(edited("ranks: 8", "ranks: 8, dtype: bf61"), "'bf61' is not an element type");
  expect(edited("ranks: 8", "ranks: 8, set: fitt"), "'fitt' is not among the values of 'set'");
  expect(edited("ranks: 8", "ranks: 8, gather: c"), "'c' is not among the values of 'gather'");
  expect(edited("ag-gemm", "gemm-rs, gather: b"), "s.yaml:3: error: gemm-rs gathers nothing");
  expect(kOne, "s.yaml:3: error: there are two scenarios named 'a'");
  expect(edited("name: b", "name: ''"), "s.yaml:3: error: a scenario has a name");
}

TEST(Scenarios, of_no_suite_are_an_error) {
  EXPECT_THAT(suite_failure("scenarios: []\n"), HasSubstr("s.yaml:1: error: the suite has no"));
  EXPECT_THAT(suite_failure("models: {}\n"), HasSubstr("the key 'scenarios' is missing"));
  EXPECT_THAT(suite_failure("scenario: []\n"), HasSubstr("did you mean 'scenarios'?"));
  EXPECT_THAT(suite_failure("scenarios: 1\n"), HasSubstr("'scenarios' must be a list"));
  EXPECT_THAT(suite_failure("scenarios: [\n"), HasSubstr("this is not YAML"));
  EXPECT_THAT(suite_failure("models: {a: {hiden: 1}}\nscenarios:\n" + kOne),
              HasSubstr("s.yaml:1: error: unknown key 'hiden'\n  hint: did you mean 'hidden'?"));
  EXPECT_THAT(suite_failure("models: {b: {hidden: 1}}\nscenarios:\n- {model: c, " + kOne.substr(3)),
              HasSubstr("s.yaml:3: error: 'c' is not among the values of 'model'"));
}

TEST(Suites, that_are_shipped_are_known_by_name) {
  EXPECT_THAT(shipped_suites(), testing::Contains("overlap"));
  EXPECT_THAT(
      test::message_of([] { read_scenarios("overlapp"); }),
      HasSubstr("there is no suite and no file 'overlapp'\n  hint: did you mean 'overlap'"));
  EXPECT_THAT(test::message_of([] { read_scenarios("absent.yaml"); }),
              HasSubstr("absent.yaml: error: no such file"));
}

TEST(Suites, overlap_has_each_model_in_one_set_and_no_shape_twice) {
  const Suite suite = read_scenarios("overlap");
  EXPECT_GT(suite.scenarios.size(), 100u);
  std::map<std::string, std::string> sets;
  std::set<std::tuple<OperatorKind, int, std::int64_t, std::int64_t, std::int64_t, bool, DataType>>
      shapes;
  for (const Scenario& one : suite.scenarios) {
    EXPECT_EQ(sets.emplace(one.model, one.set).first->second, one.set) << one.name;
    const Operator& op = one.op;
    EXPECT_TRUE(shapes.insert({op.kind, op.ranks, op.m, op.n, op.k, op.gathers_b, op.type}).second)
        << one.name;
  }
}

TEST(Scenarios, go_to_as_many_gpus_as_asked_for) {
  const Suite given = parse_scenarios(
      "scenarios:\n" + kOne +
          "- {name: b, operator: ag-gemm, gather: b, gemm: [512, 1024, 256], ranks: 8}\n",
      "s.yaml");
  const Suite four = with_ranks(given, 4);
  for (const Scenario& scenario : four.scenarios) EXPECT_EQ(scenario.op.ranks, 4);
  EXPECT_EQ(four.scenarios[0].op.m, 512);
  EXPECT_EQ(four.scenarios[1].op.m, 4 * 512) << "rows of one rank are 512 still";
  EXPECT_EQ(given.scenarios[1].op.m, 8 * 512);
  EXPECT_NE(four.text, given.text) << "another suite for a database";
}

}  // namespace
}  // namespace hemiola::explore
