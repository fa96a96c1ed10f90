#include "explore/suite/suite_database.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/names.h"
#include "study/support/sqlite.h"

namespace hemiola::explore {
namespace {

using study::sqlite::Connection;
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
constexpr int kScenarioResults = 14, kScenarioColumns = 28, kScheduleColumns = 19;

constexpr std::array<std::string_view, 3> kStatusNames{"done", "refused", "internal"};

std::string insert_into(const char* table, int columns) {
  std::string sql = fmt::format("INSERT INTO {} VALUES (?", table);
  for (int i = 1; i < columns; ++i) sql += ", ?";
  return sql + ")";
}

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

std::optional<std::int64_t> fs_of(const std::optional<Time>& time) {
  return time ? std::optional(time->fs) : std::nullopt;
}

void bind_scenario(Statement& insert, const ScenarioRow& row) {
  const Operator& op = row.scenario.op;
  insert.bind(row.number).bind(row.scenario.name).bind(row.scenario.model).bind(row.scenario.set);
  insert.bind(std::string(name_of(op.kind)));
  if (op.kind == OperatorKind::ag_gemm)
    insert.bind(std::string(op.gathers_b ? "b" : "a"));
  else
    insert.bind_null();
  insert.bind(op.m).bind(op.n).bind(op.k).bind(std::string(name_of(op.type)));
  insert.bind(std::int64_t{op.ranks}).bind(op.load).bind(std::string(name_of(row.status)));
  if (row.status != ScenarioStatus::done) {
    insert.bind(row.error);
    for (int i = 0; i < kScenarioResults; ++i) insert.bind_null();
    return;
  }
  insert.bind_null().bind(row.serial_program).bind(row.serial.fs).bind(row.collective.fs);
  insert.bind(row.product.fs).bind(row.ideal.fs).bind(fs_of(row.serial_confirmed)).bind(row.best);
  insert.bind(row.best_family).bind(row.best_time.fs).bind(row.speedup);
  insert.bind(row.simulated).bind(row.space).bind(row.features).bind(row.picks);
}

void bind_schedule(Statement& insert, std::int64_t scenario, std::int64_t position,
                   const ScheduleRow& row) {
  insert.bind(scenario).bind(position).bind(row.schedule).bind(row.family).bind(row.degree);
  insert.bind(row.program).bind(object_of(row.parameters)).bind(row.time.fs).bind(row.fluid.fs);
  insert.bind(fs_of(row.confirmed)).bind(row.bound.fs).bind(row.estimate.fs);
  insert.bind(row.dil_product).bind(row.dil_communication);
  insert.bind(row.cil_product).bind(row.cil_communication);
  insert.bind(row.buffers.count).bind(row.extra_traffic.count);
  if (row.losses.empty())
    insert.bind_null();
  else
    insert.bind(object_of(row.losses));
}

std::optional<Time> time_or_null(Statement& select) {
  if (select.null()) return std::nullopt;
  return Time{select.integer()};
}
std::optional<double> real_or_null(Statement& select) {
  if (select.null()) return std::nullopt;
  return select.real();
}

[[noreturn]] void damaged(const std::string& file, const std::string& what) {
  throw Failure("has " + what + ", which Hemiola does not write", {.file = file},
                "remove this file, and explore the suite again");
}

ScenarioRow read_scenario(Statement& select, const std::string& file) {
  ScenarioRow row;
  row.number = select.integer();
  row.scenario.name = select.text();
  row.scenario.model = select.text();
  row.scenario.set = select.text();
  Operator& op = row.scenario.op;
  op.kind = operator_named(select.text(), {.file = file});
  op.gathers_b = select.text() == "b";
  for (std::int64_t* size : {&op.m, &op.n, &op.k}) *size = select.integer();
  const std::string type = select.text();
  const auto known_type = parse_data_type(type);
  if (!known_type) damaged(file, "the element type '" + type + "'");
  op.type = *known_type;
  op.ranks = static_cast<int>(select.integer(1, 1 << 20));
  op.load = select.text();
  const std::string status = select.text();
  const auto known_status = value_named<ScenarioStatus>(kStatusNames, status);
  if (!known_status) damaged(file, "the status '" + status + "'");
  row.status = *known_status;
  row.error = select.text();
  if (row.status != ScenarioStatus::done) return row;
  row.serial_program = select.text();
  for (Time* time : {&row.serial, &row.collective, &row.product, &row.ideal})
    *time = {select.integer()};
  row.serial_confirmed = time_or_null(select);
  row.best = select.text();
  row.best_family = select.text();
  row.best_time = {select.integer()};
  row.speedup = select.real();
  row.simulated = select.integer();
  row.space = select.integer();
  row.features = select.text();
  row.picks = select.text();
  return row;
}

/// The columns after `scenario` and `position`.
ScheduleRow read_schedule(Statement& select, const std::string& file) {
  ScheduleRow row;
  row.schedule = select.text();
  row.family = select.text();
  row.degree = select.integer();
  row.program = select.text();
  const std::string parameters = select.text();
  for (Time* time : {&row.time, &row.fluid}) *time = {select.integer()};
  row.confirmed = time_or_null(select);
  for (Time* time : {&row.bound, &row.estimate}) *time = {select.integer()};
  for (std::optional<double>* loss :
       {&row.dil_product, &row.dil_communication, &row.cil_product, &row.cil_communication})
    *loss = real_or_null(select);
  row.buffers = {select.integer()};
  row.extra_traffic = {select.integer()};
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

/// What of a file is not as it is asked for.
std::vector<std::string> differences(const SuiteDatabase::Head& is,
                                     const SuiteDatabase::Head& wanted) {
  std::vector<std::string> all;
  if (is.suite != wanted.suite || is.scenarios != wanted.scenarios) all.push_back("another suite");
  for (std::string& one : study::differences(is, wanted)) all.push_back(std::move(one));
  return all;
}

}  // namespace

std::string_view name_of(ScenarioStatus status) {
  return name_in(kStatusNames, status);
}

SuiteDatabase::SuiteDatabase(const std::string& file, const Head& head)
    : file_(file),
      connection_(std::make_unique<Connection>(
          file, Connection::Open::or_new,
          study::sqlite::Words{"a suite",
                               "another process has written a scenario that this one has explored",
                               "one at a time writes to a file"})),
      head_(head) {
  std::ranges::sort(head_.options);
  Transaction transaction(*connection_);
  if (connection_->fresh()) {
    connection_->execute(study::kMetaTable);
    connection_->execute(kSuiteTables);
    study::write_head(*connection_, kSuiteSchema, head_,
                      {{"suite", head_.suite}, {"scenarios", std::to_string(head_.scenarios)}});
    transaction.commit();
    return;
  }
  const std::vector<std::string> other = differences(read_head(), head_);
  transaction.commit();
  if (!other.empty())
    throw Failure(fmt::format("holds other results: {}", fmt::join(other, "; ")), {.file = file_},
                  "give another --out, or remove this file");
}

SuiteDatabase::~SuiteDatabase() = default;
SuiteDatabase::SuiteDatabase(SuiteDatabase&&) noexcept = default;

SuiteDatabase::Head SuiteDatabase::read_head() const {
  connection_->require_tables("'meta', 'scenarios', 'schedules'", 3);
  std::map<std::string, std::string> others;
  Head head{study::read_head(*connection_, kSuiteSchema, &others), others["suite"]};
  head.scenarios = parse_count(others["scenarios"]).value_or(0);
  return head;
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
    rows.push_back(read_scenario(select, file_));
    places[rows.back().number] = rows.size() - 1;
  }
  for (Statement select(*connection_, "SELECT * FROM schedules ORDER BY scenario, position");
       select.step();) {
    const auto row = places.find(select.integer());
    if (row == places.end()) damaged(file_, "schedules of no scenario");
    select.integer();  // the position: rows come in its order
    rows[row->second].schedules.push_back(read_schedule(select, file_));
  }
  return rows;
}

std::string head_of_parts(const SuiteDatabase::Head& head) {
  std::string text = fmt::format("{} {}\nversion {}\nmachine {} {}\n", kSuiteSchema, head.suite,
                                 head.version, head.machine, head.machine_digest);
  for (const auto& [name, value] : head.options) text += name + ' ' + value + '\n';
  return text;
}

std::string SuiteDatabase::image() const {
  return connection_->image();
}

void SuiteDatabase::add(const std::string& image) {
  connection_->add_rows(image, {"scenarios", "schedules"});
}

void SuiteDatabase::write(const ScenarioRow& row) {
  Transaction transaction(*connection_);
  Statement scenario(*connection_, insert_into("scenarios", kScenarioColumns));
  bind_scenario(scenario, row);
  scenario.step();
  Statement schedule(*connection_, insert_into("schedules", kScheduleColumns));
  for (std::size_t i = 0; i < row.schedules.size(); ++i) {
    bind_schedule(schedule, row.number, static_cast<std::int64_t>(i) + 1, row.schedules[i]);
    schedule.step();
    schedule.reset();
  }
  transaction.commit();
}

}  // namespace hemiola::explore
