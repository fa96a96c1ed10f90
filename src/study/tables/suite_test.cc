#include "study/tables/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/embedded.h"

namespace hemiola::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kMarks =
    "marks:\n"
    "  graph: {<1MB: {median: 0.1, worst: 0.25}, 1-64MB: {}, 64-128MB: {}, '>=128MB': {}}\n"
    "  stream: {<1MB: {median: 0.2}, 1-64MB: {}, 64-128MB: {}, '>=128MB': {}}\n";
const std::string kTwo =
    "- {name: a, kind: calibrate, table: x.csv, machine: ring:2, program: p, launch: graph}\n";

std::string suite_failure(const std::string& text) {
  try {
    parse_suite(text, "s.yaml");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}
std::string suite_entries_failure(const std::string& entries) {
  return suite_failure(kMarks + "entries:\n" + entries);
}

TEST(Suite, lists_and_words_are_what_they_are_said_to_be) {
  const std::string entries = kMarks + "entries:\n" + kTwo;
  const std::pair<std::string, std::string> cases[] = {
      {kMarks + "entries: {a: 1}\n", "'entries' must be a list"},
      {entries + "comparisons: {a: 1}\n", "'comparisons' must be a list"},
      {entries + "micro: 3\n", "'micro' must be a list"},
      {entries + "comparisons:\n- {name: c, first: [[a]], second: [a]}\n", "must be one word"},
      {kMarks +
           "entries:\n- {name: a, kind: check, table: x, machine: m, program: p, launch: graph, "
           "where: {op: {x: 1}}}\n",
       "'op' must be a list"}};
  for (const auto& [text, expected] : cases)
    EXPECT_THAT(suite_failure(text), AllOf(HasSubstr("s.yaml:"), HasSubstr(expected)));
}

TEST(Suite, an_entry_is_read_with_all_its_keys) {
  const Suite suite = parse_suite(
      kMarks + "entries:\n" + kTwo +
          "- {name: b, kind: check, table: y.csv, where: {op: x, gpus: [2, 4]}, columns: {time_us: "
          "t},\n"
          "   from: 1KiB, to: 8MiB, machine: ring:4, gpu: a100, set: {nic.mtu: 1KiB}, program: q, "
          "parameters: {channels: 2},\n"
          "   dtype: half, ranks: 4, launch: stream, calibrate: a}\n",
      "s.yaml");
  ASSERT_EQ(suite.entries.size(), 2u);
  EXPECT_EQ(suite.entries[0].calibrate, "a") << "a calibrate entry is fitted to itself";
  const SuiteEntry& entry = suite.entry("b");
  EXPECT_EQ(entry.kind, Kind::check);
  EXPECT_EQ(to_text(entry.where), "op=x gpus=2,4");
  EXPECT_EQ(entry.from, KiB(1));
  EXPECT_EQ(entry.machine_options.gpu, "a100");
  EXPECT_THAT(entry.machine_options.set, ElementsAre(testing::Pair("nic.mtu", "1KiB")));
  EXPECT_EQ(entry.to, MiB(8));
  EXPECT_EQ(entry.type, DataType::float16);
  EXPECT_EQ(entry.ranks, 4);
  EXPECT_EQ(suite.marks(sim::Launch::graph)[0].worst, 0.25);
  EXPECT_EQ(suite.marks(sim::Launch::stream)[0].worst, std::nullopt);
}

TEST(Suite, what_is_wrong_in_it_has_its_line) {
  EXPECT_THAT(suite_failure("marks: ["), HasSubstr("s.yaml:1"));
  EXPECT_THAT(suite_entries_failure("- {name: a}\n"),
              AllOf(HasSubstr("s.yaml:5"), HasSubstr("'kind'")));
  EXPECT_THAT(suite_entries_failure(kTwo + kTwo), HasSubstr("two entries"));
  EXPECT_THAT(suite_entries_failure("- {nmae: a}\n"),
              AllOf(HasSubstr("'nmae'"), HasSubstr("'name'")));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = kTwo;
    return suite_entries_failure(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_THAT(with("calibrate", "chekc"), HasSubstr("calibrate or check"));
  EXPECT_THAT(with("graph", "grpah"), HasSubstr("graph or stream"));
  EXPECT_THAT(with("launch", "to: much, launch"), HasSubstr("'to'"));
  EXPECT_THAT(with("launch", "host: many, launch"), HasSubstr("one or each"));
}

TEST(Suite, nothing_is_fitted_to_rows_that_are_only_looked_at) {
  const std::string check =
      "- {name: b, kind: check, table: y.csv, machine: ring:4, program: q, launch: stream";
  EXPECT_THAT(suite_entries_failure(check + "}\n"), HasSubstr("only for looking at"));
  EXPECT_THAT(suite_entries_failure(kTwo + check + ", calibrate: b}\n"),
              HasSubstr("only for looking"));
  EXPECT_THAT(suite_entries_failure(kTwo + check + ", calibrate: c}\n"), HasSubstr("no entry 'c'"));
}

TEST(Suite, comparisons_name_entries) {
  const std::string comparison = "comparisons:\n- {name: c, first: [a], second: [b]}\n";
  EXPECT_THAT(suite_entries_failure(kTwo + comparison), HasSubstr("no entry 'b'"));
  EXPECT_THAT(suite_entries_failure(kTwo + "comparisons:\n- {name: c, first: [], second: [a]}\n"),
              HasSubstr("'first'"));
}

TEST(Mark, is_met_when_both_errors_are_within) {
  const Summary summary{.n = 3, .median = 0.1, .worst = 0.2};
  EXPECT_TRUE((Mark{0.1, 0.2}).met_by(summary));
  EXPECT_FALSE((Mark{0.09, 0.2}).met_by(summary));
  EXPECT_FALSE((Mark{0.1, 0.19}).met_by(summary));
  EXPECT_TRUE((Mark{}).met_by(summary));
}

TEST(ShippedSuite, every_entry_has_rows_a_machine_and_a_program) {
  const Suite suite = shipped_suite();
  EXPECT_GT(suite.entries.size(), 20u);
  for (const SuiteEntry& entry : suite.entries) {
    SCOPED_TRACE(entry.name);
    const MeasuredTable table = rows_of(entry);
    EXPECT_FALSE(table.rows.empty());
    EXPECT_FALSE(table.notes.empty()) << "figures of others carry their source";
    const machine::Machine machine = machine::load(entry.machine, entry.machine_options);
    EXPECT_TRUE(program::is_built_in(entry.program)) << entry.program;
    for (const MeasuredRow& row : table.rows) EXPECT_LE(row.ranks, machine.ranks());
    // Rows of one entry differ in size and collection, not in what was measured.
    std::set<std::string> kinds;
    for (const MeasuredRow& row : table.rows)
      kinds.insert(std::to_string(row.ranks) + table.cell(row, "op") + table.cell(row, "dtype"));
    EXPECT_EQ(kinds.size(), 1u);
    const bool published = entry.calibrate == "ns3-flow";  // one flow and no more
    EXPECT_GT(rows_of(suite.entry(entry.calibrate)).rows.size(), published ? 0u : 1u);
    EXPECT_TRUE(entry.table.starts_with(std::string(name_of(entry.kind)) + '/'));
  }
}

TEST(ShippedSuite, every_table_that_is_carried_is_used) {
  std::set<std::string> used{"data/measured/calibrate/micro.csv"};  // micro_test.cc
  for (const SuiteEntry& entry : shipped_suite().entries)
    used.insert("data/measured/" + entry.table);
  for (const EmbeddedFile& file : embedded_files()) {
    const bool of_suite = file.path.starts_with("data/measured/calibrate/") ||
                          file.path.starts_with("data/measured/check/");
    if (!of_suite) continue;
    EXPECT_TRUE(used.contains(std::string(file.path))) << file.path;
  }
}

TEST(ShippedSuite, the_default_sample_is_powers_of_four) {
  std::vector<std::int64_t> sample;
  for (std::int64_t kib = 1; kib <= 8192; ++kib)
    if (in_default_sample(KiB(kib))) sample.push_back(kib);
  EXPECT_THAT(sample, ElementsAre(1, 4, 16, 64, 256, 1024, 4096));
}

}  // namespace
}  // namespace hemiola::study
