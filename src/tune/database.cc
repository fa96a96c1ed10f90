#include "tune/database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "study/support/sqlite.h"

namespace hemiola::tune {
namespace {

using study::sqlite::insert_into;
using study::sqlite::Statement;

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

/// The columns of `fluid` between those that may be NULL and `attribution`.
template <typename Measured>
auto figures(Measured& measured) {
  return std::tie(measured.buffers, measured.extra_traffic, measured.line_hops, measured.computing,
                  measured.moving);
}

study::DatabaseKind kind() {
  return {.words = {"a tuner's simulations",
                    "another process has written a plan that this one has simulated",
                    "one at a time writes to a file"},
          .schema = kTuneSchema,
          .definitions = kTuneTables,
          .tables = {"bounds", "fluid", "sampled"}};
}

}  // namespace

Database::Database(const std::string& file, const study::DatabaseHead& head)
    : Results(study::open_database(file, kind(), head), kind().tables) {}

bool Database::find(const std::string& key, Time& bound) {
  const std::lock_guard lock(mutex_);
  Statement select(*connection_, "SELECT bound_fs FROM bounds WHERE plan = ?");
  if (!select.bind(key).step()) return false;
  select.read(bound);
  return true;
}

bool Database::find(const std::string& key, explore::Measured& fluid) {
  const std::lock_guard lock(mutex_);
  Statement select(*connection_, "SELECT * FROM fluid WHERE plan = ?");
  if (!select.bind(key).step()) return false;
  select.text();  // the key
  if (!select.null()) select.read(fluid.fluid);
  if (!select.null()) select.read(fluid.refused);
  select.read(figures(fluid));
  fluid.attribution = attribution_of(select.text(), file());
  return true;
}

bool Database::find(const std::string& key, explore::Confirmed& sampled) {
  const std::lock_guard lock(mutex_);
  Statement select(*connection_, "SELECT time_fs, error, attribution FROM sampled WHERE plan = ?");
  if (!select.bind(key).step()) return false;
  select.read(std::tie(sampled.time, sampled.error));
  sampled.attribution = attribution_of(select.text(), file());
  return true;
}

void Database::add(const std::string& key, Time bound) {
  const std::lock_guard lock(mutex_);
  // Two points of a batch may be one plan.
  Statement insert(*connection_, "INSERT OR IGNORE INTO bounds VALUES (?, ?)");
  insert.bind(key).bind(bound).step();
}

void Database::add(const std::string& key, const explore::Measured& fluid) {
  const std::lock_guard lock(mutex_);
  Statement insert(*connection_, insert_into("fluid", 9));
  insert.bind(key);
  if (fluid.refused.empty())
    insert.bind(fluid.fluid).bind_null();
  else
    insert.bind_null().bind(fluid.refused);
  insert.bind(figures(fluid)).bind(text_of_attribution(fluid.attribution)).step();
}

void Database::add(const std::string& key, const explore::Confirmed& sampled) {
  const std::lock_guard lock(mutex_);
  Statement insert(*connection_, insert_into("sampled", 4));
  insert.bind(key).bind(std::tie(sampled.time, sampled.error));
  insert.bind(text_of_attribution(sampled.attribution)).step();
}

void Database::add(const std::string& image) {
  const std::lock_guard lock(mutex_);
  Results::add(image);
}

}  // namespace hemiola::tune
