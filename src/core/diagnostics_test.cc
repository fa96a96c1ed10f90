#include "core/diagnostics.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace hemiola {
namespace {

TEST(Diagnostics, a_full_diagnostic_shows_place_pointer_and_hint) {
  EXPECT_EQ(
      render(
          {Severity::error, "unknown key 'lanes'", {"m.yaml", 12, 3, "/devices/0"}, "remove it"}),
      "m.yaml:12:3: error: unknown key 'lanes' (at /devices/0)\n  hint: remove it");
}

TEST(Diagnostics, unknown_parts_of_the_place_are_left_out) {
  EXPECT_EQ(render({Severity::warning, "w", {}, ""}), "warning: w");
  EXPECT_EQ(render({Severity::note, "n", {"f"}, ""}), "f: note: n");
  EXPECT_EQ(render({Severity::error, "e", {"f", 7}, ""}), "f:7: error: e");
  EXPECT_EQ(render({Severity::error, "e", {"f", 0, 7}, ""}), "f: error: e");
}

TEST(Diagnostics, a_list_keeps_its_order_and_knows_its_errors) {
  Diagnostics list;
  EXPECT_TRUE(list.empty());
  list.warning("first");
  EXPECT_FALSE(list.has_errors());
  Diagnostics more;
  more.error("second");
  list.append(more);
  EXPECT_TRUE(list.has_errors());
  EXPECT_EQ(list.render(), "warning: first\nerror: second");
}

TEST(Diagnostics, a_list_can_be_appended_to_itself) {
  Diagnostics list;
  list.error("a");
  list.append(list);
  EXPECT_EQ(list.render(), "error: a\nerror: a");
}

TEST(Failure, carries_its_list_code_and_text) {
  const Failure one("no such file", {"x.json"}, "check the name");
  EXPECT_EQ(one.code(), ExitCode::bad_input);
  EXPECT_STREQ(one.what(), "x.json: error: no such file\n  hint: check the name");
  Diagnostics list;
  list.error("a");
  list.error("b");
  const Failure two(list, ExitCode::deadlock);
  EXPECT_EQ(two.code(), ExitCode::deadlock);
  EXPECT_EQ(two.diagnostics().items().size(), 2u);
}

TEST(Suggest, finds_the_name_with_the_fewest_edits) {
  const std::vector<std::string> names{"bandwidth", "latency", "max_payload", "credits"};
  EXPECT_EQ(suggest("bandwith", names), "did you mean 'bandwidth'?");
  EXPECT_EQ(suggest("latnecy", names), "did you mean 'latency'?");
  EXPECT_EQ(suggest("Max-Payload", names), "did you mean 'max_payload'?");
}

TEST(Suggest, is_silent_when_nothing_is_near) {
  EXPECT_EQ(suggest("colour", {"bandwidth", "latency"}), "");
  EXPECT_EQ(suggest("put", {"get", "sum"}), "");
  EXPECT_EQ(suggest("", {"get"}), "");
  EXPECT_EQ(suggest("get", {}), "");
}

TEST(Suggest, a_swap_of_neighbours_is_one_edit) {
  EXPECT_EQ(suggest("rnig", {"king-size", "ring"}), "did you mean 'ring'?");
}

TEST(Suggest, one_wrong_letter_in_a_long_word_is_always_found) {
  EXPECT_TRUE(rc::check([] {
    const auto letters = rc::gen::inRange('a', static_cast<char>('z' + 1));
    const auto word = *rc::gen::suchThat(rc::gen::container<std::string>(letters),
                                         [](const std::string& w) { return w.size() >= 5; });
    std::string typo = word;
    typo[*rc::gen::inRange<std::size_t>(0, word.size())] = '#';
    RC_ASSERT(suggest(typo, {"0", word}) == "did you mean '" + word + "'?");
  }));
}

}  // namespace
}  // namespace hemiola
