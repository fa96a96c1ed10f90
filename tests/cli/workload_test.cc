// hemiola workload, run of traces and of ASTRA-sim's inputs, as a user types them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "program.h"

namespace hemiola::test {
namespace {

const std::string kSmall =
    "name: small\nactivation: gelu\nnorm: layer\nlayers: 2\nhidden: 256\nheads: 4\nvocabulary: "
    "1024\nsequence: 128\nsource: a test\n";
const std::string kMake = "workload make small.yaml --tp 2 --dp 2 --global-batch 8 ";

TEST(Workload, an_iteration_of_a_model_is_run_and_its_reasons_sum_to_its_time) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const Outcome run =
      place.run(kMake + "--machine dgx-h100 --json out.json --csv out.csv --trace t");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("all-reduce tp"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("% of peak flop (MFU)"), std::string::npos) << run.out;
  const auto json = nlohmann::json::parse(place.read("out.json"));
  const auto& result = json["results"][0];
  ASSERT_EQ(result["classes"].size(), 1u);
  const auto& one = result["classes"][0];
  std::int64_t sum = 0;
  for (const char* key : {"compute", "exposed", "memory", "waiting", "host", "idle"})
    sum += one[std::string(key) + "_fs"].get<std::int64_t>();
  EXPECT_EQ(sum, result["time_fs"].get<std::int64_t>());
  EXPECT_GT(result["critical_path"].size(), 10u);
}

TEST(Workload, the_same_command_writes_the_same_bytes) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const std::string command = kMake + "--pp 2 --machine dgx-h100 --json out.json";
  ASSERT_EQ(place.run(command).code, 0);
  const std::string first = place.read("out.json");
  ASSERT_EQ(place.run(command).code, 0);
  EXPECT_EQ(place.read("out.json"), first);
}

TEST(Workload, what_ifs_change_the_time_in_the_right_direction) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const auto time = [&](const std::string& options) {
    const Outcome run = place.run(kMake + "--machine dgx-h100 --json out.json --quiet " + options);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(place.read("out.json"))["results"][0]["time_fs"]
        .get<std::int64_t>();
  };
  const std::int64_t whole = time("");
  EXPECT_GT(time("--set link.nvlink4.latency=2us"), whole);
  EXPECT_LT(time("--without all-reduce"), whole);
  EXPECT_LT(time("--scale-compute 0.5"), whole);
  EXPECT_GE(time("--host-time 50us"), whole);
}

TEST(Workload, a_search_ranks_what_fits) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const Outcome run = place.run(
      "workload search small.yaml --machine dgx-h100 --ranks 4 --global-batch 8 --engine estimate "
      "--json out.json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(place.read("out.json"));
  double last = 1e300;
  int ran = 0;
  for (const auto& row : json["results"]) {
    if (!row["refused"].is_null()) continue;
    EXPECT_LE(row["tokens_per_s_per_gpu"].get<double>(), last);
    last = row["tokens_per_s_per_gpu"].get<double>();
    ++ran;
  }
  EXPECT_GE(ran, 3);
}

TEST(Workload, what_cannot_be_is_one_message_and_no_file) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const auto refusal = [&](const std::string& command, const std::string& message) {
    const Outcome run = place.run(command + " --json out.json");
    EXPECT_EQ(run.code, 2) << command;
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
    EXPECT_EQ(place.files(), "small.yaml ") << command;
  };
  refusal("workload make small.yaml --tp 3 --machine dgx-h100", "4 heads cannot be divided by 3");
  refusal("workload make llama-99b --machine dgx-h100", "llama-99b");
  refusal("workload make small.yaml --tp 4 --dp 4 --machine dgx-h100", "--ranks");
  refusal("workload make small.yaml --machine dgx-h100 --detail all-reduce=exact", "exact");
  refusal("workload make small.yaml -o traces --machine dgx-h100 --detail all-reduce=exact",
          "exact");
  refusal("workload make small.yaml --machine dgx-h100 --without gossip",
          "'gossip' is no collective");
  refusal("workload make small.yaml --machine dgx-h100 --scale-compute fast",
          "'fast' is no factor");
}

TEST(Workload, what_does_not_fit_into_memory_is_said_with_numbers) {
  const Workplace place;
  const Outcome run = place.run(
      "workload make llama-70b --phase decode --context 1024 --machine dgx-h100 --engine "
      "estimate");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("llama-3-70b does not fit: stage 0 needs 141.4 GB"), std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("h100 has"), std::string::npos) << run.err;
}

TEST(Workload, a_decode_step_has_the_whole_batch_of_a_replica) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const auto calls = [&](const std::string& options) {
    const Outcome run =
        place.run("workload make small.yaml --tp 2 --machine dgx-h100 --json out.json " + options);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(place.read("out.json"));
  };
  const auto decode = calls("--phase decode --global-batch 8");
  EXPECT_EQ(decode["launch"], "graph");
  EXPECT_EQ(decode["results"][0]["launches"][0]["calls"], 5);  // two a layer, and the embedding
  EXPECT_EQ(
      calls(
          "--phase decode --global-batch 8 --micro-batch 4")["results"][0]["launches"][0]["calls"],
      10);
  EXPECT_EQ(calls("--phase prefill --launch graph")["launch"], "graph");
}

TEST(Workload, written_as_chakra_it_is_the_same_workload) {
  const Workplace place;
  place.write("small.yaml", kSmall);
  const auto time = [&](const std::string& command) {
    const Outcome run = place.run(command + " --machine dgx-h100 --json out.json --quiet");
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(place.read("out.json"))["results"][0]["time_fs"]
        .get<std::int64_t>();
  };
  const std::int64_t made = time(kMake + "-o small");
  EXPECT_EQ(place.files(),
            "out.json small.0.et small.1.et small.2.et small.3.et small.json small.yaml ");
  EXPECT_EQ(time("run small --ranks 4"), made);
}

TEST(Workload, options_that_would_do_nothing_are_refused) {
  const Workplace place;
  const auto refusal = [&](const std::string& command, const std::string& message) {
    const Outcome run = place.run(command);
    EXPECT_EQ(run.code, 2) << command;
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
  };
  const std::string chakra(
      "\x07\x0a\x05"
      "0.0.4\x02\x08\x01",
      11);
  place.write("t.0.et", chakra);
  refusal("run t.0.et --machine dgx-h100 --skew 1us", "--skew: error: is of one program's run");
  refusal("run t.0.et --machine dgx-h100 --no-check", "--no-check: error:");
  refusal("run all-reduce/ring --machine dgx-h100 --size 4KiB --without messages",
          "--without: error: is of workloads");
}

TEST(Workload, inputs_of_astra_sim_say_what_is_missing) {
  const Workplace place;
  const Outcome run = place.run("run --astra system=system.json");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("no workload is given"), std::string::npos) << run.err;
  const Outcome other = place.run("run --astra workload=x sistem=y");
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("'sistem' is no input of ASTRA-sim"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace hemiola::test
