// Cells of databases that hold something else than Hemiola wrote.
#include "study/support/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"

namespace hemiola::study::sqlite {
namespace {

using ::testing::HasSubstr;

/// What reading a column with one row of this value says.
template <typename Read>
std::string read_cell(const std::string& value, Read read) {
  const Connection connection(":memory:", Connection::Open::or_new, {"a test", "", ""});
  connection.execute(
      ("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1), (" + value + ")").c_str());
  Statement select(connection, "SELECT x FROM t ORDER BY rowid");
  select.step();
  select.integer();
  select.step();
  return test::message_of([&] { read(select); });
}

TEST(SqliteCells, have_the_type_that_is_read) {
  const auto integer = [](Statement& cell) { cell.integer(); };
  const auto real = [](Statement& cell) { cell.real(); };
  const auto text = [](Statement& cell) { cell.text(); };
  EXPECT_EQ(read_cell("7", integer), "no failure");
  EXPECT_EQ(read_cell("'much'", integer),
            ":memory:: error: is damaged: column 'x' holds no whole number (at row 2 of SELECT x "
            "FROM t ORDER BY rowid)\n  hint: remove this file, or give another one");
  EXPECT_THAT(read_cell("1.5", integer), HasSubstr("no whole number"));
  EXPECT_THAT(read_cell("NULL", integer), HasSubstr("no whole number"));
  EXPECT_THAT(read_cell("x'00'", integer), HasSubstr("no whole number"));
  EXPECT_THAT(read_cell("-1", integer), HasSubstr("holds -1, which is not from 0 to"));
  EXPECT_EQ(read_cell("1.5", real), "no failure");
  EXPECT_EQ(read_cell("3", real), "no failure");
  EXPECT_THAT(read_cell("9e999", real), HasSubstr("holds no number"));
  EXPECT_THAT(read_cell("'x'", real), HasSubstr("holds no number"));
  EXPECT_THAT(read_cell("NULL", real), HasSubstr("holds no number"));
  EXPECT_EQ(read_cell("'x'", text), "no failure");
  EXPECT_EQ(read_cell("NULL", text), "no failure");
  EXPECT_EQ(read_cell("5", text), "no failure");
  EXPECT_THAT(read_cell("1.5", text), HasSubstr("holds no text"));
  EXPECT_THAT(read_cell("x'00'", text), HasSubstr("holds no text"));
}

TEST(SqliteCells, lie_in_the_range_that_is_read) {
  EXPECT_THAT(read_cell("4", [](Statement& cell) { cell.integer(0, 3); }),
              HasSubstr("holds 4, which is not from 0 to 3"));
  EXPECT_EQ(read_cell("-4", [](Statement& cell) { cell.integer(-4, 3); }), "no failure");
}

}  // namespace
}  // namespace hemiola::study::sqlite
