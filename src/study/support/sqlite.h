// SQLite files: connections, statements and transactions, whose errors are Failures.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::study::sqlite {

/// What messages say of the files of a verb.
struct Words {
  std::string kind;   ///< "a sweep"
  std::string taken;  ///< of a key that is there already: "another process has written a point ..."
  std::string remedy;  ///< what to do about it
};

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
  /// Failure unless it has all of these tables: "'meta', 'points'" of `count` names.
  void require_tables(const std::string& names, std::int64_t count) const;

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

  Statement& bind(const std::string& text);
  Statement& bind(std::int64_t number);
  Statement& bind(double number);
  Statement& bind_null();
  /// Its value, or NULL.
  template <typename T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
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

 private:
  Statement& checked(int code);
  [[noreturn]] void damaged(const std::string& what) const;

  const Connection& connection_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0, column_ = 0;
  std::int64_t row_ = 0;  ///< from 1
};

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
