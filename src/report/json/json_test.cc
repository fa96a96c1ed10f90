#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "report/report.h"
#include "report/testing/results.h"
#include "report/values/json_text.h"
#include "report/values/numbers.h"

namespace hemiola::report {
namespace {

using nlohmann::json;
using testing::ElementsAre;

const Run kRun{"hemiola run \"a b\"", "dgx-h100", "plan.json", "reference", "stream", std::nullopt};

std::vector<std::string> keys(const json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;  // nlohmann::json sorts them
}

TEST(Json, has_exactly_the_keys_of_the_schema) {
  const json object = json::parse(to_json(kRun, {two_rank_result()}));
  EXPECT_THAT(keys(object), ElementsAre("command", "engine", "machine", "models", "program",
                                        "results", "schema"));
  EXPECT_EQ(object["schema"], "hemiola/1");
  EXPECT_EQ(object["command"], "hemiola run \"a b\"");
  const json& result = object["results"][0];
  EXPECT_THAT(keys(result), ElementsAre("algbw_GBps", "attribution", "bound_ns", "busbw_GBps",
                                        "checked", "counters", "evidence", "ideal_ns", "line_hops",
                                        "links", "peak_rss_bytes", "simulated_ranks", "size_bytes",
                                        "time_fs", "time_ns", "visited_hops", "wall_s"));
  EXPECT_THAT(keys(result["bound_ns"]), ElementsAre("bandwidth", "latency"));
  EXPECT_THAT(keys(result["links"][0]),
              ElementsAre("busy_fs", "from", "max_queue", "payload_bytes", "to", "wire_bytes"));
  EXPECT_THAT(keys(result["attribution"][0]), ElementsAre("fs", "rank"));
  EXPECT_EQ(result["attribution"][0]["fs"].size(), sim::kReasons);
}

TEST(Json, carries_the_values_of_the_result) {
  const json result = json::parse(to_json(kRun, {two_rank_result()}))["results"][0];
  EXPECT_EQ(result["size_bytes"], 1024);
  EXPECT_EQ(result["time_fs"], 12'345'678'901);
  EXPECT_EQ(result["busbw_GBps"], 0.125);
  EXPECT_EQ(result["checked"], "full");
  EXPECT_EQ(result["counters"], json({{"l2.hits", 7}, {"poll.requests", 11}}));
  EXPECT_EQ(result["links"][0]["wire_bytes"], 1152);
  EXPECT_EQ(result["attribution"][1]["rank"], 1);
  EXPECT_EQ(result["attribution"][1]["fs"]["poll"], 345'678'901);
}

TEST(Json, writes_nanoseconds_with_six_decimals) {
  const std::string text = to_json(kRun, {two_rank_result()});
  EXPECT_THAT(text, testing::HasSubstr("\"time_ns\": 12345.678901,"));
  EXPECT_THAT(text, testing::HasSubstr("\"bound_ns\": {\"bandwidth\": 3000.000000, \"latency\": "
                                       "6172.839450},"));
  EXPECT_THAT(text, testing::HasSubstr("\"ideal_ns\": 2000.000000,"));
}

TEST(Json, names_the_settings_that_set_a_result_apart) {
  sim::Result set = two_rank_result();
  set.settings = {{"gpu.l2.size", "25MiB"}, {"program", "all-reduce/\"ring\""}};
  const json results = json::parse(to_json(kRun, {set, two_rank_result()}))["results"];
  EXPECT_EQ(results[0]["settings"],
            json({{"gpu.l2.size", "25MiB"}, {"program", "all-reduce/\"ring\""}}));
  EXPECT_FALSE(results[1].contains("settings"));
}

TEST(Json, attribution_of_each_rank_sums_to_the_time) {
  const json result = json::parse(to_json(kRun, {two_rank_result()}))["results"][0];
  for (const json& rank : result["attribution"]) {
    std::int64_t sum = 0;
    for (const json& fs : rank["fs"]) sum += fs.get<std::int64_t>();
    EXPECT_EQ(sum, result["time_fs"]);
  }
}

TEST(Json, without_volatile_fields_does_not_depend_on_the_host) {
  sim::Result other = two_rank_result();
  other.wall_s = 7;
  other.peak_rss_bytes = 1;
  other.visited_hops = 1;
  EXPECT_EQ(to_json(kRun, {two_rank_result()}, false), to_json(kRun, {other}, false));
  EXPECT_NE(to_json(kRun, {two_rank_result()}), to_json(kRun, {other}));
  const json result = json::parse(to_json(kRun, {other}, false))["results"][0];
  EXPECT_FALSE(result.contains("wall_s"));
  EXPECT_FALSE(result.contains("peak_rss_bytes"));
  EXPECT_FALSE(result.contains("visited_hops"));
}

TEST(Json, of_no_results_and_of_an_empty_result_parses) {
  EXPECT_EQ(json::parse(to_json(kRun, {}))["results"], json::array());
  const json result = json::parse(to_json(kRun, {sim::Result{}, sim::Result{}}))["results"][1];
  EXPECT_EQ(result["links"], json::array());
  EXPECT_EQ(result["counters"], json::object());
}

TEST(Json, escapes_text_and_replaces_what_is_not_utf_8) {
  EXPECT_EQ(json_of("a\"b\\\n"), R"("a\"b\\\n")");
  EXPECT_EQ(json_of("\xff"), "\"\xEF\xBF\xBD\"");
}

TEST(Json, has_no_number_for_infinity) {
  EXPECT_EQ(json_of(1.0 / 0.0), "null");
  EXPECT_EQ(json_of(0.1), "0.1");
}

RC_GTEST_PROP(ExactNanoseconds, read_back_to_the_same_femtoseconds, ()) {
  const auto fs = *rc::gen::inRange<std::int64_t>(0, INT64_MAX);
  const std::string text = exact_ns({fs});
  const std::size_t point = text.find('.');
  RC_ASSERT(text.size() - point == 7u);
  RC_ASSERT(std::stoll(text.substr(0, point) + text.substr(point + 1)) == fs);
}

TEST(Csv, has_a_heading_and_a_line_per_size) {
  sim::Result plain;
  plain.size = {16};
  EXPECT_EQ(
      to_csv(kRun, {two_rank_result(), plain}),
      "size_bytes,count,type,redop,time_ns,algbw_GBps,busbw_GBps,bound_ns,percent_of_bound,checked,"
      "line_hops,noc_ns,l2_ns,msc_ns,hbm_ns,io_ns,link_ns,switch_ns,issue_ns,nic_ns,launch_ns,"
      "dispatch_ns,compute_ns,barrier_ns,l1_ns,dma_ns,proxy_ns,poll_ns,fence_ns,software_ns,peer_"
      "ns,"
      "skew_ns,"
      "finished_ns\n"
      "1024,256,-,-,12345.678901,0.0829,0.125,6172.839450,50.0,full,1234,0.000000,0.000000,"
      "0.000000,0.000000,0.000000,8000.000000,0.000000,0.000000,0.000000,4000.000000,0.000000,"
      "0.000000,0.000000,0.000000,0.000000,0.000000,345.678901,0.000000,0.000000,0.000000,"
      "0.000000,0.000000\n"
      "16,0,-,-,0.000000,0,0,0.000000,-,skipped,0,0.000000,0.000000,0.000000,0.000000,0.000000,"
      "0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,"
      "0.000000,0.000000,0.000000,0.000000,0.000000,0.000000,0.000000\n");
}

TEST(Csv, has_a_column_for_each_setting_of_any_result) {
  sim::Result plain;
  sim::Result first = plain;
  first.settings = {{"link.*.latency", "1us"}};
  sim::Result second = plain;
  second.settings = {{"gpu.l2.size", "25MiB"}, {"program", "a,\"b\""}};
  const std::string text = to_csv(kRun, {first, second, plain});
  EXPECT_THAT(text, testing::HasSubstr(",finished_ns,gpu.l2.size,link.*.latency,program\n"));
  EXPECT_THAT(text, testing::HasSubstr(",0.000000,,1us,\n"));
  EXPECT_THAT(text, testing::HasSubstr(",0.000000,25MiB,,\"a,\"\"b\"\"\"\n"));
  EXPECT_THAT(text, testing::EndsWith(",0.000000,,,\n"));
}

}  // namespace
}  // namespace hemiola::report
