// hemiola workload and run of traces, as a user types them.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

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

/// By the name of its calls, in bytes over all groups: what an iteration communicates.
std::map<std::string, std::int64_t> bytes_by_name(const Workplace& place,
                                                  const std::string& command) {
  const Outcome run = place.run("workload make " + command +
                                " --engine estimate --no-contention --quiet --json out.json");
  EXPECT_EQ(run.code, 0) << run.err;
  std::map<std::string, std::int64_t> bytes;
  const auto json = nlohmann::json::parse(place.read("out.json"));
  for (const auto& launch : json["results"][0]["launches"])
    bytes[launch["name"]] +=
        launch["calls"].get<std::int64_t>() * launch["size_bytes"].get<std::int64_t>();
  return bytes;
}

TEST(Workload, the_examples_communicate_what_closed_forms_say) {
  const Workplace place;
  constexpr std::int64_t kLayers = 80, kHidden = 8192, kHalf = 2;  // Llama 70B
  constexpr std::int64_t kVocabulary = 129'024;  // 128,256, up to a multiple of 128 x 8
  // examples/workload_llama: two sums for each layer and one of the embedding; logits gathered.
  for (const auto& [phase, tokens, last] :
       {std::tuple("decode --micro-batch 16 --context 4096", 16, 16),
        std::tuple("prefill --micro-batch 1 --sequence 512", 512, 1)}) {
    auto bytes =
        bytes_by_name(place, std::string("llama-70b --tp 8 --machine dgx-h100 --phase ") + phase);
    EXPECT_EQ(bytes["all-reduce tp"], (2 * kLayers + 1) * tokens * kHidden * kHalf) << phase;
    EXPECT_EQ(bytes["all-gather tp"], last * kVocabulary * kHalf) << phase;
    EXPECT_EQ(bytes.size(), 2U) << phase;
  }
  {  // examples/workload_training
    constexpr std::int64_t kReplicas = 4, kTp = 8, kMicroBatches = 32 / kReplicas;
    constexpr std::int64_t kActivation = 8192 * kHidden * kHalf;
    auto bytes = bytes_by_name(place,
                               "llama-70b --tp 8 --pp 4 --dp 4 --sp --zero 1 --global-batch 32 "
                               "--recompute selective --machine dgx-h100:16");
    // Of each layer, and of the embedding and the logits.
    EXPECT_EQ(bytes["all-gather tp"], kReplicas * kMicroBatches * (6 * kLayers + 3) * kActivation);
    EXPECT_EQ(bytes["reduce-scatter tp"],
              kReplicas * kMicroBatches * (4 * kLayers + 2) * kActivation);
    // Each rank sends its share to the next stage, and gradients to the one before.
    EXPECT_EQ(bytes["send pp-even"] + bytes["send pp-odd"],
              2 * 3 * kReplicas * kMicroBatches * kActivation);
    // Queries and their output, keys and values, three of the MLP; norms are in every tensor rank.
    constexpr std::int64_t kMatrices =
        2 * kHidden * kHidden + 2 * kHidden * 1024 + 3 * kHidden * 28'672;
    constexpr std::int64_t kParameters =
        kLayers * kMatrices + 2 * kVocabulary * kHidden + kTp * (2 * kLayers + 1) * kHidden;
    EXPECT_EQ(bytes["reduce-scatter dp"], kParameters * 4) << "gradients in float32";
    EXPECT_EQ(bytes["all-gather dp"], kParameters * kHalf);
  }
  {  // examples/workload_moe: to the experts and back, forward and backward, two for each token
    auto bytes = bytes_by_name(place,
                               "mixtral-8x7b --tp 2 --dp 8 --ep 8 --zero 1 --global-batch 32 "
                               "--machine dgx-h100:2");
    constexpr std::int64_t kRanks = 2 * 8,
                           kPerRank = std::int64_t{4} * (32 / 8) * 32 * 4096 * 4096 * 2 * 2;
    EXPECT_EQ(bytes["all-to-all dp"], kRanks / 8 * kPerRank);
  }
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
          "'gossip' is nothing to leave out");
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

}  // namespace
}  // namespace hemiola::test
