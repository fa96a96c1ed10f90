// hemiola explore --suite as a user runs it: killed and resumed, printed, and refused.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "database.h"
#include "program.h"

namespace hemiola::test {
namespace {

constexpr const char* kScenarios =
    "scenarios:\n"
    "  - {name: one, model: x, operator: ag-gemm, gemm: [512, 1024, 512], ranks: 8}\n"
    "  - {name: two, set: fit, operator: ag-gemm, gemm: [512, 2048, 512], ranks: 4}\n"
    "  - {name: many, operator: ag-gemm, gemm: [512, 1024, 512], ranks: 16}\n"
    "  - {name: weights, operator: ag-gemm, gather: b, gemm: [64, 1024, 512], ranks: 8}\n"
    "  - {name: experts, operator: a2a-gemm, gemm: [512, 512, 512], ranks: 8}\n"
    "  - {name: more experts, operator: a2a-gemm, gemm: [1024, 512, 512], ranks: 8}\n";
constexpr int kScenarioCount = 6;
const std::string kExplore =
    "explore --suite suite.yaml --machine mi300x-8 --degrees 2 --losses none --database ";

std::string dump_of_suite(const std::string& file) {
  return dump(file, {"SELECT * FROM meta ORDER BY key", "SELECT * FROM scenarios ORDER BY scenario",
                     "SELECT * FROM schedules ORDER BY scenario, position"});
}

TEST(ExploreSuite, killed_again_and_again_it_ends_with_the_contents_of_one_that_was_not) {
  const Workplace place;
  place.write("suite.yaml", kScenarios);
  const Outcome first = place.run(kExplore + "whole");
  EXPECT_EQ(first.code, 0) << first.err;
  const std::string whole = dump_of_suite(place.path("whole"));
  ASSERT_EQ(count_rows(place.path("whole"), "scenarios"), kScenarioCount);
  EXPECT_GT(count_rows(place.path("whole"), "schedules"), kScenarioCount);
  int killed = 0;
  for (int before = 0; killed < 2 && before < kScenarioCount;) {
    Running run = place.start(kExplore + "part --threads 2");
    before = wait_for_more_rows(place.path("part"), "scenarios", before);
    run.send(SIGKILL);
    if (run.wait().code == 128 + SIGKILL && before < kScenarioCount) ++killed;
  }
  EXPECT_GT(killed, 0);
  const Outcome last = place.run(kExplore + "part --threads 2");
  EXPECT_EQ(last.code, 0) << last.err;
  EXPECT_EQ(dump_of_suite(place.path("part")), whole);
  EXPECT_EQ(place.files(), "part suite.yaml whole ");
}

TEST(ExploreSuite, interrupted_it_keeps_what_is_done) {
  const Workplace place;
  place.write("suite.yaml", kScenarios);
  Running run = place.start(kExplore + "part --json part.json --csv part.csv");
  ASSERT_TRUE(run.wait_until_it_catches_interrupts());
  wait_for_more_rows(place.path("part"), "scenarios", 0);
  run.send(SIGINT);
  const Outcome outcome = run.wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_TRUE(contains(outcome.err, "of 6 scenarios are done")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "what is done is in part: the same command goes on there"));
  EXPECT_EQ(place.files(), "part suite.yaml ");
}

TEST(ExploreSuite, prints_a_table_and_writes_json_csv_and_a_page) {
  const Workplace place;
  place.write("suite.yaml", kScenarios);
  const std::string page = HEMIOLA_PAGES ? " --report r.html" : "";
  const Outcome outcome = place.run(kExplore + "rows --json j --csv c" + page);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words :
       {"suite.yaml: 6 of 6 scenarios", "best schedule", "weights", "# fastest ",
        "in the geometric mean", "many: refused: the machine has 8 GPUs"})
    EXPECT_TRUE(contains(outcome.out, words)) << words << '\n' << outcome.out;
  const auto json = nlohmann::json::parse(place.read("j"));
  ASSERT_EQ(json["scenarios"].size(), std::size_t{kScenarioCount});
  EXPECT_EQ(json["scenarios"][2]["status"], "refused");
  EXPECT_EQ(json["summary"]["done"], 5);
  const auto& one = json["scenarios"][0];
  ASSERT_EQ(place
                .run("explore ag-gemm --gemm 512,1024,512 --machine mi300x-8 --degrees 2 "
                     "--losses none --quiet --json single")
                .code,
            0);
  const auto single = nlohmann::json::parse(place.read("single"));
  EXPECT_EQ(one["best"], single["best"]);
  EXPECT_EQ(one["serial_fs"], single["serial"]["time_fs"]);
  EXPECT_EQ(one["space"], single["space"]);
  EXPECT_EQ(one["best_fs"], single["results"][0]["time_fs"]);
  EXPECT_EQ(json["scenarios"][3]["m"], 512) << "64 of each rank";
  const std::string csv = place.read("c");
  EXPECT_TRUE(
      contains(csv, "scenario,name,model,set,operator,gather,m,n,k,dtype,ranks,load,status,"));
  EXPECT_TRUE(contains(csv, "\n0,one,x,,ag-gemm,a,512,1024,512,bfloat16,8,even,done,")) << csv;
  EXPECT_TRUE(contains(csv, "\n2,many,,,ag-gemm,a,512,1024,512,bfloat16,16,even,refused,")) << csv;
  if (!HEMIOLA_PAGES) return;
  const std::string html = place.read("r.html");
  for (const char* words : {"heat_map", "Speedup over serial", "Not explored", "more experts"})
    EXPECT_TRUE(contains(html, words)) << words;
}

TEST(ExploreSuite, goes_on_with_its_own_file_only) {
  const Workplace place;
  place.write("suite.yaml",
              "scenarios:\n- {name: a, operator: a2a-gemm, gemm: [512, 512, 512], "
              "ranks: 8}\n");
  ASSERT_EQ(place.run(kExplore + "rows").code, 0);
  const Outcome again = place.run(kExplore + "rows --launch graph --fluid 5");
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(contains(again.err,
                       "rows: error: holds other results: option fluid 60, not 5; "
                       "option launch stream, not graph"))
      << again.err;
}

TEST(ExploreSuite, of_which_nothing_can_be_explored_is_bad_input) {
  const Workplace place;
  place.write("suite.yaml",
              "scenarios:\n- {name: a, operator: a2a-gemm, gemm: [512, 512, 512], "
              "ranks: 16}\n");
  const Outcome outcome = place.run(kExplore + "rows");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.out, "a: refused: the machine has 8 GPUs, not 16")) << outcome.out;
}

TEST(ExploreSuite, refuses_bad_usage_with_code_2) {
  const Workplace place;
  place.write("suite.yaml", kScenarios);
  const auto expect = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = place.run("explore " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  };
  expect("--suite suite.yaml --machine mi300x-8", "--database: error: no database is given");
  expect("ag-gemm --gemm 64,64,64 --machine dgx-h100 --degrees 2,1024",
         "--degrees: error: 1024 steps are more than there are rows (M = 64)");
  expect("--suite suite.yaml --database x", "--machine: error: ");
  expect("--suite suite.yaml --database x --machine mi300x", "mi300x");
  expect("--suite overlapp --database x --machine mi300x-8", "did you mean 'overlap'?");
  expect("--suite absent.yaml --database x --machine mi300x-8", "absent.yaml: error: no such file");
  expect("ag-gemm --suite suite.yaml --database x --machine mi300x-8", "does not go with --suite");
  expect("--gemm 8,8,8 --suite suite.yaml --database x --machine mi300x-8",
         "--gemm: error: does not go with --suite");
  expect("--emit p --suite suite.yaml --database x --machine mi300x-8",
         "--emit: error: does not go with --suite");
  expect("--ranks 0-3 --suite suite.yaml --database x --machine mi300x-8", "--ranks: error: '0-3'");
  expect("ag-gemm --gemm 512,1024,512 --machine mi300x-8 --database x",
         "--database: error: goes with");
  expect("ag-gemm --gemm 64:x2,1024,512 --machine mi300x-8",
         "--gemm: error: '64:x2' is not a range");
  expect("ag-gemm --gemm 64:32:x2,1024,512 --machine mi300x-8", "the range ends before it starts");
  expect("ag-gemm --gemm 3:1099511627776:x1099511627776,1024,512 --machine mi300x-8",
         "M = 3 does not divide by 8");
  EXPECT_EQ(place.files(), "suite.yaml ") << "nothing was created";
  expect("--suite suite.yaml --database suite.yaml --machine mi300x-8",
         "suite.yaml: error: is not a database");
}

TEST(ExploreBench, has_the_schedules_and_a_program_for_them) {
  const Workplace place;
  const Outcome outcome = place.run(
      "explore gemm-rs --gemm 256,512,256 --machine mi300x-8 --ranks 4 --degrees 2 "
      "--losses none --top 3 --bench bench --quiet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const auto asked = nlohmann::json::parse(place.read("bench/schedules.json"));
  EXPECT_EQ(asked.at("operator").at("local").at("k"), 64);
  EXPECT_EQ(asked.at("collective"), "reduce-scatter");
  ASSERT_EQ(asked.at("schedules").size(), 3U);
  EXPECT_EQ(asked.at("schedules").at(2).at("file"), "schedule-3.py");
  EXPECT_TRUE(contains(place.read("bench/schedule-3.py"), "\"\"\"gemm-rs/"));
  EXPECT_TRUE(contains(place.read("bench/bench.py"), "hemiola_rt.load_file"));
  EXPECT_TRUE(contains(place.read("bench/hemiola_rt/__init__.py"), "def connect("));
}

TEST(ExploreRange, says_from_where_on_overlap_pays_and_writes_it_as_a_rule) {
  const Workplace place;
  const Outcome outcome = place.run(
      "explore ag-gemm --gemm 30:1920:x4,1024,512 --machine mi300x-8 --ranks 4 "
      "--degrees 2 --thresholds rows.rule --json range.json --quiet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "M does not divide: 30")) << outcome.out;
  EXPECT_TRUE(contains(place.read("rows.rule"), "hemiola-rule 1"));
  const auto range = nlohmann::json::parse(place.read("range.json"));
  EXPECT_EQ(range.at("explorations").size(), 3U);
}

TEST(ExploreMeasured, fits_the_machine_and_prints_both_times) {
  const Workplace place;
  place.write("times.csv",
              "what,m,n,k,size_bytes,schedule,time_us\nproduct,1024,256,1024,,,20\n"
              "schedule,,,,,serial,60\n");
  const Outcome outcome = place.run(
      "explore ag-gemm --local 1024,256,1024 --machine mi300x-8 --ranks 4 --degrees 2 "
      "--losses none --measured times.csv --quiet");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "# measured: products take")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "--set 'gpu.gemm.clock=")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "60.000")) << outcome.out;
}

}  // namespace
}  // namespace hemiola::test
