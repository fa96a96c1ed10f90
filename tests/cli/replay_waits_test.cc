// Record once, compare ways to wait: hemiola replay as a user runs it.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

constexpr const char* kRun = "run all-reduce/two-shot --machine dgx-h100 --size 64KiB --no-check";
constexpr const char* kReplay =
    "replay rank0.csv --machine dgx-h100 --program all-reduce/two-shot --size 64KiB ";

/// With rank0.csv, of that run, and full.json, its result.
struct Recording : Workplace {
  Recording() {
    const Outcome outcome = run(std::string(kRun) + " --quiet --json full.json --record rank0.csv");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  }
  nlohmann::json results(const std::string& file) const {
    return nlohmann::json::parse(read(file)).at("results");
  }
  Outcome replay(const std::string& options) const { return run(kReplay + options); }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReplayWaits, of_one_recording_make_one_table) {
  const Recording place;
  const Outcome outcome = place.replay(
      "--set gpu.sync.wait=spin,backoff,monitor,syncmon --json out.json --csv out.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json results = place.results("out.json");
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0]["time_fs"], place.results("full.json")[0]["time_fs"])
      << "with recorded answers, all ranks of this program end together";
  const char* const policies[] = {"spin", "backoff", "monitor", "syncmon"};
  for (std::size_t p = 0; p < 4; ++p) {
    const nlohmann::json& result = results[p];
    EXPECT_EQ(result["settings"]["gpu.sync.wait"], policies[p]);
    EXPECT_EQ(result["answers"], p == 0 ? "recorded" : "live");
    EXPECT_EQ(result.contains("live_because"), p != 0);
    EXPECT_TRUE(has(outcome.out, std::string("\n  ") + policies[p])) << outcome.out;
    std::int64_t waited = 0;
    for (const nlohmann::json& wait : result["peer_waits"])
      waited += wait["fs"].get<std::int64_t>();
    EXPECT_EQ(waited, result["attribution"][0]["fs"]["peer"].get<std::int64_t>());
  }
  EXPECT_TRUE(has(outcome.err, "gpu.sync.wait is monitor, and was spin")) << outcome.err;
  EXPECT_TRUE(has(outcome.err, "--answers live treats all rows alike")) << outcome.err;
  const std::string csv = place.read("out.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  EXPECT_TRUE(has(csv, "\nmonitor,65536,")) << csv;
}

TEST(ReplayWaits, take_the_answers_that_are_asked_for) {
  const Recording place;
  const Outcome live = place.replay("--answers live --json live.json");
  EXPECT_EQ(live.code, 0) << live.err;
  EXPECT_FALSE(has(live.err, "note:")) << live.err;
  EXPECT_EQ(place.results("live.json")[0]["answers"], "live");
  EXPECT_EQ(place.replay("--answers recorded --json o.json").code, 0);
  const Outcome forced = place.replay("--answers recorded --set gpu.sync.wait=monitor");
  EXPECT_EQ(forced.code, 2);
  EXPECT_TRUE(has(forced.err, "--answers live works them out anew")) << forced.err;
  EXPECT_TRUE(has(place.replay("--answers none").err, "--answers")) << "a choice";
}

TEST(ReplayDelay, makes_the_rows_of_a_peer_late_and_its_answers_live) {
  const Recording place;
  const auto time_of = [&](const std::string& options) {
    const Outcome outcome = place.replay(options + " --json out.json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return place.results("out.json")[0]["time_fs"].get<std::int64_t>();
  };
  constexpr std::int64_t kMicrosecond = 1'000'000'000;
  const std::int64_t on_time = time_of("--delay 3=0us");
  const std::int64_t late = time_of("--delay 3=20us --output late.csv");
  EXPECT_GT(late, on_time + 19 * kMicrosecond);
  EXPECT_LT(late, on_time + 21 * kMicrosecond);
  const nlohmann::json wait = place.results("out.json")[0]["peer_waits"][0];
  EXPECT_EQ(wait["peer"], 3);
  EXPECT_EQ(wait["kind"], "add");
  EXPECT_EQ(wait["buffer"], "@semaphores");
  EXPECT_GT(wait["fs"].get<std::int64_t>(), 15 * kMicrosecond);
  // The last one decides; when the others' flags come changes the phase of polls only.
  EXPECT_NEAR(static_cast<double>(time_of("--delay 3=20us --delay 5=1us")),
              static_cast<double>(late), kMicrosecond);
  EXPECT_GE(time_of("--delay all=20us"), late);
  const Outcome outcome = place.replay("--delay 3=20us");
  EXPECT_TRUE(has(outcome.err, "answers are live, worked out anew: --delay moves rows"));
  EXPECT_TRUE(has(outcome.out, "flag @semaphores+")) << outcome.out;
  // The saved profile is one whose rows were changed.
  const Outcome saved = place.run(
      "replay late.csv --machine dgx-h100 --program all-reduce/two-shot --size 64KiB --json "
      "o.json");
  EXPECT_EQ(place.results("o.json")[0]["time_fs"], late);
  EXPECT_TRUE(has(saved.err, "rows are not those that were recorded")) << saved.err;
  for (const char* wrong : {"3", "3=5", "x=5us", "8=5us", "0=5us", "3=-1us", "=5us"}) {
    const Outcome refused = place.replay(std::string("--delay ") + wrong);
    EXPECT_EQ(refused.code, 2) << wrong;
    EXPECT_TRUE(has(refused.err, "--delay: error:")) << refused.err;
  }
}

TEST(ReplayRank, is_that_of_the_recording_from_ports_too) {
  const Workplace place;
  const std::string record = std::string(kRun) + " --quiet --json full.json --record-rank 3 ";
  ASSERT_EQ(place.run(record + "--record-at port --record p.json").code, 0);
  const std::string run =
      "replay p.json --machine dgx-h100 --program all-reduce/two-shot --size 64KiB ";
  const Outcome outcome = place.run(run + "--json out.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "rank 3 of 8 is simulated")) << outcome.out;
  EXPECT_EQ(nlohmann::json::parse(place.read("out.json"))["results"][0]["time_fs"],
            nlohmann::json::parse(place.read("full.json"))["results"][0]["time_fs"]);
  const Outcome other = place.run(run + "--rank 0");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(has(other.err, "was recorded at rank 3, not at rank 0")) << other.err;
  place.write("hand.csv",
              "# ranks 8\n# buffer @semaphores 8\nsource,destination,time:us,kind,buffer,value\n"
              "1,0,5,add,@semaphores,1\n");
  const Outcome nobody = place.run(
      "replay hand.csv --machine dgx-h100 --program all-reduce/two-shot --size 64KiB --rank 2");
  EXPECT_EQ(nobody.code, 2);
  EXPECT_TRUE(has(nobody.err, "no row of the profile goes to rank 2")) << nobody.err;
  EXPECT_TRUE(has(nobody.err, "rows go to rank 0")) << nobody.err;
}

TEST(ReplayDescribe, says_what_a_profile_has_to_have_and_writes_one) {
  const Workplace place;
  const std::string program = "all-reduce/nccl --machine dgx-h100 --size 64KiB";
  const Outcome outcome = place.run("replay --describe " + program + " --rank 2 --output rows.csv");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "# ranks 8\n")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "# buffer fifo 0 ")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "credit of connection 0")) << outcome.out;
  const Outcome replayed = place.run("replay rows.csv --program " + program);
  EXPECT_EQ(replayed.code, 0) << replayed.err;
  EXPECT_TRUE(has(replayed.out, "rank 2 of 8 is simulated")) << replayed.out;
  EXPECT_EQ(place.run("replay rows.csv --describe " + program).code, 2);
  place.write("p.csv",
              "# ranks 8\n# buffer fifo 8 1024\nsource,destination,time:us,buffer\n1,0,1,fifo 8\n");
  const Outcome wrong = place.run("replay p.csv --program " + program);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(has(wrong.err, "the program has no buffer 'fifo 8'")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "did you mean")) << wrong.err;
  EXPECT_TRUE(has(wrong.err, "'@semaphores'")) << wrong.err;
}

TEST(ReplayTrace, is_written_with_requests_in_a_window) {
  const Recording place;
  ASSERT_EQ(place.replay("--trace a.pftrace").code, 0);
  ASSERT_EQ(place.replay("--trace b.pftrace --trace-lines 4us:5us --quiet").code, 0);
  EXPECT_TRUE(has(place.read("a.pftrace"), "signal"));
  EXPECT_GT(place.read("b.pftrace").size(), place.read("a.pftrace").size());
  const Outcome several = place.replay("--trace a.pftrace --set gpu.sync.wait=spin,monitor");
  EXPECT_EQ(several.code, 2);
  EXPECT_TRUE(has(several.err, "of one replay, not of several")) << several.err;
}

}  // namespace
}  // namespace hemiola::test
