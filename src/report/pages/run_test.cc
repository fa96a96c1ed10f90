// The page of a run: which blocks there are, and what is in them.
#include "report/run_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "report/pages/run_blocks.h"
#include "report/testing/results.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Run kPageRun{
    "hemiola run plan.json", "dgx-h100", "plan.json", "line", "stream", std::nullopt};

sim::Result result_of(Bytes size, Time time) {
  sim::Result result = two_rank_result();
  result.size = size;
  result.time = time;
  return result;
}

template <typename Kind>
std::vector<Kind> blocks_of(const page::Page& page) {
  std::vector<Kind> found;
  for (const page::Block& block : page.blocks)
    if (const Kind* one = std::get_if<Kind>(&block)) found.push_back(*one);
  return found;
}

TEST(RunPage, of_one_result_has_its_table_ranks_reasons_and_links) {
  const page::Page page = run_page(kPageRun, {two_rank_result()}, {});
  EXPECT_EQ(page.title, "plan.json on dgx-h100");
  EXPECT_EQ(page.subtitle, "hemiola run plan.json");
  EXPECT_THAT(page.facts, Contains(testing::Pair("time", "12.346 us")));
  const auto tables = blocks_of<page::Table>(page);
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_THAT(tables[0].rows, ElementsAre(ElementsAre("1024", "256", "-", "-", "12.346", "0.08",
                                                      "0.12", "6.173", "50.0", "full")));
  EXPECT_EQ(tables[1].rows.size(), 3U);  // launch, link, poll of rank 1
  EXPECT_THAT(tables[1].rows[0], Contains("8000.000000"));
  EXPECT_EQ(tables[2].rows.size(), 1U);
  const auto bars = blocks_of<page::Bars>(page);
  ASSERT_EQ(bars.size(), 1U);
  ASSERT_EQ(bars[0].rows.size(), 2U);  // ranks that differ
  double sum = 0;
  for (const page::Bars::Part& part : bars[0].rows[1].parts) sum += part.value;
  EXPECT_NEAR(sum, 12.345678901, 1e-9);
  EXPECT_THAT(blocks_of<page::Curves>(page), IsEmpty());
}

TEST(RunPage, of_several_sizes_has_a_row_each_and_curves) {
  std::vector<sim::Result> results{result_of(KiB(1), Time::from_us(20)),
                                   result_of(KiB(4), Time::from_us(30)),
                                   result_of(KiB(16), Time::from_us(50))};
  const page::Page page = run_page(kPageRun, results, {.no_timeline = "Of one run."});
  EXPECT_EQ(blocks_of<page::Table>(page)[0].rows.size(), 3U);
  const auto curves = blocks_of<page::Curves>(page);
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_THAT(
      curves[1].series[0].points,
      ElementsAre(testing::Pair(1024, 20), testing::Pair(4096, 30), testing::Pair(16384, 50)));
  EXPECT_EQ(curves[1].series[1].name, "bound");
  const auto bars = blocks_of<page::Bars>(page);
  ASSERT_EQ(bars.size(), 1U);
  EXPECT_TRUE(bars[0].shares);
  EXPECT_EQ(bars[0].rows[1].label, "4 KiB");
  EXPECT_THAT(blocks_of<page::Text>(page).back().paragraphs, ElementsAre("Of one run."));
}

TEST(RunPage, settings_have_columns_and_curves_of_their_own) {
  std::vector<sim::Result> results;
  for (const char* value : {"25MiB", "50MiB"}) {
    for (const Bytes size : {KiB(1), KiB(4), KiB(16)}) {
      results.push_back(result_of(size, Time::from_us(20)));
      results.back().settings = {{"gpu.l2.size", value}};
    }
  }
  const page::Page page = run_page(kPageRun, results, {});
  const page::Table table = blocks_of<page::Table>(page)[0];
  EXPECT_EQ(table.columns[0].name, "gpu.l2.size");
  EXPECT_EQ(table.rows[5][0], "50MiB");
  EXPECT_EQ(blocks_of<page::Curves>(page)[0].series[1].name, "gpu.l2.size=50MiB");
  EXPECT_EQ(blocks_of<page::Bars>(page)[0].rows[3].label, "1 KiB, gpu.l2.size=50MiB");
}

TEST(RunPage, of_a_job_has_its_launches) {
  sim::Result result = two_rank_result();
  sim::LaunchResult gather{"gather", "all-gather/direct", {0, 1}, KiB(4), {}, Time::from_us(10)};
  gather.attribution = attribution({{sim::Reason::link, Time::from_us(10).fs}});
  gather.alone = Time::from_us(8);
  gather.alone_attribution = attribution({{sim::Reason::link, Time::from_us(8).fs}});
  gather.slowed_by = {{"product", Time::from_us(5), Time::from_us(2)}};
  result.launches = {gather};
  const page::Page page = run_page(kPageRun, {result}, {});
  EXPECT_THAT(blocks_of<page::Table>(page)[0].rows,
              ElementsAre(ElementsAre("gather", "all-gather/direct", "0-1", "4096", "0.000",
                                      "10.000", "10.000", "8.000")));
  const page::Timelines::Track track = blocks_of<page::Timelines>(page)[0].panels[0].tracks[0];
  EXPECT_EQ(track.name, "gather");
  EXPECT_EQ(track.spans[0].end, Time::from_us(10));
  EXPECT_THAT(blocks_of<page::Text>(page)[1].paragraphs[0],
              HasSubstr("gather is 2.000 us slower than alone"));
  EXPECT_EQ(blocks_of<page::Bars>(page)[0].rows[1].label, "gather, alone");
}

TEST(RunPage, links_are_busy_by_share_of_all_repetitions) {
  sim::Result result = two_rank_result();
  result.time = Time::from_us(10);
  result.links = {{"d.gpu.10", "d.sw.0", 0, "nvlink4", 1, 1, 1, Time::from_us(10), 1},
                  {"d.gpu.10", "d.sw.0", 1, "nvlink4", 1, 1, 1, Time::from_us(5), 1},
                  {"d.sw.0", "d.gpu.2", 0, "nvlink4", 1, 1, 1, Time::from_us(4), 1}};
  const std::vector<page::Block> blocks = link_blocks(result, 2);
  const auto& map = std::get<page::HeatMap>(blocks[0]);
  EXPECT_THAT(map.rows, ElementsAre("gpu.10", "sw.0"));
  EXPECT_THAT(map.columns, ElementsAre("gpu.2", "sw.0"));
  EXPECT_FALSE(map.values[0][0].has_value());
  EXPECT_DOUBLE_EQ(map.values[0][1].value(), 37.5);
  EXPECT_DOUBLE_EQ(map.values[1][0].value(), 20);
  result.links.clear();
  EXPECT_THAT(link_blocks(result, 1), IsEmpty());
}

TEST(RunPage, sizes_read_as_they_are_typed) {
  EXPECT_EQ(to_string(Bytes{1000}), "1000 B");
  EXPECT_EQ(to_string(KiB(64)), "64 KiB");
  EXPECT_EQ(to_string(MiB(1024)), "1 GiB");
}

}  // namespace
}  // namespace hemiola::report
