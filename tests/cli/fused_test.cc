// Fused kernels as a user runs them: proven, run on data, timed, recorded and replayed, refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

nlohmann::json result_of(const std::string& json) {
  return nlohmann::json::parse(json).at("results").at(0);
}

TEST(Fused, kernels_are_proven_and_right_on_data) {
  const Workplace place;
  for (const std::string kernel :
       {"gemv-ar/fused --param m=128 --param k=64", "gemv-ar/unfused --param m=128 --param k=64",
        "gemm-a2a/fused --param m=512 --param n=128 --param k=64",
        "embedding-a2a/fused --param batch=64 --param rows=64 --param dim=8"}) {
    const Outcome check =
        place.run("check " + kernel + " --ranks 4 --data --rounds 2 --param dtype=float32");
    EXPECT_EQ(check.code, 0) << kernel << check.err;
    EXPECT_TRUE(contains(check.out, "check: proven")) << check.out;
    EXPECT_TRUE(contains(check.out, "data: right")) << check.out;
  }
}

TEST(Fused, a_late_rank_is_replayed_to_the_femtosecond) {
  const Workplace place;
  const std::string what =
      " --machine switch:4 --quiet --param m=512 --param k=512 --param skew=3us";
  const Outcome run =
      place.run("run gemv-ar/fused --no-check --record r.csv --json full.json" + what);
  ASSERT_EQ(run.code, 0) << run.err;
  const Outcome replay = place.run("replay r.csv --program gemv-ar/fused --json alone.json" + what);
  ASSERT_EQ(replay.code, 0) << replay.err;
  const nlohmann::json full = result_of(place.read("full.json"));
  for (const nlohmann::json& rank : full.at("attribution")) {
    if (rank.at("rank") != 0) continue;
    const std::int64_t end =
        full.at("time_fs").get<std::int64_t>() - rank.at("fs").value("finished", std::int64_t{0});
    EXPECT_EQ(result_of(place.read("alone.json")).at("time_fs"), end);
  }
}

TEST(Fused, what_cannot_be_is_refused_with_what_can) {
  const Workplace place;
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = place.run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_TRUE(contains(outcome.err, words)) << outcome.err;
  };
  refused("run gemv-ar/fused --machine switch:4 --param m=100", "m is a multiple of 64: 64 or 128");
  refused("run gemv-ar/fused --machine switch:4 --size 1MiB", "leave --size out");
  refused("run gemm-a2a/fused --machine dgx-h100:2", "only reached through a NIC");
  refused("run embedding-a2a/fused --machine switch:4 --param skew=late", "a time such as 5us");
  refused("check gemv-ar/fused --ranks 4 --data", "--param dtype=float32");
  refused("plan make gemv-ar/fused --ranks 4", "is a program without a plan");
}

}  // namespace
}  // namespace hemiola::test
