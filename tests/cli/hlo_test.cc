// HLO modules as a user meets them: run, listed, a product lifted to a plan that is right and runs.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

std::string module_text(const std::string& name) {
  std::ifstream file(std::string(HEMIOLA_SOURCE_DIR) + "/tests/hlo/" + name + ".txt");
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Hlo, a_module_runs_like_any_trace_and_becomes_a_job) {
  const Workplace place;
  place.write("m.txt", module_text("gpu_layer"));
  const Outcome run = place.run("run m.txt --machine dgx-h100 --json out.json --job job.yaml");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.err, "module 'jit_layer' runs on 8 devices")) << run.err;
  EXPECT_TRUE(contains(run.out, "all-gather 2 x 4")) << run.out;
  EXPECT_TRUE(contains(run.out, "all-reduce 4 x 2, 4 apart")) << run.out;
  const auto json = nlohmann::json::parse(place.read("out.json"));
  EXPECT_GT(json["results"][0]["time_fs"].get<std::int64_t>(), 0);
  const Outcome job = place.run("run job.yaml --machine dgx-h100 --engine fluid --quiet");
  EXPECT_EQ(job.code, 0) << job.err;
  // In a ring, groups of one message wait for kernels of different ranks.
  place.write("ring.txt", module_text("pipeline"));
  ASSERT_EQ(place.run("run ring.txt --machine dgx-h100 --quiet --job ring.yaml").code, 0);
  const Outcome ring = place.run("run ring.yaml --machine dgx-h100 --engine fluid --quiet");
  EXPECT_EQ(ring.code, 0) << ring.err;
}

TEST(Hlo, products_are_listed_and_one_becomes_a_plan_that_is_right_and_runs) {
  const Workplace place;
  place.write("m.txt", module_text("mlp_sequence_parallel"));
  const Outcome list = place.run("compile m.txt --describe");
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_TRUE(contains(list.out, "dot_general.9 (line 50): 1024 x 256 x 512")) << list.out;
  EXPECT_TRUE(contains(list.out, "gemm-rs with reduce-scatter 'reduce_scatter.7' on 8 ranks"));
  const Outcome lifted =
      place.run("compile m.txt --dot dot_general.9 --template ag-gemm/ring -o plan.json");
  ASSERT_EQ(lifted.code, 0) << lifted.err;
  EXPECT_TRUE(contains(lifted.out, "ag-gemm/ring of product 'dot_general.9'")) << lifted.out;
  const Outcome made = place.run(
      "plan make ag-gemm/ring --ranks 8 --param m=1024 --param n=2048 --param k=512 --param "
      "dtype=float32 -o made.json");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(place.read("plan.json"), place.read("made.json"));
  EXPECT_EQ(place.run("check plan.json").code, 0);
  const Outcome run = place.run("run plan.json --machine dgx-h100 --engine fluid --quiet");
  EXPECT_EQ(run.code, 0) << run.err;
}

TEST(Hlo, what_is_wrong_is_one_message_and_nothing_is_written) {
  const Workplace place;
  const std::string text = module_text("mlp_tensor_parallel");
  place.write("m.txt", text);
  place.write("cut.txt", text.substr(0, text.size() - 300));
  const auto said = [&](const std::string& command) {
    const Outcome outcome = place.run(command);
    EXPECT_EQ(outcome.code, 2) << command;
    return outcome.err;
  };
  EXPECT_TRUE(contains(said("run cut.txt --machine dgx-h100"), "cut.txt:57:"))
      << said("run cut.txt");
  EXPECT_TRUE(contains(said("run m.txt --machine dgx-h100 --replicate 2"),
                       "an HLO module says on how many devices it runs"));
  EXPECT_TRUE(contains(said("compile m.txt -o p.json"), "no product is named"));
  EXPECT_TRUE(contains(said("compile m.txt --dot dot.2"), "--output"));
  EXPECT_TRUE(contains(said("compile m.txt --dot dot.99 -o p.json"), "there are dot.3, dot.2"));
  EXPECT_TRUE(contains(said("compile m.txt --dot dot.2 --kernel k -o p.json"), "is for kernels"));
  EXPECT_TRUE(contains(said("compile --dot dot.2 -o p.json"), "is of an HLO module"));
  EXPECT_TRUE(contains(said("check m.txt"), "is an HLO module, not a program"));
  place.write("s.mlir", "module @jit_f attributes {mhlo.num_partitions = 8 : i32} {\n}\n");
  EXPECT_TRUE(contains(said("run s.mlir --machine dgx-h100"), "StableHLO"));
  EXPECT_FALSE(contains(place.files(), "p.json"));
}

}  // namespace
}  // namespace hemiola::test
