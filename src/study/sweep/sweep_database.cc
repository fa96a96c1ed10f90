#include "study/sweep/sweep_database.h"

#include <fmt/format.h>

#include <map>

#include "core/names.h"
#include "study/support/digest.h"
#include "study/support/sqlite.h"

namespace hemiola::study {
namespace {

using sqlite::Statement;
using sqlite::Transaction;

constexpr const char* kDatabaseSchema = "hemiola-sweep/2";

sqlite::Words sweep_words() {
  return {"a sweep", "another process has written a point that this one has run",
          "one at a time writes to a file: --shard gives each its own"};
}

/// `ranks` is a number, or the text of a list.
constexpr const char* kTables =
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE inputs (name TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE points (\n"
    "  point INTEGER PRIMARY KEY,\n"
    "  machine TEXT NOT NULL, gpu TEXT NOT NULL, settings TEXT NOT NULL, ranks NUMERIC NOT NULL,\n"
    "  program TEXT NOT NULL, parameters TEXT NOT NULL, dtype TEXT NOT NULL, op TEXT NOT NULL,\n"
    "  size_bytes INTEGER NOT NULL, engine TEXT NOT NULL, launch TEXT NOT NULL,\n"
    "  skew TEXT NOT NULL,\n"
    "  status TEXT NOT NULL, error TEXT, checked TEXT, bound_program TEXT, count INTEGER,\n"
    "  time_fs INTEGER, algbw_GBps REAL, busbw_GBps REAL, bound_bandwidth_fs INTEGER,\n"
    "  bound_latency_fs INTEGER, ideal_fs INTEGER, line_hops INTEGER, counters TEXT,\n"
    "  attribution TEXT);";

constexpr const char* kTableColumns =
    "point, machine, gpu, settings, ranks, program, parameters, dtype, op, size_bytes, engine, "
    "launch, skew, status, error, checked, bound_program, count, time_fs, algbw_GBps, busbw_GBps, "
    "bound_bandwidth_fs, bound_latency_fs, ideal_fs, line_hops, counters, attribution";

constexpr std::array<std::string_view, 5> kStatusNames{"done", "refused", "wrong", "deadlock",
                                                       "internal"};

}  // namespace

std::string_view name_of(SweepStatus status) {
  return name_in(kStatusNames, status);
}

ExitCode code_of(SweepStatus status) {
  constexpr std::array kCodes{ExitCode::done, ExitCode::bad_input, ExitCode::wrong_program,
                              ExitCode::deadlock, ExitCode::internal};
  return kCodes.at(static_cast<std::size_t>(status));
}

namespace {

void bind_row(Statement& insert, const SweepRow& row) {
  insert.bind(row.number).bind(row.machine).bind(row.gpu).bind(row.set).bind(row.ranks);
  insert.bind(row.program).bind(row.parameters).bind(row.dtype).bind(row.op);
  insert.bind(row.size.count).bind(row.engine).bind(row.launch).bind(row.skew);
  insert.bind(std::string(name_of(row.status)));
  if (row.status != SweepStatus::done) {
    insert.bind(row.error);
    for (int i = 0; i < 12; ++i) insert.bind_null();
    return;
  }
  insert.bind_null().bind(row.checked).bind(row.bound_program).bind(row.count).bind(row.time.fs);
  insert.bind(row.algbw_GBps).bind(row.busbw_GBps).bind(row.bound_bandwidth.fs);
  insert.bind(row.bound_latency.fs).bind(row.ideal.fs).bind(row.line_hops);
  insert.bind(row.counters).bind(row.attribution);
}

SweepRow read_row(Statement& select, const std::string& file, std::int64_t points) {
  SweepRow row;
  row.number = select.integer(0, points - 1);
  for (std::string* text : {&row.machine, &row.gpu, &row.set, &row.ranks, &row.program,
                            &row.parameters, &row.dtype, &row.op})
    *text = select.text();
  row.size = {select.integer()};
  row.engine = select.text();
  row.launch = select.text();
  row.skew = select.text();
  const std::string status = select.text();
  const auto known = value_named<SweepStatus>(kStatusNames, status);
  if (!known)
    throw Failure(fmt::format("point {} has the unknown status '{}'", row.number, status),
                  {.file = file});
  row.status = *known;
  row.error = select.text();
  if (row.status != SweepStatus::done) return row;
  row.checked = select.text();
  row.bound_program = select.text();
  row.count = select.integer();
  row.time = {select.integer()};
  row.algbw_GBps = select.real();
  row.busbw_GBps = select.real();
  row.bound_bandwidth = {select.integer()};
  row.bound_latency = {select.integer()};
  row.ideal = {select.integer()};
  row.line_hops = select.integer();
  row.counters = select.text();
  row.attribution = select.text();
  return row;
}

}  // namespace

SweepDatabase::SweepDatabase(const std::string& file, const Head& head)
    : file_(file),
      connection_(std::make_unique<sqlite::Connection>(file, sqlite::Connection::Open::or_new,
                                                       sweep_words())) {
  Transaction transaction(*connection_);
  if (connection_->fresh()) {
    connection_->execute(kTables);
    head_ = head;
    write_head();
    transaction.commit();
    return;
  }
  read_head();
  transaction.commit();
  const auto refuse = [&](const std::string& what, const std::string& hint = {}) {
    throw Failure(what, {.file = file_},
                  hint.empty() ? "give another --out, or remove this file" : hint);
  };
  if (head_.sweep != head.sweep) refuse("holds another sweep");
  if (head_.version != head.version)
    refuse(fmt::format("was written by Hemiola {}, this is {}", head_.version, head.version));
  if (head_.shard != head.shard)
    refuse(
        fmt::format("holds shard {} of this sweep, not {}", head_.shard.text(), head.shard.text()),
        "each shard has a file of its own");
  if (head_.inputs != head.inputs || head_.points != head.points)
    refuse("holds results of this sweep for other contents of the files that it names");
}

SweepDatabase::SweepDatabase(const std::string& file)
    : file_(file),
      connection_(std::make_unique<sqlite::Connection>(file, sqlite::Connection::Open::existing,
                                                       sweep_words())) {
  read_head();
}

SweepDatabase::~SweepDatabase() = default;
SweepDatabase::SweepDatabase(SweepDatabase&&) noexcept = default;

void SweepDatabase::read_head() {
  std::map<std::string, std::string> meta;
  connection_->require_tables("'meta', 'inputs', 'points'", 3);
  for (Statement select(*connection_, "SELECT key, value FROM meta"); select.step();) {
    const std::string key = select.text();
    meta[key] = select.text();
  }
  if (meta["schema"] != kDatabaseSchema)
    throw Failure(fmt::format("has the schema '{}', not {}", meta["schema"], kDatabaseSchema),
                  {.file = file_}, "another version of Hemiola wrote it");
  const auto number = [&](const std::string& key) {
    if (const auto count = parse_count(meta[key]); count && *count > 0) return *count;
    throw Failure(fmt::format("is damaged: its '{}' is '{}'", key, meta[key]), {.file = file_},
                  "remove this file, or give another one");
  };
  head_ = {.version = meta["version"],
           .sweep = meta["sweep"],
           .points = number("points"),
           .shard = {number("shard"), number("shards")}};
  for (Statement select(*connection_, "SELECT name, digest FROM inputs ORDER BY name");
       select.step();) {
    std::string name = select.text();
    head_.inputs.emplace_back(std::move(name), select.text());
  }
}

void SweepDatabase::write_head() {
  Statement insert(*connection_, "INSERT INTO meta VALUES (?, ?)");
  const auto add = [&](const std::string& key, const std::string& value) {
    insert.bind(key).bind(value).step();
    insert.reset();
  };
  add("schema", kDatabaseSchema);
  add("version", head_.version);
  add("sweep", head_.sweep);
  add("points", std::to_string(head_.points));
  add("shard", std::to_string(head_.shard.number));
  add("shards", std::to_string(head_.shard.count));
  Statement inputs(*connection_, "INSERT INTO inputs VALUES (?, ?)");
  for (const auto& [name, digest] : head_.inputs) {
    inputs.bind(name).bind(digest).step();
    inputs.reset();
  }
}

std::vector<std::int64_t> SweepDatabase::known() const {
  std::vector<std::int64_t> numbers;
  for (Statement select(*connection_, "SELECT point FROM points ORDER BY point"); select.step();)
    numbers.push_back(select.integer(0, head_.points - 1));
  return numbers;
}

void SweepDatabase::read(const std::function<void(const SweepRow&)>& take) const {
  Statement select(*connection_,
                   std::string("SELECT ") + kTableColumns + " FROM points ORDER BY point");
  while (select.step()) take(read_row(select, file_, head_.points));
}

std::string head_of_parts(const SweepDatabase::Head& head) {
  std::string text = fmt::format("{} {}\nversion {}\nshard {}\npoints {}\n", kDatabaseSchema,
                                 digest(head.sweep), head.version, head.shard.text(), head.points);
  for (const auto& [name, contents] : head.inputs) text += contents + ' ' + name + '\n';
  return text;
}

std::string SweepDatabase::image() const {
  return connection_->image();
}

void SweepDatabase::add(const std::string& image) {
  connection_->add_rows(image, {"points"});
}

void SweepDatabase::write(std::span<const SweepRow> rows) {
  Transaction transaction(*connection_);
  Statement insert(*connection_, std::string("INSERT INTO points (") + kTableColumns +
                                     ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                                     "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const SweepRow& row : rows) {
    bind_row(insert, row);
    insert.step();
    insert.reset();
  }
  transaction.commit();
}

}  // namespace hemiola::study
