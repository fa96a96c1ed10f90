#include "study/sweep/sweep_database.h"

#include <fmt/format.h>

#include <memory>
#include <tuple>

#include "study/laboratory/database_head.h"
#include "study/support/digest.h"
#include "study/support/sqlite.h"

namespace hemiola::study {
namespace {

using sqlite::Statement;
using sqlite::Transaction;

constexpr const char* kDatabaseSchema = "hemiola-sweep/2";

/// `ranks` is a number, or the text of a list.
constexpr const char* kTables =
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

/// The columns between `point` and `status`, and behind `error`: of a point that is done.
template <typename Row>
auto asked(Row& row) {
  return std::tie(row.machine, row.gpu, row.set, row.ranks, row.program, row.parameters, row.dtype,
                  row.op, row.size, row.engine, row.launch, row.skew);
}

template <typename Row>
auto found(Row& row) {
  return std::tie(row.checked, row.bound_program, row.count, row.time, row.algbw_GBps,
                  row.busbw_GBps, row.bound_bandwidth, row.bound_latency, row.ideal, row.line_hops,
                  row.counters, row.attribution);
}

constexpr std::size_t kColumns = 27;

std::unique_ptr<sqlite::Connection> open(const std::string& file, sqlite::Connection::Open how) {
  return std::make_unique<sqlite::Connection>(
      file, how,
      sqlite::Words{"a sweep", "another process has written a point that this one has run",
                    "one at a time writes to a file: --shard gives each its own"});
}

}  // namespace

SweepDatabase::SweepDatabase(const std::string& file, const Head& head)
    : Results(open(file, sqlite::Connection::Open::or_new), {"points"}) {
  Transaction transaction(*connection_);
  if (connection_->fresh()) {
    connection_->execute(kMetaTable);
    connection_->execute(kTables);
    head_ = head;
    write_head();
    transaction.commit();
    return;
  }
  read_head();
  transaction.commit();
  const auto refuse = [&](const std::string& what, const std::string& hint = {}) {
    throw Failure(what, {.file = file},
                  hint.empty() ? "give another --output, or remove this file" : hint);
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
    : Results(open(file, sqlite::Connection::Open::existing), {"points"}) {
  read_head();
}

void SweepDatabase::read_head() {
  connection_->require_tables({"meta", "inputs", "points"});
  Meta meta = read_meta(*connection_, kDatabaseSchema);
  const auto number = [&](const std::string& key) {
    if (const auto count = parse_count(meta[key]); count && *count > 0) return *count;
    throw Failure(fmt::format("is damaged: its '{}' is '{}'", key, meta[key]), {.file = file()},
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
  write_meta(*connection_, kDatabaseSchema,
             {{"version", head_.version},
              {"sweep", head_.sweep},
              {"points", std::to_string(head_.points)},
              {"shard", std::to_string(head_.shard.number)},
              {"shards", std::to_string(head_.shard.count)}});
  Statement inputs(*connection_, sqlite::insert_into("inputs", 2));
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
  for (Statement select(*connection_, "SELECT * FROM points ORDER BY point"); select.step();) {
    SweepRow row{.number = select.integer(0, head_.points - 1)};
    select.read(asked(row));
    row.status = select.named<SweepStatus>(kStatusNames);
    select.read(row.error);
    if (row.status == SweepStatus::done) select.read(found(row));
    take(row);
  }
}

std::string head_of_parts(const SweepDatabase::Head& head) {
  std::string text = fmt::format("{} {}\nversion {}\nshard {}\npoints {}\n", kDatabaseSchema,
                                 digest(head.sweep), head.version, head.shard.text(), head.points);
  for (const auto& [name, contents] : head.inputs) text += contents + ' ' + name + '\n';
  return text;
}

void SweepDatabase::write(std::span<const SweepRow> rows) {
  Transaction transaction(*connection_);
  Statement insert(*connection_, sqlite::insert_into("points", kColumns));
  for (const SweepRow& row : rows) {
    insert.bind(row.number).bind(asked(row)).bind(name_of(row.status));
    if (row.status == SweepStatus::done)
      insert.bind_null().bind(found(row));
    else
      insert.bind(row.error);
    insert.step();
    insert.reset();
  }
  transaction.commit();
}

}  // namespace hemiola::study
