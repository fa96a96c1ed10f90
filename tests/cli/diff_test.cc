// hemiola diff: two results side by side, and the limit that a CI asks for.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

/// Two runs of two sizes, the second with a longer way to the L2.
class Diff : public testing::Test {
 protected:
  Diff() {
    run("a.json", "--size 4KiB,16KiB");
    run("b.json", "--size 4KiB,16KiB --set gpu.l2.latency=400ns");
  }
  void run(const std::string& file, const std::string& options) const {
    const Outcome outcome = place_.run("run all-reduce/ring --machine ring:4 --no-check --quiet " +
                                       options + " --json " + file);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  /// One message and the exit code of bad input.
  void expect_refused(const std::string& arguments, const std::vector<std::string>& words) const {
    const Outcome outcome = place_.run("diff " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    for (const std::string& word : words)
      EXPECT_TRUE(contains(outcome.err, word)) << word << " in " << outcome.err;
    const std::size_t first = outcome.err.find("error:");
    EXPECT_EQ(outcome.err.find("error:", first + 1), std::string::npos) << outcome.err;
  }

  Workplace place_;
};

TEST_F(Diff, attributes_the_difference_exactly) {
  const Outcome diff = place_.run("diff a.json b.json --json d.json --csv d.csv");
  ASSERT_EQ(diff.code, 0) << diff.err;
  EXPECT_TRUE(contains(diff.out, "# machine  they differ: A ring:4, B ring:4 gpu.l2.latency="))
      << diff.out;
  EXPECT_TRUE(contains(diff.out, " us l2")) << diff.out;
  const Json a = Json::parse(place_.read("a.json")), b = Json::parse(place_.read("b.json"));
  const Json json = Json::parse(place_.read("d.json"));
  ASSERT_EQ(json["differences"].size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& one = json["differences"][i];
    const auto difference = b["results"][i]["time_fs"].get<std::int64_t>() -
                            a["results"][i]["time_fs"].get<std::int64_t>();
    EXPECT_GT(difference, 0);
    EXPECT_EQ(one["difference_fs"], difference);
    std::int64_t sum = 0;
    for (const auto& [reason, change] : one["latest"]["reasons"].items())
      sum += change["difference_fs"].get<std::int64_t>();
    EXPECT_EQ(sum, difference);
  }
  EXPECT_TRUE(contains(place_.read("d.csv"), "4096,,gpu.l2.latency=400ns,"))
      << place_.read("d.csv");
}

TEST_F(Diff, exits_with_5_above_the_limit_and_writes_its_files_all_the_same) {
  const Outcome slower = place_.run("diff a.json b.json --fail-above 2% --json d.json");
  EXPECT_EQ(slower.code, 5);
  EXPECT_TRUE(contains(slower.err, "2 of 2 results take more than 2% longer in B")) << slower.err;
  EXPECT_EQ(Json::parse(place_.read("d.json"))["exceeded"], true);
  EXPECT_EQ(place_.run("diff b.json a.json --fail-above 0%").code, 0);
  EXPECT_EQ(place_.run("diff a.json b.json --fail-above 100000%").code, 0);
  EXPECT_EQ(place_.run("diff a.json b.json").code, 0);
}

TEST_F(Diff, says_that_models_changed_and_holds_no_limit_against_it) {
  Json before = Json::parse(place_.read("a.json"));
  EXPECT_GT(before["models"], 3);
  before["models"] = 3;
  place_.write("before.json", before.dump());
  before.erase("models");
  place_.write("old.json", before.dump());
  EXPECT_TRUE(
      contains(place_.run("diff before.json a.json").out, "# models   they differ: A 3, B "));
  EXPECT_TRUE(contains(place_.run("diff old.json a.json").out, "they differ: A not known, B "));
  EXPECT_EQ(place_.run("diff old.json before.json --json d.json").code, 0);
  EXPECT_EQ(Json::parse(place_.read("d.json"))["unlike"], Json({"models"}));
  expect_refused("before.json a.json --fail-above 2%", {"the models changed", "one version"});
}

TEST_F(Diff, a_limit_is_not_kept_by_results_that_are_not_there) {
  run("c.json", "--size 4KiB");
  const Outcome diff = place_.run("diff a.json c.json --fail-above 2%");
  EXPECT_EQ(diff.code, 2);
  EXPECT_TRUE(contains(diff.out, "# only in A: 16 KiB")) << diff.out;
  EXPECT_TRUE(contains(diff.err, "c.json")) << diff.err;
  EXPECT_TRUE(contains(diff.err, "16 KiB of A")) << diff.err;
  EXPECT_EQ(place_.run("diff c.json a.json --fail-above 2%").code, 0) << "more results are fine";
  EXPECT_EQ(place_.run("diff a.json c.json").code, 0);
}

TEST_F(Diff, quiet_leaves_the_table) {
  const Outcome diff = place_.run("diff a.json b.json --quiet");
  EXPECT_TRUE(contains(diff.out, "  4096 ")) << diff.out;
  EXPECT_FALSE(contains(diff.out, "reason")) << diff.out;
  EXPECT_EQ(diff.err, "");
}

TEST_F(Diff, refuses_what_it_cannot_compare) {
  const std::string text = place_.read("a.json");
  place_.write("cut.json", text.substr(0, text.size() / 2));
  place_.write("text.csv", "size,time\n1,2\n");
  place_.write("empty.json", R"({"schema": "hemiola/1", "command": "hemiola run", "results": []})");
  place_.write("new.json", R"({"schema": "hemiola/2", "results": []})");
  place_.write("table", "size_bytes,time_us\n4096,10\n");
  ASSERT_EQ(place_
                .run("validate table --machine ring:4 --program all-reduce/ring --no-check "
                     "--json v.json")
                .code,
            0);
  expect_refused("a.json none.json", {"none.json", "no such file"});
  expect_refused("a.json cut.json", {"cut.json:", "truncated"});
  expect_refused("a.json text.csv", {"text.csv", "not the JSON of a result"});
  expect_refused("empty.json a.json", {"empty.json", "no results"});
  expect_refused("a.json new.json", {"new.json", "'hemiola/2'", "'hemiola/1'"});
  expect_refused("a.json v.json", {"v.json", "`hemiola validate` wrote"});
  expect_refused("a.json", {"two files are needed"});
  expect_refused("a.json b.json a.json", {"two files are enough"});
  expect_refused("a.json b.json --json none/d.json", {"--json", "none/d.json"});
  expect_refused("a.json b.json --top -1", {"--top", "-1"});
  for (const char* limit : {"''", "2", "-2%", "much", "2%%"})
    expect_refused(std::string("a.json b.json --fail-above ") + limit,
                   {"--fail-above", "2% or 0.5%"});
}

}  // namespace
}  // namespace hemiola::test
