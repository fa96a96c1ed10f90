// SQLite files: connections, statements and transactions, whose errors are Failures.
#pragma once

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/diagnostics.h"
#include "core/names.h"
#include "core/time.h"
#include "core/units.h"
#include "study/support/results.h"

namespace hemiola::study::sqlite {

/// A file, open until the object is gone. What is written is on the disk when a transaction ends as
/// far as a killed process is concerned; a host that loses power may lose the last rows, not the
/// file. Others may read meanwhile.
class Connection {
 public:
  enum class Open : std::uint8_t { existing, or_new };
  Connection(std::string file, Open open, Words words);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[noreturn]] void fail(int code) const;
  void execute(const char* sql) const;
  /// Whether it has no table, as a new file.
  bool fresh() const;
  /// Failure unless it has all of these tables.
  void require_tables(const std::vector<std::string>& names) const;

  /// The file as bytes: of a database in memory (":memory:") what would be on the disk.
  std::string image() const;
  /// Adds the rows of these tables of an image with the same tables, but those that have the key of
  /// one that is there.
  void add_rows(const std::string& image, const std::vector<std::string>& tables) const;

  sqlite3* handle() const { return handle_; }
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  Words words_;
  sqlite3* handle_ = nullptr;
};

/// A prepared statement; parameters are bound, and columns read, from left to right.
class Statement {
 public:
  Statement(const Connection& connection, const std::string& sql);
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(std::string_view text);
  Statement& bind(std::int64_t number);
  Statement& bind(double number);
  Statement& bind(Time time) { return bind(time.fs); }
  Statement& bind(Bytes bytes) { return bind(bytes.count); }
  Statement& bind_null();
  /// Its value, or NULL.
  template <typename T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }
  /// Each of these values. What is not bound at all is NULL.
  template <typename... Values>
  Statement& bind(const std::tuple<Values...>& all) {
    std::apply([this](const auto&... values) { (bind(values), ...); }, all);
    return *this;
  }

  /// The next row; false at the end.
  bool step();
  void reset();

  /// The next column. Failure, with its name and row, for a cell of another type (SQLite lets a
  /// file have any), a number out of range or one that is not finite. Text may be
  /// NULL, which is empty, and a whole number, as NUMERIC columns keep the text of one.
  std::string text();
  std::int64_t integer(std::int64_t least = 0, std::int64_t most = INT64_MAX);
  double real();
  /// Whether the next column is NULL, which is then passed over.
  bool null();
  /// The next column by the type of what it is put into; numbers are not below zero.
  void read(std::string& value) { value = text(); }
  void read(std::int64_t& value) { value = integer(); }
  void read(double& value) { value = real(); }
  void read(Time& value) { value = {integer()}; }
  void read(Bytes& value) { value = {integer()}; }
  template <typename T>
  void read(std::optional<T>& value) {
    value.reset();
    if (!null()) read(value.emplace());
  }
  /// A column for each of these.
  template <typename... Values>
  void read(const std::tuple<Values&...>& all) {
    std::apply([this](auto&... values) { (read(values), ...); }, all);
  }
  /// The value that the next column names.
  template <typename Value, std::size_t count>
  Value named(const std::array<std::string_view, count>& names) {
    const std::string name = text();
    if (const auto value = value_named<Value>(names, name)) return *value;
    --column_;
    damaged("holds '" + name + "'");
  }

 private:
  Statement& checked(int code);
  [[noreturn]] void damaged(const std::string& what) const;

  const Connection& connection_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0, column_ = 0;
  std::int64_t row_ = 0;  ///< from 1
};

/// "INSERT INTO points VALUES (?, ?, ?)"
std::string insert_into(const std::string& table, std::size_t columns);

/// All of what is done while it lives, or nothing unless commit() was called.
class Transaction {
 public:
  explicit Transaction(const Connection& connection);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  const Connection& connection_;
  bool committed_ = false;
};

}  // namespace hemiola::study::sqlite
