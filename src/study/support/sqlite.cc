#include "study/support/sqlite.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/lists.h"

namespace hemiola::study::sqlite {
namespace {

constexpr const char* kPragmas = "PRAGMA synchronous = NORMAL";
/// Others may read while a study is under way: locks are short.
constexpr int kLongestLockMs = 10'000;

}  // namespace

Connection::Connection(std::string file, Open open, Words words)
    : file_(std::move(file)), words_(std::move(words)) {
  if (file_ == "-")
    throw Failure("a database cannot go to standard output", {.file = file_}, "give a file");
  const int flags = SQLITE_OPEN_READWRITE | (open == Open::or_new ? SQLITE_OPEN_CREATE : 0);
  if (sqlite3_open_v2(file_.c_str(), &handle_, flags, nullptr) != SQLITE_OK) {
    const std::string problem = handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_);
    sqlite3_close(handle_);
    throw Failure("cannot be opened: " + problem, {.file = file_});
  }
  sqlite3_busy_timeout(handle_, kLongestLockMs);
  try {
    execute(kPragmas);
  } catch (...) {
    sqlite3_close(handle_);
    throw;
  }
}

Connection::~Connection() {
  sqlite3_close(handle_);
}

void Connection::fail(int code) const {
  if (code == SQLITE_NOTADB)
    throw Failure("is not a database", {.file = file_},
                  "give the file of " + words_.kind + ", or a new one");
  if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
    throw Failure("is kept locked by another process", {.file = file_});
  if (code == SQLITE_CONSTRAINT) throw Failure(words_.taken, {.file = file_}, words_.remedy);
  throw Failure(std::string("SQLite: ") + sqlite3_errmsg(handle_), {.file = file_});
}

void Connection::execute(const char* sql) const {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

bool Connection::fresh() const {
  Statement tables(*this, "SELECT count(*) FROM sqlite_master");
  return tables.step() && tables.integer() == 0;
}

void Connection::require_tables(const std::vector<std::string>& names) const {
  Statement tables(
      *this, "SELECT count(*) FROM sqlite_master WHERE name IN ('" + joined(names, "', '") + "')");
  tables.step();
  if (tables.integer() != std::ssize(names))
    throw Failure("is a database, but not of " + words_.kind, {.file = file_},
                  "give the file of " + words_.kind + ", or a new one");
}

std::string Connection::image() const {
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(handle_, "main", &size, 0);
  if (bytes == nullptr) fail(SQLITE_NOMEM);
  std::string copy(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  return copy;
}

void Connection::add_rows(const std::string& image, const std::vector<std::string>& tables) const {
  execute("ATTACH ':memory:' AS part");
  // Not read-only: a transaction locks all databases for writing. SQLite frees the bytes.
  auto* bytes = static_cast<unsigned char*>(sqlite3_malloc64(image.size()));
  if (bytes == nullptr) fail(SQLITE_NOMEM);
  std::copy(image.begin(), image.end(), bytes);
  const auto size = static_cast<sqlite3_int64>(image.size());
  const int code =
      sqlite3_deserialize(handle_, "part", bytes, size, size, SQLITE_DESERIALIZE_FREEONCLOSE);
  if (code != SQLITE_OK) fail(code);
  {
    Transaction transaction(*this);
    for (const std::string& table : tables)
      execute(("INSERT OR IGNORE INTO main." + table + " SELECT * FROM part." + table).c_str());
    transaction.commit();
  }
  execute("DETACH part");
}

Statement::Statement(const Connection& connection, const std::string& sql)
    : connection_(connection) {
  const int code = sqlite3_prepare_v2(connection.handle(), sql.c_str(), -1, &handle_, nullptr);
  if (code != SQLITE_OK) connection.fail(code);
}

std::string insert_into(const std::string& table, std::size_t columns) {
  return "INSERT INTO " + table + " VALUES (" +
         joined(std::vector<std::string>(columns, "?"), ", ") + ")";
}

Statement& Statement::bind(std::string_view text) {
  return checked(sqlite3_bind_text(handle_, ++bound_, text.data(), static_cast<int>(text.size()),
                                   SQLITE_TRANSIENT));
}
Statement& Statement::bind(std::int64_t number) {
  return checked(sqlite3_bind_int64(handle_, ++bound_, number));
}
Statement& Statement::bind(double number) {
  return checked(sqlite3_bind_double(handle_, ++bound_, number));
}
Statement& Statement::bind_null() {
  return checked(sqlite3_bind_null(handle_, ++bound_));
}
Statement& Statement::checked(int code) {
  if (code != SQLITE_OK) connection_.fail(code);
  return *this;
}

bool Statement::step() {
  column_ = 0;
  const int code = sqlite3_step(handle_);
  ++row_;
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) connection_.fail(code);
  return false;
}
void Statement::reset() {
  sqlite3_reset(handle_);
  sqlite3_clear_bindings(handle_);
  bound_ = 0;
  row_ = 0;
}

void Statement::damaged(const std::string& what) const {
  const char* name = sqlite3_column_name(handle_, column_);
  const char* sql = sqlite3_sql(handle_);
  throw Failure(std::string("is damaged: column '") + (name == nullptr ? "?" : name) + "' " + what,
                {.file = connection_.file(),
                 .pointer = "row " + std::to_string(row_) + " of " + (sql == nullptr ? "" : sql)},
                "remove this file, or give another one");
}

std::string Statement::text() {
  const int type = sqlite3_column_type(handle_, column_);
  if (type != SQLITE_TEXT && type != SQLITE_NULL && type != SQLITE_INTEGER)
    damaged("holds no text");
  const auto* bytes = sqlite3_column_text(handle_, column_);
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_, column_));
  ++column_;
  return bytes == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(bytes), size);
}
std::int64_t Statement::integer(std::int64_t least, std::int64_t most) {
  if (sqlite3_column_type(handle_, column_) != SQLITE_INTEGER) damaged("holds no whole number");
  const std::int64_t number = sqlite3_column_int64(handle_, column_);
  if (number < least || number > most)
    damaged("holds " + std::to_string(number) + ", which is not from " + std::to_string(least) +
            " to " + std::to_string(most));
  ++column_;
  return number;
}
double Statement::real() {
  const int type = sqlite3_column_type(handle_, column_);
  const double number = sqlite3_column_double(handle_, column_);
  if ((type != SQLITE_FLOAT && type != SQLITE_INTEGER) || !std::isfinite(number))
    damaged("holds no number");
  ++column_;
  return number;
}
bool Statement::null() {
  if (sqlite3_column_type(handle_, column_) != SQLITE_NULL) return false;
  ++column_;
  return true;
}

Transaction::Transaction(const Connection& connection) : connection_(connection) {
  connection.execute("BEGIN IMMEDIATE");
}
Transaction::~Transaction() {
  if (!committed_) sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Transaction::commit() {
  connection_.execute("COMMIT");
  committed_ = true;
}

Results::Results(std::unique_ptr<Connection> connection, std::vector<std::string> tables)
    : connection_(std::move(connection)), tables_(std::move(tables)) {}

Results::~Results() = default;

std::string Results::image() const {
  return connection_->image();
}

void Results::add(const std::string& image) {
  connection_->add_rows(image, tables_);
}

const std::string& Results::file() const {
  return connection_->file();
}

}  // namespace hemiola::study::sqlite
