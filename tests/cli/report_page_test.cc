// hemiola run --report: a page, or one message why there is none.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

#define SKIP_WITHOUT_PAGES() \
  if (!HEMIOLA_PAGES) GTEST_SKIP() << "built without HEMIOLA_REPORT"

/// What the page is made of.
Json model_of(const std::string& html) {
  const std::string begin = "id=\"model\">";
  const std::size_t from = html.find(begin);
  if (from == std::string::npos) return {};
  const std::size_t to = html.find("</script", from);
  return Json::parse(html.substr(from + begin.size(), to - from - begin.size()));
}

/// The first block of a type with words in its heading; null where there is none.
Json block_of(const Json& model, const std::string& type, const std::string& heading = {}) {
  for (const Json& block : model["blocks"])
    if (block["type"] == type && contains(block["heading"], heading)) return block;
  return {};
}

TEST(ReportPage, of_one_run_has_table_timeline_and_links) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  const Outcome run =
      place.run("run all-reduce/ring --machine ring:4 --size 64KiB --quiet --report page.html");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json model = model_of(place.read("page.html"));
  EXPECT_EQ(model["title"], "all-reduce/ring on ring:4");
  EXPECT_EQ(model["subtitle"],
            "hemiola run all-reduce/ring --machine ring:4 --size 64KiB --quiet --report page.html");
  const Json results = block_of(model, "table", "Results");
  ASSERT_EQ(results["rows"].size(), 1U);
  // The time is that of the printed table.
  EXPECT_TRUE(contains(run.out, std::string(results["rows"][0][4]))) << run.out;
  const Json when = block_of(model, "timelines");
  ASSERT_FALSE(when.is_null());
  EXPECT_EQ(when["panels"][0]["name"], "streams");
  EXPECT_EQ(when["panels"][0]["tracks"].size(), 4U);
  EXPECT_EQ(block_of(model, "heat_map")["rows"].size(), 4U);
}

TEST(ReportPage, of_several_sizes_and_settings_has_a_row_each) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  ASSERT_EQ(place
                .run("run all-gather/direct --machine switch:4 --size 64KiB:1MiB:x4 --engine "
                     "fluid --set gpu.l2.size=25MiB,50MiB --quiet --report page.html")
                .code,
            0);
  const Json model = model_of(place.read("page.html"));
  EXPECT_EQ(block_of(model, "table", "Results")["rows"].size(), 6U);
  EXPECT_EQ(block_of(model, "curves", "Time")["series"].size(), 2U);
  EXPECT_EQ(block_of(model, "bars")["rows"].size(), 6U);
  EXPECT_TRUE(block_of(model, "timelines").is_null());
  EXPECT_FALSE(block_of(model, "text", "What happened when").is_null());
}

TEST(ReportPage, of_a_job_has_its_launches) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  place.write("job.yaml",
              "launches:\n"
              "  - {name: gather, run: all-gather/direct, size: 64KiB}\n"
              "  - {name: work, compute: {time: 5us}, stream: compute}\n");
  const Outcome run = place.run("run job.yaml --machine switch:4 --quiet --report page.html");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json model = model_of(place.read("page.html"));
  EXPECT_EQ(block_of(model, "table", "Launches")["rows"].size(), 2U);
  EXPECT_EQ(block_of(model, "timelines", "Launches")["panels"][0]["tracks"].size(), 2U);
  EXPECT_FALSE(block_of(model, "timelines", "What happened when").is_null());
}

TEST(ReportPage, of_the_engine_sampled_says_why_there_is_no_timeline) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  ASSERT_EQ(place
                .run("run all-reduce/ring --machine ring:4 --size 64KiB --engine sampled --quiet "
                     "--report page.html")
                .code,
            0);
  const Json model = model_of(place.read("page.html"));
  EXPECT_TRUE(block_of(model, "timelines").is_null());
  const Json text = block_of(model, "text", "What happened when");
  EXPECT_TRUE(contains(text["paragraphs"][0], "sampled"));
}

TEST(ReportPage, of_a_check_has_verdicts_and_the_steps_to_the_error) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  ASSERT_EQ(
      place.run("check all-reduce/ring --ranks 4 --size 64KiB --quiet --report page.html").code, 0);
  Json model = model_of(place.read("page.html"));
  EXPECT_EQ(block_of(model, "table", "Verdicts")["rows"][0][2], "proven");
  place.write("wrong.xml",
              "<algo name='wrong' proto='Simple' nchannels='1' nchunksperloop='2' ngpus='2' "
              "coll='allgather' inplace='0'>"
              "<gpu id='0' i_chunks='1' o_chunks='2' s_chunks='0'/>"
              "<gpu id='1' i_chunks='1' o_chunks='2' s_chunks='0'/></algo>");
  const Outcome wrong = place.run("check wrong.xml --quiet --report page.html");
  ASSERT_EQ(wrong.code, 3) << wrong.out << wrong.err;
  model = model_of(place.read("page.html"));
  EXPECT_EQ(block_of(model, "table", "Verdicts")["rows"][0][2], "wrong");
  EXPECT_FALSE(block_of(model, "table", "What goes wrong")["rows"].empty());
  EXPECT_EQ(place.run("check all-reduce --ranks 4 --size 64KiB --quiet --report page.html").code, 0)
      << "built-ins that need a machine are left out";
}

TEST(ReportPage, of_diff_replay_and_validate_have_what_they_print) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  const std::string run = "run all-reduce/ring --machine ring:4 --size 64KiB --quiet --json ";
  ASSERT_EQ(place.run(run + "a.json --record rank0.csv").code, 0);
  ASSERT_EQ(place.run(run + "b.json --set link.*.latency=2us").code, 0);
  ASSERT_EQ(place.run("diff a.json b.json --report page.html").code, 0);
  Json model = model_of(place.read("page.html"));
  EXPECT_EQ(block_of(model, "table", "Results")["rows"].size(), 1U);
  EXPECT_EQ(block_of(model, "bars")["rows"].size(), 2U);

  const Outcome replay = place.run(
      "replay rank0.csv --machine ring:4 --program all-reduce/ring --size 64KiB --quiet --set "
      "gpu.sync.wait=spin,monitor --report page.html");
  ASSERT_EQ(replay.code, 0) << replay.err;
  model = model_of(place.read("page.html"));
  const Json results = block_of(model, "table", "Results");
  ASSERT_EQ(results["rows"].size(), 2U);
  EXPECT_TRUE(contains(replay.out, std::string(results["rows"][1][1]))) << replay.out;
  EXPECT_FALSE(block_of(model, "bars", "Who was waited for").is_null());

  place.write("times.csv", "size_bytes,time_us\n65536,30\n131072,40\n");
  ASSERT_EQ(place
                .run("validate times.csv --machine ring:4 --program all-reduce/ring --quiet "
                     "--report page.html")
                .code,
            0);
  model = model_of(place.read("page.html"));
  EXPECT_EQ(block_of(model, "curves", "time by size")["series"].size(), 2U);
  EXPECT_EQ(block_of(model, "table", "times.csv")["rows"].size(), 2U);
}

TEST(ReportPage, is_the_same_twice) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  const std::string run =
      "run all-reduce/ring --machine ring:4 --size 16KiB --quiet --report page.html";
  ASSERT_EQ(place.run(run).code, 0);
  const std::string first = place.read("page.html");
  ASSERT_EQ(place.run(run).code, 0);
  EXPECT_EQ(first, place.read("page.html"));
}

TEST(ReportPage, a_place_that_is_not_there_is_said_before_the_run) {
  const Outcome run =
      Workplace().run("run all-reduce/ring --machine ring:4 --size 1KiB --report no/page.html");
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(contains(run.err, "--report")) << run.err;
  EXPECT_EQ(run.out, "");
}

TEST(ReportPage, is_refused_by_a_build_that_has_none) {
  if (HEMIOLA_PAGES) GTEST_SKIP() << "built with HEMIOLA_REPORT";
  const Workplace place;
  const Outcome run =
      place.run("run all-reduce/ring --machine ring:4 --size 1KiB --report page.html");
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(contains(run.err, "HEMIOLA_REPORT")) << run.err;
  EXPECT_EQ(place.files(), "");
}

TEST(ReportPage, of_a_machine_draws_it) {
  SKIP_WITHOUT_PAGES();
  const Workplace place;
  const Outcome shown = place.run("machine show dgx-h100:16 --quiet --graph html -o page.html");
  ASSERT_EQ(shown.code, 0) << shown.err;
  const Json model = model_of(place.read("page.html"));
  EXPECT_EQ(model["title"], "dgx-h100:16");
  EXPECT_GT(block_of(model, "graph")["edges"].size(), 40U);
  EXPECT_FALSE(block_of(model, "table", "Switches").is_null());
}

TEST(ReportPage, of_a_machine_is_the_only_graph_and_the_only_file) {
  const Workplace place;
  const Outcome dot = place.run("machine show ring:4 --graph dot -o m.html");
  EXPECT_EQ(dot.code, 2);
  EXPECT_TRUE(contains(dot.err, "dot") && contains(dot.err, "html")) << dot.err;
  const Outcome table = place.run("machine show ring:4 -o m.html");
  EXPECT_EQ(table.code, 2);
  EXPECT_TRUE(contains(table.err, "--graph html")) << table.err;
  EXPECT_EQ(place.files(), "");
}

}  // namespace
}  // namespace hemiola::test
