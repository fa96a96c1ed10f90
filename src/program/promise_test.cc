#include "program/promise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hemiola::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Promise promise_of(const std::string& codes, int ranks = 4) {
  return read_promise(R"({"hemiola_promise": 1, "codes": [)" + codes + "]}", "p.json", ranks);
}

std::string refusal_of_promise(const std::string& codes) {
  try {
    promise_of(codes);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.diagnostics().render();
  }
  return "read";
}

TEST(Promises, name_chunks_of_outputs_and_of_the_inputs_they_come_from) {
  const Promise promise = promise_of(R"(
      {"ranks": "0-1", "output": [{"loop": 2, "begin": "2 * i", "chunks": 2,
                                   "copy": {"rank": "(rank + i) % 4", "begin": "rank"}}]},
      {"ranks": "3", "output": [{"begin": 1, "reduce": {"ranks": "0,2-3", "begin": 7}}]})");
  ASSERT_EQ(promise.of.size(), 4U);
  ASSERT_EQ(promise.of[1].size(), 2U);
  EXPECT_EQ(promise.of[1][1].begin, 2);
  EXPECT_EQ(promise.of[1][1].chunks, 2);
  EXPECT_EQ(promise.of[1][1].source, 1);
  EXPECT_THAT(promise.of[1][1].from, ElementsAre(RankRange{2, 1}));
  EXPECT_TRUE(promise.of[2].empty());
  EXPECT_EQ(promise.of[3][0].source, 7);
  EXPECT_THAT(promise.of[3][0].from, ElementsAre(RankRange{0, 1}, RankRange{2, 2}));
}

TEST(Promises, that_say_nothing_or_too_much_are_refused_with_their_place) {
  const auto all = [](const std::string& region) {
    return refusal_of_promise(R"({"ranks": "all", "output": [)" + region + "]}");
  };
  EXPECT_THAT(refusal_of_promise(""), HasSubstr("nothing is promised (at /codes)"));
  EXPECT_THAT(all(R"({"begin": 0})"), HasSubstr("either a copy or a reduction"));
  EXPECT_THAT(all(R"({"begin": 0, "copy": {"rank": 4, "begin": 0}})"),
              HasSubstr("for rank 0 this is rank 4, of 0 to 3 (at /codes/0/output/0/copy/rank)"));
  EXPECT_THAT(all(R"({"begin": "rank - 1", "copy": {"rank": 0, "begin": 0}})"),
              HasSubstr("for rank 0 this is chunk -1"));
  EXPECT_THAT(all(R"({"begin": "x", "copy": {"rank": 0, "begin": 0}})"), HasSubstr("i counts"));
  EXPECT_THAT(all(R"({"begin": 0, "reduce": {"ranks": "0-9", "begin": 0}})"),
              HasSubstr("rank 9 is not one of 4"));
  EXPECT_THAT(all(R"({"begin": 0, "reduce": {"ranks": "0,0", "begin": 0}})"),
              HasSubstr("names a rank twice"));
  EXPECT_THAT(all(R"({"begin": 0, "loop": 2, "copy": {"rank": 0, "begin": 0}})"),
              HasSubstr("two regions promise chunk 0 of the output of rank 0"));
  EXPECT_THAT(all(R"({"begin": "i", "loop": 4194304, "copy": {"rank": 0, "begin": 0}})"),
              HasSubstr("more than 4194304 regions"));
  EXPECT_THAT(all(R"({"begin": 0, "cpy": {"rank": 0, "begin": 0}})"),
              HasSubstr("unknown key 'cpy'"));
  const std::string one =
      R"({"ranks": "0", "output": [{"begin": 0, "copy": {"rank": 0, "begin": 0}}]})";
  EXPECT_THAT(refusal_of_promise(one + "," + one), HasSubstr("rank 0 has a promise already"));
}

}  // namespace
}  // namespace hemiola::program
