// The same run by several engines.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

std::int64_t time_of(const Workplace& place, const std::string& command,
                     const std::string& engine) {
  const Outcome run =
      place.run("run " + command + " --no-check --quiet --json r --engine " + engine);
  EXPECT_EQ(run.code, 0) << command << ' ' << engine << ": " << run.err;
  if (run.code != 0) return 0;
  return Json::parse(place.read("r"))["results"][0]["time_fs"].get<std::int64_t>();
}

double fluid_over_line(const Workplace& place, const std::string& command) {
  return static_cast<double>(time_of(place, command, "fluid")) /
         static_cast<double>(time_of(place, command, "line"));
}

// Waits of an ideal GPU cost next to nothing, and are simulated all the same.
TEST(Engines, an_ideal_gpu_ends) {
  const Workplace place;
  for (const char* program :
       {"all-reduce/ring", "all-reduce/ring --param protocol=ll", "all-reduce/one-shot"}) {
    const std::string command =
        program + std::string(" --machine switch:8 --size 64KiB --gpu ideal");
    EXPECT_EQ(time_of(place, command, "line"), time_of(place, command, "reference")) << program;
    EXPECT_NEAR(fluid_over_line(place, command), 1, 0.25) << program;
  }
}

// Parts of a chunk that are no whole lines take a request more per instruction, and so more
// headers: without them the flow ended before the bytes of its link could have passed.
TEST(Engines, headers_of_parts_that_are_no_whole_lines_are_counted) {
  const Workplace place;
  EXPECT_NEAR(fluid_over_line(place, "reduce-scatter/direct --machine dgx1-v100 --size 4MiB"), 1,
              0.05);
}

// A copy within a GPU goes at the rate of the engine, and a burst passes a switch once it is whole.
TEST(Engines, copies_take_the_time_of_their_engine) {
  const Workplace place;
  for (const char* size : {"64KiB", "16MiB"}) {
    EXPECT_NEAR(fluid_over_line(place,
                                "all-gather/direct --param realization=copy-engine "
                                "--machine dgx-h100 --size " +
                                    std::string(size)),
                1, 0.06);
  }
}

// Ranks of one program do the same on a machine whose links differ, too: one of them is walked.
TEST(Engines, a_slow_link_counts_in_the_bound_of_bandwidth) {
  const Workplace place;
  const auto bound = [&](const std::string& settings) {
    const Outcome run = place.run(
        "run all-reduce/ring --machine switch:8 --size 64KiB --no-check --quiet --json r " +
        settings);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(place.read("r"))["results"][0]["bound_ns"];
  };
  const Json alike = bound("");
  const Json slow = bound(
      "--set edge.gpu.0.xpu.0:switch.0.switch.0.bandwidth=10GB/s "
      "--set edge.switch.0.switch.0:gpu.3.xpu.0.latency=5us");
  EXPECT_EQ(slow["latency"], alike["latency"]);
  EXPECT_GT(slow["bandwidth"].get<double>(), 10 * alike["bandwidth"].get<double>());
}

// What a workgroup sends to all peers in turn it loads from memory once.
TEST(Engines, what_is_sent_again_comes_from_the_l1) {
  const Workplace place;
  EXPECT_NEAR(fluid_over_line(place, "all-gather/direct --machine dgx-h100 --size 64KiB"), 1, 0.05);
}

// Ports of an ideal GPU take 1 fs for a burst, and a train of 32 took none: "a request comes to a
// stage after its round".
TEST(Sampled, trains_pass_servers_that_take_next_to_nothing) {
  const Workplace place;
  const auto time = [&](const std::string& engine) {
    const Outcome outcome = place.run(
        "run all-to-all/direct --machine clos:2x2x4 --gpu ideal --set "
        "'link.*.bandwidth=12.5GB/s' --no-check --quiet --size 8MiB --json j --engine " +
        engine);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(place.read("j"))["results"][0]["time_ns"].get<double>();
  };
  EXPECT_NEAR(time("sampled") / time("line"), 1, 0.02);
}

}  // namespace
}  // namespace hemiola::test
