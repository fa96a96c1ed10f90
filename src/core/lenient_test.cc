#include "core/lenient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hemiola {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Lenient, warnings_say_what_became_of_the_matter) {
  Diagnostics list;
  warn_leniently(list, Leniency::ignored, "the key 'x'", {.file = "a.json", .pointer = "/x"});
  warn_leniently(list, Leniency::converted, "a connection", {.file = "a.yaml"}, "write an edge");
  EXPECT_EQ(list.items()[0].message, "ignored: the key 'x'");
  EXPECT_EQ(list.items()[1].message, "converted: a connection");
  EXPECT_TRUE(is_lenient(list.items()[0]));
  EXPECT_TRUE(is_lenient(list.items()[1]));
  EXPECT_FALSE(list.has_errors());
}

TEST(Lenient, other_warnings_are_not_refused) {
  Diagnostics list;
  list.warning("a rate was assumed");
  EXPECT_FALSE(is_lenient(list.items()[0]));
  EXPECT_NO_THROW(refuse_lenient(list));
}

TEST(Lenient, refusing_makes_errors_of_these_warnings_alone) {
  Diagnostics list;
  list.warning("a rate was assumed");
  warn_leniently(list, Leniency::ignored, "the key 'x'", {.file = "a.json", .pointer = "/x"});
  try {
    refuse_lenient(list);
    FAIL() << "nothing was refused";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    EXPECT_THAT(failure.what(), HasSubstr("a.json: error: ignored: the key 'x' (at /x)"));
    EXPECT_THAT(failure.what(), Not(HasSubstr("assumed")));
  }
}

}  // namespace
}  // namespace hemiola
