// hemiola tune: what it prints, writes and refuses.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

const std::string kPersistent = HEMIOLA_SOURCE_DIR "/examples/kernels/gemm_persistent.py";
const std::string kTune = "tune " + kPersistent +
                          " --plan ag-gemm/swizzle --machine dgx-h100 --ranks 4 --param n=512 "
                          "--param k=256 --configs mine.json --quiet ";
constexpr const char* kMine =
    R"([{"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}, {"BLOCK_M": 512, "BLOCK_N": 64, "BLOCK_K": 64}])";

#if HEMIOLA_KERNELS

TEST(Tune, writes_a_kernel_and_a_plan_for_each_size) {
  const Workplace place;
  place.write("mine.json", kMine);
  const std::string page = HEMIOLA_PAGES ? " --report r.html" : "";
  const Outcome outcome = place.run(
      kTune + "--param m=256,512 --budget 6 -o o.py --emit p.json --json j --csv c" + page);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  for (const char* words : {"# m=256\n", "# m=512\n", "sampled", "cannot be fused",
                            "# best: ", "o_m256.py: ag-gemm/swizzle in "})
    EXPECT_TRUE(contains(outcome.out, words)) << words << '\n' << outcome.out;
  const Json json = Json::parse(place.read("j"));
  ASSERT_EQ(json["buckets"].size(), 2u);
  for (const Json& bucket : json["buckets"]) {
    EXPECT_EQ(bucket["simulations"], 6);
    const Json& winner = bucket["results"][bucket["winner"].get<std::size_t>()];
    const std::string suffix = bucket["bucket"] == "m=256" ? "_m256" : "_m512";
    const std::string blocks = place.read("o" + suffix + ".py");
    EXPECT_TRUE(contains(blocks, "\"BLOCK_M\": 64")) << blocks;
    // The file is what was timed.
    ASSERT_EQ(place
                  .run("run o" + suffix +
                       ".py --machine dgx-h100 --ranks 4 --engine sampled --warmup 1 "
                       "--iterations 1 --no-check --quiet --json t")
                  .code,
              0);
    EXPECT_EQ(Json::parse(place.read("t"))["results"][0]["time_fs"], winner["sampled_fs"]);
  }
  EXPECT_EQ(place.run("check o_m512.py --quiet").code, 0);
  EXPECT_TRUE(contains(place.read("c"), "bucket,point,program,")) << place.read("c");
  if (!HEMIOLA_PAGES) return;
  const std::string html = place.read("r.html");
  for (const char* words : {"Where the time goes, m=256", "What happens when", "slower (%)"})
    EXPECT_TRUE(contains(html, words)) << words;
}

// What is timed is a file, and another kernel's is another one.
TEST(Tune, what_is_known_of_one_kernel_is_not_taken_for_another) {
  const Workplace place;
  place.write("mine.json", kMine);
  const std::string rest = "--param m=512 --budget 2 ";
  const auto times_of = [&](std::string kernel, const std::string& more) {
    std::string command = kTune;
    command.replace(command.find(kPersistent), kPersistent.size(), kernel);
    EXPECT_EQ(place.run(command + rest + more + " --json t").code, 0);
    return Json::parse(place.read("t"))["buckets"][0]["results"];
  };
  const std::string grouped = HEMIOLA_SOURCE_DIR "/examples/kernels/gemm_grouped.py";
  const Json persistent = times_of(kPersistent, "--database rows");
  const Json other = times_of(grouped, "--database rows");
  EXPECT_EQ(other, times_of(grouped, ""));
  EXPECT_NE(other[0]["time_fs"], persistent[0]["time_fs"]);
}

TEST(Tune, goes_on_where_it_was_ended) {
  const Workplace place;
  place.write("mine.json", kMine);
  const std::string rest = "--param m=1024 --budget 24 --all-realizations --json ";
  Running run = place.start(kTune + rest + "part --database rows");
  ASSERT_TRUE(run.wait_until_it_catches_interrupts());
  run.send(SIGINT);
  const Outcome ended = run.wait();
  EXPECT_EQ(ended.code, 128 + SIGINT);
  EXPECT_TRUE(contains(ended.err, "what was simulated is in rows: the same command goes on there"))
      << ended.err;
  ASSERT_EQ(place.run(kTune + rest + "on --database rows").code, 0);
  ASSERT_EQ(place.run(kTune + rest + "whole").code, 0);
  EXPECT_EQ(Json::parse(place.read("on"))["buckets"], Json::parse(place.read("whole"))["buckets"]);
  const Outcome other = place.run(kTune + rest + "on --database rows --launch graph");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err,
                       "rows: error: holds other results: option launch stream, not "
                       "graph"))
      << other.err;
}

TEST(Tune, writes_what_times_its_kernels_and_shows_what_was_measured) {
  const Workplace place;
  place.write("mine.json", kMine);
  ASSERT_EQ(place.run(kTune + "--param m=256 --budget 4 --bench bench").code, 0);
  const Json asked = Json::parse(place.read("bench/schedules.json"));
  ASSERT_EQ(asked["schedules"].size(), 2u);
  EXPECT_EQ(asked["ranks"], 4);
  EXPECT_TRUE(contains(place.read("bench/schedule-2.py"), "def gemm_persistent("));
  EXPECT_TRUE(contains(place.read("bench/bench.py"), "hemiola_rt.load_file"));
  const std::string point = asked["schedules"][0]["text"];
  place.write("times.csv", "what,schedule,time_us\nschedule,\"" + point + "\",20\n");
  const Outcome measured = place.run(kTune + "--param m=256 --budget 4 --measured times.csv");
  ASSERT_EQ(measured.code, 0) << measured.err;
  EXPECT_TRUE(contains(measured.out, "point, measured order")) << measured.out;
  EXPECT_TRUE(contains(measured.out, "20.000")) << measured.out;
}

TEST(Tune, refuses_bad_usage_with_code_2_and_writes_nothing) {
  const Workplace place;
  place.write("mine.json", kMine);
  place.write("plan.json", "{}");
  place.write("bad.json", "[{\"BLOCK_M\": []}]");
  place.write("own.csv", "what,time_us\nsoftware,5\n");
  const std::string before = place.files();
  const auto expect = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = place.run("tune " + arguments + " -o o.py");
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  };
  const std::string on = " --machine dgx-h100 --ranks 4 ";
  const std::string plan = " --plan ag-gemm/swizzle ";
  expect(plan + on, "no kernel is given");
  expect(kPersistent + on, "--plan: error: is missing");
  expect(kPersistent + plan, "--machine: error: ");
  expect(kPersistent + on + "--plan ag-gemm/swizle", "ag-gemm/swizzle");
  expect(kPersistent + on + "--plan plan.json", "is a file, and what is tuned is a template");
  expect(kPersistent + on + plan + "--param tile_m=64",
         "is what a configuration of the kernel says");
  expect(kPersistent + on + plan + "--param spilt=2", "did you mean 'split'?");
  expect(kPersistent + on + plan + "--configs bad.json", "bad.json");
  expect(kPersistent + on + plan + "--measured own.csv", "own.csv: error: a row 'software'");
  expect(kPersistent + on + plan + "--budget 1", "--budget");
  expect(kPersistent + on + plan + "--method best", "--method");
  expect(kPersistent + on + plan + "--param m=1021", "cannot divide");
  expect(kPersistent + on + "--plan ag-gemm/sequence --param m=256 --budget 4",
         "the fusion is the reason");
  EXPECT_EQ(place.files(), before);
}

#endif

}  // namespace
}  // namespace hemiola::test
