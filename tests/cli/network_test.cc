// Networks between nodes: routing, slow and failed links (docs/scale_out.md), and --network
// (docs/ns3.md).
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

using Json = nlohmann::json;

std::int64_t exchange_time(const Workplace& place, const std::string& engine,
                           const std::string& settings) {
  const Outcome run = place.run(
      "run all-to-all/direct --machine clos:2x2x4 --gpu ideal --size 256KiB --no-check --quiet "
      "--set link.*.bandwidth=12.5GB/s --set link.*.max_payload=4096B --set "
      "gpu.sync.poll_interval=10ns "
      "--json r --engine " +
      engine + ' ' + settings);
  EXPECT_EQ(run.code, 0) << run.err;
  return Json::parse(place.read("r"))["results"][0]["time_fs"].get<std::int64_t>();
}

TEST(Network, ways_that_meet_by_chance_are_slower_and_packets_on_all_ways_are_not) {
  const Workplace place;
  for (const char* engine : {"fluid", "line"}) {
    const std::int64_t pairs = exchange_time(place, engine, "--set fabric.routing=pairs");
    EXPECT_GT(exchange_time(place, engine, "--set fabric.routing=ecmp"), pairs * 11 / 10) << engine;
    EXPECT_LT(exchange_time(place, engine, "--set fabric.routing=spray"), pairs * 11 / 10)
        << engine;
  }
}

TEST(Network, engines_agree_on_sprayed_messages) {
  const Workplace place;
  const std::int64_t line = exchange_time(place, "line", "--set fabric.routing=spray");
  EXPECT_EQ(line, exchange_time(place, "reference", "--set fabric.routing=spray"));
  EXPECT_NEAR(static_cast<double>(exchange_time(place, "fluid", "--set fabric.routing=spray")) /
                  static_cast<double>(line),
              1, 0.15);
}

TEST(Network, oversubscribed_and_broken_ones_are_slower) {
  const Workplace place;
  for (const char* engine : {"fluid", "line"}) {
    const std::int64_t whole = exchange_time(place, engine, "");
    EXPECT_GT(exchange_time(place, engine, "--set 'edge.leaf.*:spine.*.bandwidth=3.125GB/s'"),
              whole * 2)
        << engine;
    EXPECT_GT(exchange_time(place, engine, "--set 'edge.leaf.*:spine.0.*.failed=true'"), whole)
        << engine;
  }
}

TEST(Network, a_part_that_is_cut_off_is_named) {
  const Workplace place;
  const Outcome run = place.run(
      "run all-gather/ring --machine clos:2x2x2 --size 1MiB --json r --set "
      "'edge.leaf.0.*:spine.*.failed=true'");
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(contains(run.err, "rank 0 has no way to rank 2")) << run.err;
  EXPECT_EQ(place.files(), "");
}

TEST(Network, of_another_simulator_is_refused_with_what_to_do) {
  const Workplace place;
  const std::string run = "run all-reduce/ring --machine clos:2x2x2 --size 1MiB --json r ";
  const Outcome other = place.run(run + "--network ns-2");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "ns-3")) << other.err;
  const Outcome queue = place.run(run + "--network ns-3:nix");
  EXPECT_EQ(queue.code, 2);
  EXPECT_TRUE(contains(queue.err, "'nix'")) << queue.err;
  const Outcome trace = place.run(run + "--network ns-3 --trace t");
  EXPECT_EQ(trace.code, 2);
  EXPECT_TRUE(contains(trace.err, "--network runs the messages")) << trace.err;
  const auto program = std::filesystem::path(HEMIOLA_BINARY).parent_path() / "hemiola-ns3";
  if (!std::filesystem::exists(program)) {
    const Outcome none = place.run(run + "--network ns-3");
    EXPECT_EQ(none.code, 2);
    EXPECT_TRUE(contains(none.err, "tools/test ns3")) << none.err;
  }
  EXPECT_EQ(place.files(), "");
}

}  // namespace
}  // namespace hemiola::test
