#include "tune/database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "study/support/sqlite.h"

namespace hemiola::tune {
namespace {

using study::sqlite::Connection;
using study::sqlite::Statement;
using study::sqlite::Transaction;

constexpr const char* kTuneSchema = "hemiola-tune/1";
constexpr const char* kTuneTables =
    "CREATE TABLE bounds (plan TEXT PRIMARY KEY, bound_fs INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE fluid (\n"
    "  plan TEXT PRIMARY KEY, time_fs INTEGER, refused TEXT, buffers_bytes INTEGER NOT NULL,\n"
    "  extra_traffic_bytes INTEGER NOT NULL, line_hops INTEGER NOT NULL,\n"
    "  computing_fs INTEGER NOT NULL, moving_fs INTEGER NOT NULL, attribution TEXT NOT NULL)\n"
    "  WITHOUT ROWID;"
    "CREATE TABLE sampled (\n"
    "  plan TEXT PRIMARY KEY, time_fs INTEGER NOT NULL, error REAL NOT NULL,\n"
    "  attribution TEXT NOT NULL) WITHOUT ROWID;";

std::string text_of_attribution(const sim::Attribution& attribution) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < attribution.size(); ++i)
    if (attribution[i] != 0)
      object[std::string(name_of(static_cast<sim::Reason>(i)))] = attribution[i];
  return object.dump();
}

sim::Attribution attribution_of(const std::string& text, const std::string& file) {
  sim::Attribution attribution{};
  const auto object = nlohmann::json::parse(text, nullptr, false);
  const auto fail = [&](const std::string& what) {
    throw Failure("has an attribution that Hemiola does not write: " + what, {.file = file},
                  "remove this file, and tune again");
  };
  if (!object.is_object()) fail("no JSON object");
  for (std::size_t i = 0; i < attribution.size(); ++i) {
    const auto found = object.find(name_of(static_cast<sim::Reason>(i)));
    if (found == object.end()) continue;
    const std::optional<std::int64_t> time = whole_number(*found, 0);
    if (!time) fail(found.key() + " is " + found->dump());
    attribution[i] = *time;
  }
  return attribution;
}

}  // namespace

Database::Database(const std::string& file, const study::DatabaseHead& head)
    : file_(file),
      connection_(std::make_unique<Connection>(
          file, Connection::Open::or_new,
          study::sqlite::Words{"a tuner's simulations",
                               "another process has written a plan that this one has simulated",
                               "one at a time writes to a file"})) {
  Transaction transaction(*connection_);
  if (connection_->fresh()) {
    connection_->execute(study::kMetaTable);
    connection_->execute(kTuneTables);
    study::write_head(*connection_, kTuneSchema, head);
    transaction.commit();
    return;
  }
  connection_->require_tables("'meta', 'bounds', 'fluid', 'sampled'", 4);
  const std::vector<std::string> other =
      study::differences(study::read_head(*connection_, kTuneSchema), head);
  transaction.commit();
  if (!other.empty())
    throw Failure(fmt::format("holds other results: {}", fmt::join(other, "; ")), {.file = file_},
                  "give another --database, or remove this file");
}

Database::~Database() = default;

std::optional<Time> Database::bound(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Statement select(*connection_, "SELECT bound_fs FROM bounds WHERE plan = ?");
  if (!select.bind(key).step()) return std::nullopt;
  return Time{select.integer()};
}

std::optional<explore::Measured> Database::fluid(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Statement select(*connection_,
                   "SELECT time_fs, refused, buffers_bytes, extra_traffic_bytes, line_hops, "
                   "computing_fs, moving_fs, attribution FROM fluid WHERE plan = ?");
  if (!select.bind(key).step()) return std::nullopt;
  explore::Measured found;
  if (!select.null()) found.fluid = {select.integer()};
  if (!select.null()) found.refused = select.text();
  found.buffers = {select.integer()};
  found.extra_traffic = {select.integer()};
  found.line_hops = select.integer();
  found.computing = {select.integer()};
  found.moving = {select.integer()};
  found.attribution = attribution_of(select.text(), file_);
  return found;
}

std::optional<explore::Confirmed> Database::sampled(const std::string& key) {
  const std::lock_guard lock(mutex_);
  Statement select(*connection_, "SELECT time_fs, error, attribution FROM sampled WHERE plan = ?");
  if (!select.bind(key).step()) return std::nullopt;
  explore::Confirmed found;
  found.time = {select.integer()};
  found.error = select.real();
  found.attribution = attribution_of(select.text(), file_);
  return found;
}

void Database::add_bound(const std::string& key, Time bound) {
  const std::lock_guard lock(mutex_);
  // Two points of a batch may be one plan.
  Statement insert(*connection_, "INSERT OR IGNORE INTO bounds VALUES (?, ?)");
  insert.bind(key).bind(bound.fs).step();
}

void Database::add_fluid(const std::string& key, const explore::Measured& measured) {
  const std::lock_guard lock(mutex_);
  Statement insert(*connection_, "INSERT INTO fluid VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  const bool runs = measured.refused.empty();
  insert.bind(key);
  insert.bind(runs ? std::optional(measured.fluid.fs) : std::nullopt);
  insert.bind(runs ? std::nullopt : std::optional(measured.refused));
  insert.bind(measured.buffers.count).bind(measured.extra_traffic.count);
  insert.bind(measured.line_hops).bind(measured.computing.fs).bind(measured.moving.fs);
  insert.bind(text_of_attribution(measured.attribution)).step();
}

void Database::add_sampled(const std::string& key, const explore::Confirmed& confirmed) {
  const std::lock_guard lock(mutex_);
  Statement insert(*connection_, "INSERT INTO sampled VALUES (?, ?, ?, ?)");
  insert.bind(key).bind(confirmed.time.fs).bind(confirmed.error);
  insert.bind(text_of_attribution(confirmed.attribution)).step();
}

std::string Database::image() const {
  return connection_->image();
}

void Database::add(const std::string& image) {
  const std::lock_guard lock(mutex_);
  connection_->add_rows(image, {"bounds", "fluid", "sampled"});
}

}  // namespace hemiola::tune
