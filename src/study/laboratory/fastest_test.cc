#include "study/laboratory/fastest.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "study/laboratory/run_tables.h"

namespace hemiola::study {
namespace {

std::vector<Experiment> all_reduces(const std::string& machine, Bytes size) {
  std::vector<Experiment> candidates;
  for (const char* name : {"all-reduce/ring", "all-reduce/one-shot", "all-reduce/two-shot",
                           "all-reduce/double-binary-tree", "all-reduce/nvls"})
    candidates.push_back({.machine = {.name = machine}, .subject = name, .size = size});
  return candidates;
}

TEST(Fastest, names_the_one_that_is_the_fastest_of_all_that_are_run) {
  for (const Bytes size : {KiB(8), KiB(256)}) {
    Laboratory laboratory;
    const std::vector<Experiment> candidates = all_reduces("ring:4", size);
    const Fastest found = find_fastest(laboratory, candidates);
    const auto runs = laboratory.made().simulations;
    Time best = Time::max();
    for (const Experiment& experiment : candidates) {
      try {
        best = std::min(best, laboratory.run(experiment).result.time);
      } catch (const Failure&) {  // there is no switch for nvls
      }
    }
    EXPECT_EQ(found.fastest.result.time, best);
    EXPECT_EQ(found.fastest.result.checked, "full");
    EXPECT_LE(runs, 4);
    EXPECT_NE(found.others.find("all-reduce/nvls cannot: "), std::string::npos) << found.others;
  }
}

TEST(Fastest, does_not_run_what_its_bound_leaves_no_chance) {
  Laboratory laboratory;
  const Fastest found = find_fastest(laboratory, all_reduces("dgx-h100", KiB(8)));
  EXPECT_LT(laboratory.made().simulations, 4);
  EXPECT_NE(found.others.find("all-reduce/ring takes "), std::string::npos) << found.others;
  EXPECT_NE(found.others.find(" at least"), std::string::npos) << found.others;
}

TEST(Fastest, of_equals_the_first_wins) {
  Laboratory laboratory;
  std::vector<Experiment> candidates = all_reduces("ring:4", KiB(8));
  candidates.resize(1);
  candidates.push_back(candidates.front());
  candidates.back().parameters = {{"rings", "graph"}};  // the default
  std::size_t turns = 0;
  const Fastest found = find_fastest(laboratory, candidates, {}, [&](std::size_t) { ++turns; });
  EXPECT_EQ(turns, 2u);
  EXPECT_EQ(found.others, "all-reduce/ring " + to_string(found.fastest.result.time));
}

TEST(Fastest, where_none_can_be_run_says_why_the_first_cannot) {
  Laboratory laboratory;
  std::vector<Experiment> candidates = all_reduces("ring:4", Bytes{1000});
  EXPECT_THROW(find_fastest(laboratory, candidates), Failure);
  for (Experiment& experiment : candidates) experiment.subject = "all-reduce/nvls";
  try {
    find_fastest(laboratory, candidates);
    FAIL() << "there is no switch";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
  }
}

TEST(RunTables, have_a_row_for_each_size_and_a_table_for_each_combination) {
  Laboratory laboratory;
  RunRequest request{.machine = {.name = "ring:4"},
                     .combinations = {{{"gpu.l2.latency", "200ns"}}, {{"gpu.l2.latency", "900ns"}}},
                     .programs = {"all-reduce/ring"},
                     .asked_for = "all-reduce/ring",
                     .sizes = {Bytes{1000}, KiB(1), KiB(64)},
                     .rounding = Rounding::up};
  std::vector<double> ends;
  std::int64_t all_runs = 0;
  const std::vector<RunTable> tables =
      run_tables(laboratory, request,
                 {.on_part = [&](double, double end) { ends.push_back(end); },
                  .on_runs = [&](std::int64_t, std::int64_t all) { all_runs = all; }});
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].machine, "ring:4 gpu.l2.latency=200ns");
  ASSERT_EQ(tables[0].results.size(), 2u) << "1000 B are rounded to 1 KiB, which is there";
  ASSERT_EQ(tables[0].remarks.size(), 1u);
  EXPECT_LT(tables[0].results[1].time, tables[1].results[1].time);
  EXPECT_EQ(tables[1].results[0].settings.at("gpu.l2.latency"), "900ns");
  EXPECT_EQ(all_runs, 6);
  EXPECT_NEAR(ends.back(), 1, 1e-9);
  EXPECT_EQ(joined_tables(request, tables).results.size(), 4u);
  EXPECT_EQ(program_name(request, tables[0]), "all-reduce/ring");
}

TEST(RunTables, of_several_programs_name_the_fastest_of_each_size) {
  Laboratory laboratory;
  RunRequest request{.machine = {.name = "dgx-h100"},
                     .combinations = {{}},
                     .programs = {"all-reduce/two-shot", "all-reduce/one-shot"},
                     .asked_for = "all-reduce"};
  request.sizes = {KiB(8), KiB(256)};
  const std::vector<RunTable> tables = run_tables(laboratory, request, {});
  EXPECT_EQ(tables[0].winners,
            (std::vector<std::string>{"all-reduce/one-shot", "all-reduce/two-shot"}));
  EXPECT_EQ(program_name(request, tables[0]), "all-reduce (the fastest built-in of each size)");
  EXPECT_EQ(tables[0].results[0].settings.at("program"), "all-reduce/one-shot");
  EXPECT_TRUE(tables[0].remarks[0].starts_with("8 KiB: all-reduce/one-shot "))
      << tables[0].remarks[0];
}

TEST(RunTables, refuse_to_record_ranks_that_are_not_there) {
  Laboratory laboratory;
  const RunRequest request{.machine = {.name = "ring:4"},
                           .combinations = {{}},
                           .programs = {"all-reduce/ring"},
                           .sizes = {KiB(1)},
                           .recorded = {4}};
  EXPECT_THROW(run_tables(laboratory, request, {}), Failure);
  EXPECT_EQ(laboratory.made().simulations, 0);
}

}  // namespace
}  // namespace hemiola::study
