// Suites in databases: what they hold, going on, and what is refused.
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>

#include "core/testing/failure.h"
#include "explore/suite/suite_run.h"
#include "study/laboratory/database_head.h"
#include "study/sweep/sweep_database.h"
#include "study/testing/sweep.h"

namespace hemiola::explore {
namespace {

using test::SweepFolder;
using testing::ElementsAre;
using testing::HasSubstr;

/// Two that are explored, one with more ranks than the machine has.
const char* const kSuite =
    "scenarios:\n"
    "- {name: small, set: fit, operator: ag-gemm, gemm: [512, 1024, 512], ranks: 8}\n"
    "- {name: many, operator: ag-gemm, gemm: [512, 1024, 512], ranks: 16}\n"
    "- {name: half, operator: ag-gemm, gather: b, gemm: [64, 1024, 512], ranks: 4}\n";

Request small_request() {
  Request request{.fluid = 6, .losses = LossesOf::best};
  request.machine.name = "mi300x-8";
  request.limits.degrees = {2};
  return request;
}

std::vector<ScenarioRow> rows_with(const std::string& file, const SuiteRunOptions& options,
                                   const Request& request = small_request()) {
  study::Laboratory laboratory;
  const Suite suite = parse_scenarios(kSuite, "s.yaml");
  SuiteDatabase database(file, head_of(laboratory, suite, request, "test"));
  run_suite(laboratory, suite, request, database, options);
  return database.read();
}

void expect_same(const std::vector<ScenarioRow>& a, const std::vector<ScenarioRow>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].scenario, b[i].scenario);
    EXPECT_EQ(a[i].error, b[i].error);
    EXPECT_EQ(a[i].best, b[i].best);
    EXPECT_EQ(a[i].best_time, b[i].best_time);
    EXPECT_EQ(a[i].speedup, b[i].speedup);
    EXPECT_EQ(a[i].simulated, b[i].simulated);
    ASSERT_EQ(a[i].schedules.size(), b[i].schedules.size());
    for (std::size_t j = 0; j < a[i].schedules.size(); ++j) {
      const ScheduleRow &one = a[i].schedules[j], &other = b[i].schedules[j];
      EXPECT_EQ(one.schedule, other.schedule);
      EXPECT_EQ(one.parameters, other.parameters);
      EXPECT_EQ(one.time, other.time);
      EXPECT_EQ(one.confirmed, other.confirmed);
      EXPECT_EQ(one.dil_product, other.dil_product);
      EXPECT_EQ(one.cil_communication, other.cil_communication);
      EXPECT_EQ(one.losses, other.losses);
    }
  }
}

TEST(SuiteRuns, explore_each_scenario_as_explore_does) {
  const std::vector<ScenarioRow> rows = rows_with(":memory:", {});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[1].status, ScenarioStatus::refused);
  EXPECT_THAT(rows[1].error, HasSubstr("the machine has 8 GPUs, not 16"));
  EXPECT_TRUE(rows[1].schedules.empty());
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    const ScenarioRow& row = rows[i];
    ASSERT_EQ(row.status, ScenarioStatus::done) << row.error;
    study::Laboratory laboratory;
    Request request = small_request();
    request.op = row.scenario.op;
    request.machine.ranks = std::to_string(row.scenario.op.ranks);
    const Exploration found = explore(laboratory, request);
    expect_same({row}, {row_of(row.number, row.scenario, found)});
    EXPECT_EQ(row.serial, found.serial.time);
    EXPECT_EQ(row.collective, found.serial.collective);
    EXPECT_EQ(row.product, found.serial.product);
    EXPECT_EQ(row.serial_confirmed, found.serial.confirmed);
    EXPECT_EQ(row.best_time, found.best());
    EXPECT_EQ(row.simulated, std::ssize(row.schedules) + 1);
    EXPECT_FALSE(row.schedules.at(0).losses.empty());
    EXPECT_EQ(row.speedup_of(row.schedules.at(0)), found.speedup(found.candidates.at(0)));
  }
}

TEST(SuiteRuns, do_not_depend_on_threads) {
  expect_same(rows_with(":memory:", {.threads = 3}), rows_with(":memory:", {}));
}

TEST(SuiteRuns, that_were_stopped_go_on_to_the_same_rows) {
  const SweepFolder folder;
  const std::vector<ScenarioRow> whole = rows_with(folder.path("whole"), {});
  std::atomic<bool> stop{false};
  const SuiteRunOptions once{.stop = &stop,
                             .on_progress = [&](const SuiteProgress& now) { stop = now.done > 0; }};
  EXPECT_THROW(rows_with(folder.path("part"), once), Interrupted);
  {
    study::Laboratory laboratory;
    const Suite suite = parse_scenarios(kSuite, "s.yaml");
    const SuiteDatabase part(folder.path("part"),
                             head_of(laboratory, suite, small_request(), "test"));
    EXPECT_GE(part.known().size(), 1u);
    EXPECT_LT(part.known().size(), 3u);
  }
  expect_same(rows_with(folder.path("part"), {}), whole);
  expect_same(rows_with(folder.path("part"), {}), whole);
}

TEST(SuiteDatabases, keep_to_one_suite_machine_version_and_options) {
  const SweepFolder folder;
  study::Laboratory laboratory;
  const Suite suite = parse_scenarios(kSuite, "s.yaml");
  const std::string file = folder.path("rows");
  const auto message = [&](const Suite& of, const Request& request, const std::string& version) {
    return test::message_of(
        [&] { const SuiteDatabase opened(file, head_of(laboratory, of, request, version)); });
  };
  const Request request = small_request();
  EXPECT_EQ(message(suite, request, "1"), "no failure");
  EXPECT_EQ(message(suite, request, "1"), "no failure");
  EXPECT_THAT(message(suite, request, "2"),
              HasSubstr("holds other results: version " + study::results_version("1") + ", not " +
                        study::results_version("2")));
  Suite longer = suite;
  longer.text += "# more\n";
  EXPECT_THAT(message(longer, request, "1"), HasSubstr("holds other results: another suite"));
  Request other = request;
  other.limits.degrees = {2, 4};
  other.options.launch = sim::Launch::graph;
  EXPECT_THAT(message(suite, other, "1"),
              HasSubstr("option degrees 2, not 2,4; option launch stream, not graph"));
  other = request;
  other.machine.name = "dgx-h100";
  EXPECT_THAT(message(suite, other, "1"), HasSubstr("machine mi300x-8, not dgx-h100"));
  other = request;
  other.machine.given =
      laboratory.machine({.name = "mi300x-8", .settings = {{"gpu.cu.count", "8"}}});
  EXPECT_THAT(message(suite, other, "1"), HasSubstr("a machine mi300x-8 with other figures"));
  other = request;
  other.options.threads = 7;
  EXPECT_EQ(message(suite, other, "1"), "no failure") << "threads change nothing";
}

TEST(SuiteDatabases, refuse_files_of_something_else) {
  const SweepFolder folder;
  study::Laboratory laboratory;
  const SuiteDatabase::Head head =
      head_of(laboratory, parse_scenarios(kSuite, "s.yaml"), small_request(), "test");
  const auto message = [&](const std::string& name) {
    return test::message_of([&] { const SuiteDatabase opened(folder.path(name), head); });
  };
  folder.write("text", std::string(2000, 'x'));
  EXPECT_THAT(message("text"), HasSubstr("is not a database\n  hint: give the file of a suite"));
  EXPECT_THAT(message("nowhere/rows"), HasSubstr("cannot be opened"));
  {
    const study::Sweep sweep =
        folder.sweep("machine: ring:2\nprogram: all-reduce/ring\nsize: 1KiB\n");
    const study::SweepDatabase rows(folder.path("sweep"), {.version = "test", .sweep = sweep.text});
  }
  EXPECT_THAT(message("sweep"), HasSubstr("is a database, but not of a suite"));
}

TEST(SuiteDatabases, write_a_scenario_once_with_all_its_schedules) {
  const SweepFolder folder;
  study::Laboratory laboratory;
  const Suite suite = parse_scenarios(kSuite, "s.yaml");
  SuiteDatabase database(folder.path("rows"), head_of(laboratory, suite, small_request(), "test"));
  ScenarioRow row{.number = 2, .scenario = suite.scenarios[2]};
  row.schedules = {{.schedule = "a, \"b\"", .parameters = {{"m", "1"}, {"c", "x\"y"}}},
                   {.schedule = "b", .dil_product = 1.25, .losses = {{"links", Time{-3}}}}};
  database.write(row);
  EXPECT_THAT(test::message_of([&] { database.write(row); }), HasSubstr("another process has"));
  EXPECT_THAT(database.known(), ElementsAre(2));
  const std::vector<ScenarioRow> rows = database.read();
  ASSERT_EQ(rows.size(), 1u);
  expect_same(rows, {row});
}

}  // namespace
}  // namespace hemiola::explore
