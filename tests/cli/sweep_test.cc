// hemiola sweep as a user runs it: killed, resumed, split and joined.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "database.h"
#include "program.h"

namespace hemiola::test {
namespace {

/// Many points, none of which takes long; those of 1 MiB give time to send a signal.
constexpr const char* kSweep =
    "machine: dgx-h100\nranks: [4, 8]\nprogram: [all-reduce/ring, all-gather/ring]\n"
    "size: [4KiB, 16KiB, 100B, 1MiB]\nlaunch: [stream, graph]\nskew: '0ns,2us'\n"
    "check: false\n";
constexpr int kPoints = 32;

/// All that is in a database, table by table in the order of their keys.
std::string dump_of_sweep(const std::string& file) {
  return dump(file, {"SELECT * FROM meta ORDER BY key", "SELECT * FROM inputs ORDER BY name",
                     "SELECT * FROM points ORDER BY point"});
}
int points(const std::string& file) {
  return count_rows(file, "points");
}
int wait_for_more(const std::string& file, int before) {
  return wait_for_more_rows(file, "points", before);
}

TEST(Sweep, killed_again_and_again_it_ends_with_the_contents_of_one_that_was_not) {
  const Workplace place;
  place.write("sweep.yaml", kSweep);
  EXPECT_EQ(place.run("sweep sweep.yaml --output whole").code, 2) << "100 B are refused";
  const std::string whole = dump_of_sweep(place.path("whole"));
  ASSERT_EQ(points(place.path("whole")), kPoints);
  int killed = 0;
  for (int before = 0; killed < 3 && before < kPoints;) {
    Running sweep = place.start("sweep sweep.yaml --output part --threads 2");
    // Killed once it has come on, in the middle of whatever it does then.
    before = wait_for_more(place.path("part"), before);
    sweep.send(SIGKILL);
    if (sweep.wait().code == 128 + SIGKILL && before < kPoints) ++killed;
  }
  EXPECT_GT(killed, 0);
  const Outcome last = place.run("sweep sweep.yaml --output part --threads 2");
  EXPECT_EQ(last.code, 2) << "failures of points are said again";
  EXPECT_TRUE(contains(last.out, "refused: ")) << last.out;
  EXPECT_EQ(dump_of_sweep(place.path("part")), whole);
  EXPECT_EQ(place.files(), "part sweep.yaml whole ");
}

TEST(Sweep, interrupted_it_keeps_what_is_done_and_goes_on) {
  const Workplace place;
  place.write("sweep.yaml", kSweep);
  place.run("sweep sweep.yaml --output whole");
  Running sweep = place.start("sweep sweep.yaml --output part --json part.json --csv part.csv");
  ASSERT_TRUE(sweep.wait_until_it_catches_interrupts());
  wait_for_more(place.path("part"), 0);
  sweep.send(SIGINT);
  const Outcome outcome = sweep.wait();
  EXPECT_EQ(outcome.code, 128 + SIGINT);
  EXPECT_TRUE(contains(outcome.err, "of 32 points are done")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "what is done is in part: the same command goes on there"));
  EXPECT_EQ(place.files(), "part sweep.yaml whole ");
  EXPECT_LT(points(place.path("part")), kPoints);
  place.run("sweep sweep.yaml --output part");
  EXPECT_EQ(dump_of_sweep(place.path("part")), dump_of_sweep(place.path("whole")));
}

TEST(Sweep, split_and_joined_it_is_the_same_file) {
  const Workplace place;
  place.write("sweep.yaml", kSweep);
  place.run("sweep sweep.yaml --output whole");
  const Outcome first = place.run("sweep sweep.yaml --shard 1/2 --output one");
  EXPECT_TRUE(contains(first.out, "one: 16 of 32 points, shard 1/2")) << first.out;
  place.run("sweep sweep.yaml --shard 2/2 --output two");
  EXPECT_EQ(place.run("sweep --merge one two --output all").code, 2);
  EXPECT_EQ(dump_of_sweep(place.path("all")), dump_of_sweep(place.path("whole")));
  EXPECT_TRUE(contains(place.run("sweep sweep.yaml --shard 2/2 --output one").err,
                       "one: error: holds shard 1/2 of this sweep, not 2/2"));
  EXPECT_TRUE(
      contains(place.run("sweep --merge one one --output again").err, "point 0 is in one too"));
}

TEST(Sweep, prints_a_table_and_writes_json_and_csv) {
  const Workplace place;
  place.write("sweep.yaml",
              "machine: ring:2\nprogram: [all-reduce/ring, all-gather/ring]\nsize: 1KiB\n");
  const Outcome outcome = place.run("sweep sweep.yaml --output rows --json j --csv c");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "# machine  ring:2")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "program ")) << "programs differ: a column";
  const auto json = nlohmann::json::parse(place.read("j"));
  ASSERT_EQ(json["points"].size(), 2u);
  const auto& point = json["points"][1];
  EXPECT_EQ(point["program"], "all-gather/ring");
  const Outcome run =
      place.run("run all-gather/ring --machine ring:2 --size 1KiB --json run --quiet");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto single = nlohmann::json::parse(place.read("run"))["results"][0];
  for (const char* key : {"time_fs", "busbw_GBps", "line_hops", "counters", "bound_ns", "ideal_ns"})
    EXPECT_EQ(point[key], single[key]) << key;
  const std::string csv = place.read("c");
  EXPECT_TRUE(
      contains(csv, "point,machine,gpu,set,ranks,program,param,engine,launch,skew,size_bytes"));
  EXPECT_TRUE(contains(csv, "\n1,ring:2,,,,all-gather/ring,,")) << csv;
}

TEST(Sweep, refuses_bad_usage_with_code_2) {
  const Workplace place;
  place.write("sweep.yaml", "machine: ring:2\nprogram: all-reduce/ring\nsize: 1KiB\n");
  const auto expect = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = place.run("sweep " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  };
  expect("sweep.yaml", "--output: error: no database is given");
  expect("--output x", "no sweep is given");
  expect("sweep.yaml sweep.yaml --output x", "more than one sweep is given");
  expect("absent.yaml --output x", "absent.yaml: error: no such file");
  expect("sweep.yaml --output x --shard 3/2",
         "--shard: error: '3' is not a whole number from 1 to 2");
  expect("sweep.yaml --output x --shard 1", "--shard: error: '1' is not a shard");
  expect("sweep.yaml --output x --threads 0", "--threads: error: ");
  expect("sweep.yaml --output nowhere/x", "--output: error: ");
  expect("--merge --output x", "no database is given to merge");
  expect("--merge absent --output x", "absent: error: cannot be opened");
  EXPECT_EQ(place.files(), "sweep.yaml ") << "nothing was created";
  expect("sweep.yaml --output sweep.yaml", "sweep.yaml: error: is not a database");
}

}  // namespace
}  // namespace hemiola::test
