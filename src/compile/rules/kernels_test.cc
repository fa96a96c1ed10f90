// Kernels after public reports, each with its repaired twin (tests/kernels): what is wrong is found
// at the line that says so, and nothing is found in the twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/rules/rules.h"
#include "core/text.h"

namespace hemiola::compile {
namespace {

const std::string kFolder = HEMIOLA_SOURCE_DIR "/tests/kernels/";

RuleReport checked(const std::string& name, const std::string& target = "cuda") {
  Library library;
  const Module& module = library.load(kFolder + name + ".py");
  return check_rules(library, module, {.target = target});
}

/// The line that ends with "# wrong: ...".
int wrong_line(const std::string& name) {
  const std::string text = read_file(kFolder + name + ".py");
  const std::size_t at = text.find("# wrong");
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

struct Pair {
  const char* name;
  const char* rule;
  bool is_endless = false;
  const char* target = "cuda";
};
void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.name;
}

class KernelPairs : public testing::TestWithParam<Pair> {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }
};

TEST_P(KernelPairs, are_told_apart) {
  const auto [name, rule, is_endless, target] = GetParam();
  const RuleReport wrong = checked(name, target);
  ASSERT_FALSE(wrong.violations.empty());
  EXPECT_EQ(wrong.violations.front().rule, rule);
  EXPECT_EQ(wrong.violations.front().span.line, wrong_line(name));
  EXPECT_EQ(wrong.violations.front().is_endless, is_endless);
  const RuleReport right = checked(std::string(name) + "_repaired", target);
  for (const Violation& one : right.violations) ADD_FAILURE() << one.span.line << ": " << one.what;
  EXPECT_THAT(right.not_judged, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    reports, KernelPairs,
    testing::Values(
        Pair{"lock_for_peers", "scope"}, Pair{"ready_is_one", "replay"},
        Pair{"no_last_barrier", "reuse"}, Pair{"produced_is_not_consumed", "reuse"},
        Pair{"told_without_order", "signal-release"}, Pair{"one_counter_for_all_pieces", "order"},
        Pair{"own_word_zeroed", "reset", true}, Pair{"lock_before_all_warps", "signal-barrier"},
        Pair{"lock_zeroed_by_its_setter", "reset"}, Pair{"volatile_look", "plain-flag"},
        Pair{"second_stage_relaxed", "signal-release"},
        Pair{"fewer_lanes_than_ranks", "endless", true},
        Pair{"flags_and_data_overlap", "plain-flag"}, Pair{"set_back_too_early", "reset", true},
        Pair{"half_of_the_caches", "half-caches", false, "rdna"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hemiola::compile
