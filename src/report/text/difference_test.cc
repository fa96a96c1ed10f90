#include "report/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "report/report.h"
#include "report/testing/results.h"

namespace hemiola::report {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Two ranks; B takes 1.8 us less: 3 us less on links, 1.2 us more to poll.
sim::Result faster() {
  sim::Result result = two_rank_result();
  result.time -= Time{1'800'000'000};
  result.attribution[0][static_cast<std::size_t>(sim::Reason::finished)] -= 1'800'000'000;
  result.attribution[1][static_cast<std::size_t>(sim::Reason::link)] -= 3'000'000'000;
  result.attribution[1][static_cast<std::size_t>(sim::Reason::poll)] += 1'200'000'000;
  result.counters["poll.requests"] = 33;
  result.links[0].busy = {1'560'000};
  return result;
}

/// Through the files, as the command line does it.
study::Difference difference_of(const std::vector<sim::Result>& a,
                                const std::vector<sim::Result>& b) {
  const auto read = [](const std::string& machine, const std::vector<sim::Result>& results) {
    const Run run{.command = "hemiola run p", .machine = machine, .program = "p", .engine = "line"};
    return study::read_results(to_json(run, results), machine + ".json");
  };
  return study::compare(read("a", a), read("b", b));
}

std::string page(const study::Difference& difference, const DifferenceView& view = {}) {
  std::ostringstream out;
  print_difference(out, difference, view);
  return out.str();
}

TEST(DifferencePage, says_where_the_time_went) {
  const std::string text = page(difference_of({two_rank_result()}, {faster()}));
  EXPECT_THAT(text, HasSubstr("# machine  they differ: A a, B b\n"));
  EXPECT_THAT(text, HasSubstr("# program  p\n"));
  EXPECT_THAT(text, ContainsRegex("  1024  12.346  10.546  -1.800  -14.58  -3.000 us link, "
                                  "\\+1.200 us poll; rank 1\n"));
  EXPECT_THAT(text, ContainsRegex("#   link +8000.000000 +5000.000000 +-3000.000000\n"));
  EXPECT_THAT(text, ContainsRegex("#   sum +12345.678901 +10545.678901 +-1800.000000\n"));
  EXPECT_THAT(text, ContainsRegex("#   a +b +0.0026 +0.0016 +-0.0010 +\\+0\n"));
  EXPECT_THAT(text, ContainsRegex("#   poll.requests +11 +33 +\\+22\n"));
  EXPECT_THAT(text, ContainsRegex("#   rank 1 +-3.000 us link, \\+1.200 us poll\n"));
}

TEST(DifferencePage, compares_times_where_there_is_no_attribution) {
  sim::Result bare = two_rank_result();
  bare.attribution.clear();
  bare.checked = "partial";
  const study::Difference difference = difference_of({bare}, {faster()});
  const std::string text = page(difference);
  EXPECT_THAT(text, ContainsRegex("  1024  12.346  10.546  -1.800  -14.58  no attribution to"));
  EXPECT_THAT(text, HasSubstr("# checked: partial in A, full in B\n"));
  EXPECT_THAT(text, Not(HasSubstr("# ranks")));
  EXPECT_THAT(difference_csv(difference, {}), ::testing::EndsWith(",,,\n"));
  const auto json = nlohmann::json::parse(difference_json("", difference, {}));
  EXPECT_TRUE(json["differences"][0]["latest"].is_null());
}

TEST(DifferencePage, lists_ranks_that_moved_alike_once) {
  sim::Result a = two_rank_result(), b = faster();
  for (sim::Result* result : {&a, &b}) result->attribution.resize(5, result->attribution[1]);
  EXPECT_THAT(page(difference_of({a}, {b})),
              ContainsRegex("of the 5 ranks whose time went elsewhere, those that moved most:\n"
                            "#   ranks 1-4  -3.000 us link, \\+1.200 us poll\n"
                            "#   rank 0     -1.800 us finished\n"));
}

TEST(DifferencePage, has_details_of_as_many_results_as_asked_for) {
  sim::Result large = two_rank_result();
  large.size = KiB(64);
  const study::Difference difference = difference_of({two_rank_result(), large}, {faster(), large});
  EXPECT_THAT(page(difference), Not(HasSubstr("# 64 KiB")));
  EXPECT_THAT(page(difference), HasSubstr("# 1 KiB: -1800.000000 ns"));
  const std::string all = page(difference, {.details = Details::all});
  EXPECT_THAT(all, HasSubstr("# 64 KiB: 0.000000 ns"));
  EXPECT_THAT(all, HasSubstr("# time, attribution, links and counters are the same"));
  EXPECT_THAT(page(difference, {.details = Details::none}), Not(HasSubstr("# 1 KiB")));
  EXPECT_THAT(page(difference, {.top = 0}), Not(HasSubstr("poll.requests")));
}

TEST(DifferencePage, names_results_of_one_file) {
  sim::Result large = two_rank_result();
  large.size = KiB(64);
  large.settings = {{"x", "1"}};
  const std::string text = page(difference_of({two_rank_result(), large}, {two_rank_result()}));
  EXPECT_THAT(text, HasSubstr("# only in A: 64 KiB, x=1\n"));
  EXPECT_THAT(text, Not(HasSubstr("only in B")));
}

TEST(DifferencePage, says_whether_the_limit_is_kept) {
  const study::Difference slower = difference_of({faster()}, {two_rank_result()});
  const study::Limit limit = study::read_limit("2%", {});
  EXPECT_THAT(page(slower, {.limit = limit}),
              HasSubstr("# 1 of 1 results takes more than 2% longer in B: 1 KiB (+17.07 %)\n"));
  const study::Difference quicker = difference_of({two_rank_result()}, {faster()});
  EXPECT_EQ(exceeded_text(quicker, limit), "");
  EXPECT_THAT(page(quicker, {.limit = limit}),
              HasSubstr("# none of 1 results takes more than 2% longer in B\n"));
}

TEST(DifferenceFiles, hold_exact_figures) {
  const study::Difference difference = difference_of({faster()}, {two_rank_result()});
  const study::Limit limit = study::read_limit("2%", {});
  const auto json = nlohmann::json::parse(difference_json("hemiola diff", difference, limit));
  EXPECT_EQ(json["schema"], "hemiola/1");
  EXPECT_EQ(json["unlike"], nlohmann::json({"machine"}));
  EXPECT_EQ(json["exceeded"], true);
  const auto& one = json["differences"][0];
  EXPECT_EQ(one["difference_fs"], 1'800'000'000);
  EXPECT_EQ(one["exceeded"], true);
  EXPECT_EQ(one["latest"]["reasons"]["link"]["difference_fs"], 3'000'000'000);
  EXPECT_EQ(one["links"][0]["b_busy_fs"], 2'560'000);
  EXPECT_EQ(one["counters"][0]["difference"], -22);
  const std::string csv = difference_csv(difference, {});
  EXPECT_THAT(csv, StartsWith("size_bytes,a_settings,b_settings,a_time_ns,b_time_ns,difference_ns,"
                              "relative,exceeded,a_rank,b_rank,barrier_ns,"));
  EXPECT_THAT(csv, HasSubstr("\n1024,,,10545.678901,12345.678901,1800.000000,0."));
  EXPECT_FALSE(nlohmann::json::parse(difference_json("", difference, {})).contains("exceeded"));
}

}  // namespace
}  // namespace hemiola::report
