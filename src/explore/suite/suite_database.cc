#include "explore/suite/suite_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "study/support/sqlite.h"

namespace hemiola::explore {
namespace {

using study::sqlite::insert_into;
using study::sqlite::Statement;
using study::sqlite::Transaction;

constexpr const char* kSuiteSchema = "hemiola-explore/3";

constexpr const char* kSuiteTables =
    "CREATE TABLE scenarios (\n"
    "  scenario INTEGER PRIMARY KEY,\n"
    "  name TEXT NOT NULL, model TEXT NOT NULL, \"set\" TEXT NOT NULL, operator TEXT NOT NULL,\n"
    "  gather TEXT, m INTEGER NOT NULL, n INTEGER NOT NULL, k INTEGER NOT NULL,\n"
    "  dtype TEXT NOT NULL, ranks INTEGER NOT NULL, load TEXT NOT NULL,\n"
    "  status TEXT NOT NULL, error TEXT,\n"
    "  serial_program TEXT, serial_fs INTEGER, collective_fs INTEGER, product_fs INTEGER,\n"
    "  ideal_fs INTEGER,\n"
    "  serial_confirmed_fs INTEGER, best TEXT, best_family TEXT, best_fs INTEGER, speedup REAL,\n"
    "  simulated INTEGER, space INTEGER, features TEXT, picks TEXT);"
    "CREATE TABLE schedules (\n"
    "  scenario INTEGER NOT NULL, position INTEGER NOT NULL,\n"
    "  schedule TEXT NOT NULL, family TEXT NOT NULL, degree INTEGER NOT NULL,\n"
    "  program TEXT NOT NULL, parameters TEXT NOT NULL, time_fs INTEGER NOT NULL,\n"
    "  fluid_fs INTEGER NOT NULL, confirmed_fs INTEGER, bound_fs INTEGER NOT NULL,\n"
    "  estimate_fs INTEGER NOT NULL, dil_product REAL, dil_communication REAL, cil_product REAL,\n"
    "  cil_communication REAL, buffers_bytes INTEGER NOT NULL,\n"
    "  extra_traffic_bytes INTEGER NOT NULL, losses TEXT,\n"
    "  PRIMARY KEY (scenario, position)) WITHOUT ROWID;";
constexpr std::size_t kScenarioColumns = 28, kScheduleColumns = 19;

constexpr std::array<std::string_view, 3> kStatusNames{"done", "refused", "internal"};

template <typename Pairs>
std::string object_of(const Pairs& pairs) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : pairs)
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Time>)
      object[name] = value.fs;
    else
      object[name] = value;
  return object.dump();
}

// The columns between those that are words, or objects.
template <typename Row>
auto names(Row& row) {
  return std::tie(row.scenario.name, row.scenario.model, row.scenario.set);
}
template <typename Op>
auto sizes(Op& op) {
  return std::tie(op.m, op.n, op.k);
}
template <typename Row>
auto found(Row& row) {
  return std::tie(row.serial_program, row.serial, row.collective, row.product, row.ideal,
                  row.serial_confirmed, row.best, row.best_family, row.best_time, row.speedup,
                  row.simulated, row.space, row.features, row.picks);
}
template <typename Row>
auto which(Row& row) {
  return std::tie(row.schedule, row.family, row.degree, row.program);
}
template <typename Row>
auto figures(Row& row) {
  return std::tie(row.time, row.fluid, row.confirmed, row.bound, row.estimate, row.dil_product,
                  row.dil_communication, row.cil_product, row.cil_communication, row.buffers,
                  row.extra_traffic);
}

void bind_scenario(Statement& insert, const ScenarioRow& row) {
  const Operator& op = row.scenario.op;
  insert.bind(row.number).bind(names(row)).bind(name_of(op.kind));
  if (op.kind == OperatorKind::ag_gemm)
    insert.bind(op.gathers_b ? "b" : "a");
  else
    insert.bind_null();
  insert.bind(sizes(op)).bind(name_of(op.type)).bind(std::int64_t{op.ranks}).bind(op.load);
  insert.bind(name_of(row.status));
  if (row.status == ScenarioStatus::done)
    insert.bind_null().bind(found(row));
  else
    insert.bind(row.error);
}

[[noreturn]] void damaged(const std::string& file, const std::string& what) {
  throw Failure("has " + what + ", which Hemiola does not write", {.file = file},
                "remove this file, and explore the suite again");
}

ScenarioRow read_scenario(Statement& select, const std::string& file) {
  ScenarioRow row{.number = select.integer()};
  select.read(names(row));
  Operator& op = row.scenario.op;
  op.kind = operator_named(select.text(), {.file = file});
  op.gathers_b = select.text() == "b";
  select.read(sizes(op));
  const std::string type = select.text();
  const auto known_type = parse_data_type(type);
  if (!known_type) damaged(file, "the element type '" + type + "'");
  op.type = *known_type;
  op.ranks = static_cast<int>(select.integer(1, 1 << 20));
  op.load = select.text();
  row.status = select.named<ScenarioStatus>(kStatusNames);
  row.error = select.text();
  if (row.status == ScenarioStatus::done) select.read(found(row));
  return row;
}

/// The columns after `scenario` and `position`.
ScheduleRow read_schedule(Statement& select, const std::string& file) {
  ScheduleRow row;
  select.read(which(row));
  const std::string parameters = select.text();
  select.read(figures(row));
  const std::string losses = select.text();
  try {
    const auto settings = nlohmann::ordered_json::parse(parameters);
    for (const auto& [name, value] : settings.items())
      row.parameters.emplace_back(name, value.get<std::string>());
    if (losses.empty()) return row;
    const auto causes = nlohmann::ordered_json::parse(losses);
    for (const auto& [name, value] : causes.items())
      row.losses.emplace_back(name, Time{whole_number(value).value()});
  } catch (const std::exception&) {  // of JSON, or a loss that is no whole number
    damaged(file, "a text that is no JSON object");
  }
  return row;
}

study::DatabaseKind kind() {
  return {.words = {"a suite", "another process has written a scenario that this one has explored",
                    "one at a time writes to a file"},
          .schema = kSuiteSchema,
          .definitions = kSuiteTables,
          .tables = {"scenarios", "schedules"}};
}

}  // namespace

std::string_view name_of(ScenarioStatus status) {
  return name_in(kStatusNames, status);
}

SuiteDatabase::SuiteDatabase(const std::string& file, const Head& head)
    : Results(study::open_database(
                  file, kind(), head,
                  {{"suite", head.suite}, {"scenarios", std::to_string(head.scenarios)}},
                  "another suite"),
              kind().tables),
      head_(head) {
  std::ranges::sort(head_.options);
}

std::vector<std::int64_t> SuiteDatabase::known() const {
  std::vector<std::int64_t> numbers;
  for (Statement select(*connection_, "SELECT scenario FROM scenarios ORDER BY scenario");
       select.step();)
    numbers.push_back(select.integer(0, head_.scenarios - 1));
  return numbers;
}

std::vector<ScenarioRow> SuiteDatabase::read() const {
  std::vector<ScenarioRow> rows;
  std::map<std::int64_t, std::size_t> places;
  for (Statement select(*connection_, "SELECT * FROM scenarios ORDER BY scenario");
       select.step();) {
    rows.push_back(read_scenario(select, file()));
    places[rows.back().number] = rows.size() - 1;
  }
  for (Statement select(*connection_, "SELECT * FROM schedules ORDER BY scenario, position");
       select.step();) {
    const auto row = places.find(select.integer());
    if (row == places.end()) damaged(file(), "schedules of no scenario");
    select.integer();  // the position: rows come in its order
    rows[row->second].schedules.push_back(read_schedule(select, file()));
  }
  return rows;
}

std::string head_of_parts(const SuiteDatabase::Head& head) {
  std::string text = fmt::format("{} {}\nversion {}\nmachine {} {}\n", kSuiteSchema, head.suite,
                                 head.version, head.machine, head.machine_digest);
  for (const auto& [name, value] : head.options) text += name + ' ' + value + '\n';
  return text;
}

void SuiteDatabase::write(const ScenarioRow& row) {
  Transaction transaction(*connection_);
  Statement scenario(*connection_, insert_into("scenarios", kScenarioColumns));
  bind_scenario(scenario, row);
  scenario.step();
  Statement schedule(*connection_, insert_into("schedules", kScheduleColumns));
  for (std::size_t i = 0; i < row.schedules.size(); ++i) {
    const ScheduleRow& one = row.schedules[i];
    schedule.bind(row.number).bind(static_cast<std::int64_t>(i) + 1).bind(which(one));
    schedule.bind(object_of(one.parameters)).bind(figures(one));
    if (!one.losses.empty()) schedule.bind(object_of(one.losses));
    schedule.step();
    schedule.reset();
  }
  transaction.commit();
}

}  // namespace hemiola::explore
