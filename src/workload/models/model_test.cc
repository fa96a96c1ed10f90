#include "workload/models/model.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "core/testing/failure.h"

namespace hemiola::workload {
namespace {

using hemiola::test::message_of;

constexpr const char* kTinyModel =
    "name: tiny\nlayers: 2\nhidden: 64\nheads: 4\nactivation: gelu\nvocabulary: 100\n"
    "sequence: 32\nnorm: layer\n";

constexpr const char* kLlamaConfig = R"({
  "architectures": ["LlamaForCausalLM"],
  "hidden_size": 4096,
  "intermediate_size": 14336,
  "max_position_embeddings": 8192,
  "model_type": "llama",
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "num_key_value_heads": 8,
  "rope_scaling": null,
  "tie_word_embeddings": false,
  "vocab_size": 128256
})";

std::string without_line(std::string text, const std::string& key) {
  const std::size_t at = text.find("\"" + key + "\"");
  return text.erase(at, text.find('\n', at) - at);
}

TEST(Model, CountsOfParametersAreThePublishedOnes) {
  struct Published {
    const char* name;
    double billions;
  };
  // Model cards of the models on Hugging Face; the papers that the files name.
  for (const Published& one : {Published{"llama-2-7b", 6.738},
                               {"llama-2-70b", 68.98},
                               {"llama-3-8b", 8.030},
                               {"llama-3-70b", 70.554},
                               {"llama-3-405b", 405.85},
                               {"mistral-7b", 7.242},
                               {"qwen2-72b", 72.71},
                               {"qwen3-235b", 235.09},
                               {"mixtral-8x7b", 46.70},
                               {"mixtral-8x22b", 140.62},
                               {"deepseek-v3", 671.03},
                               {"gpt-3-175b", 174.6},
                               {"megatron-gpt-22b", 22.0},
                               {"megatron-gpt-530b", 529.6},
                               {"megatron-gpt-1t", 1008.0},
                               {"gpt2", 0.12444},
                               {"gpt2-xl", 1.5576}}) {
    const double counted = static_cast<double>(parameters(load_model(one.name))) / 1e9;
    EXPECT_NEAR(counted / one.billions, 1, 0.005) << one.name << " has " << counted;
  }
}

TEST(Model, EveryShippedFileHasItsNameASourceAndNoNotice) {
  const std::vector<std::string> names = shipped_models();
  EXPECT_GE(names.size(), 17U);
  for (const std::string& name : names) {
    const Model model = load_model(name);
    EXPECT_EQ(model.name, name);
    EXPECT_GT(model.source.size(), 10U) << name;
    EXPECT_TRUE(model.notices.empty()) << name;
  }
}

TEST(Model, AnAliasNamesTheSameModel) {
  EXPECT_EQ(load_model("llama-70b").name, "llama-3-70b");
  EXPECT_EQ(load_model("gpt3-175b").name, "gpt-3-175b");
}

TEST(Model, WhatAFileLeavesOutIsFilledIn) {
  const Model model = parse_model(kTinyModel, "tiny.yaml");
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 16);
  EXPECT_EQ(model.intermediate, 256);
  EXPECT_EQ(model.positions, Positions::rotary);
  EXPECT_EQ(model.biases, Biases::none);
  EXPECT_FALSE(model.tied_embeddings);
}

TEST(Model, APlainStructWithFourSizesIsAGptOfMegatron) {
  const Model model = complete({.name = "gpt",
                                .layers = 24,
                                .hidden = 1024,
                                .heads = 16,
                                .vocabulary = 51200,
                                .sequence = 1024});
  // 12 l h^2 (1 + 13 / (12 h)) + (V + s) h and the last norm (arXiv:2104.04473, equation 2).
  EXPECT_EQ(parameters(model),
            12 * 24 * 1024 * 1024 + 24 * 13 * 1024 + (51200 + 1024) * 1024 + 2 * 1024);
}

TEST(Model, BadFilesAreRefusedWithTheirLine) {
  const auto said = [](const std::string& yaml) {
    return message_of([&] { parse_model(yaml, "m.yaml"); });
  };
  EXPECT_EQ(said(std::string(kTinyModel) + "kv_head: 2\n"),
            "m.yaml:9: error: unknown key 'kv_head'\n  hint: did you mean 'kv_heads'?");
  EXPECT_EQ(said(std::string(kTinyModel) + "heads: 2\n"),
            "m.yaml:9: error: the key 'heads' stands here twice");
  EXPECT_EQ(said(std::string(kTinyModel) + "kv_heads: 3\n"),
            "m.yaml:1: error: model 'tiny': 4 heads are no multiple of 3 kv_heads");
  EXPECT_EQ(said(std::string(kTinyModel) + "biases: some\n"),
            "m.yaml:9: error: 'some' is not among the values of 'biases'\n"
            "  hint: there are: none, qkv, output, all");
  EXPECT_EQ(said("name: x\nlayers: many\nhidden: 8\n"),
            "m.yaml:2: error: 'layers' must be a number from 1 to 1099511627776");
  EXPECT_EQ(said("name: x\nlayers: 2\n"), "m.yaml:1: error: the key 'hidden' is missing");
  EXPECT_EQ(said(std::string(kTinyModel) + "experts: {count: 4, per_token: 8, intermediate: 8}\n"),
            "m.yaml:1: error: model 'tiny': experts.per_token is 8, which must be from 1 to 4");
}

TEST(Model, ANameThatIsNotThereSuggestsANearOne) {
  EXPECT_EQ(message_of([] { load_model("llama-3-80b"); }),
            "--model: error: there is no model and no file 'llama-3-80b'\n"
            "  hint: did you mean 'llama-3-70b'?");
}

TEST(Model, AConfigurationOfHuggingFaceIsTheSameModel) {
  const Model read = parse_model(kLlamaConfig, "Meta-Llama-3-8B/config.json");
  const Model shipped = load_model("llama-3-8b");
  EXPECT_EQ(read.name, "Meta-Llama-3-8B");
  EXPECT_EQ(parameters(read), parameters(shipped));
  EXPECT_EQ(read.kv_heads, 8);
  EXPECT_TRUE(read.gated);
  EXPECT_EQ(read.norm, Norm::rms);
  EXPECT_TRUE(read.notices.empty());
}

TEST(Model, ArchitecturesNameTheModelWhereThereIsNoType) {
  const Model read = parse_model(without_line(kLlamaConfig, "model_type"), "config.json");
  EXPECT_EQ(parameters(read), 8'030'261'248);
}

TEST(Model, AMissingKeyOfAConfigurationIsNamed) {
  const auto said = [](const std::string& json) {
    return message_of([&] { parse_model(json, "config.json"); });
  };
  EXPECT_EQ(said(without_line(kLlamaConfig, "intermediate_size")),
            "config.json:1:1: error: the key 'intermediate_size' is missing (at /)\n"
            "  hint: a configuration of 'llama' has it");
  EXPECT_EQ(said(R"({"model_type": "llamas"})"),
            "config.json:1:16: error: models of type 'llamas' are not read (at /model_type)\n"
            "  hint: did you mean 'llama'?");
  EXPECT_EQ(said(R"({"model_type": "bert"})"),
            "config.json:1:16: error: models of type 'bert' are not read (at /model_type)\n"
            "  hint: these are: llama, mistral, qwen2, qwen3, qwen3_moe, mixtral, deepseek_v3, "
            "gpt2, gpt_neo");
  EXPECT_EQ(
      said(R"({"model_type": "llama", "num_hidden_layers": -3})"),
      "config.json:1:46: error: -3 is not in the range 1 to 1099511627776 (at /num_hidden_layers)");
}

TEST(Model, ConfigurationsOfOtherFamilies) {
  const Model mixtral = parse_model(
      R"({"model_type": "mixtral", "num_hidden_layers": 32, "hidden_size": 4096,
          "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
          "vocab_size": 32000, "max_position_embeddings": 32768, "sliding_window": 4096,
          "num_local_experts": 8, "num_experts_per_tok": 2})",
      "config.json");
  EXPECT_EQ(parameters(mixtral), parameters(load_model("mixtral-8x7b")));
  ASSERT_EQ(mixtral.notices.size(), 1U);
  EXPECT_EQ(mixtral.notices[0].message,
            "ignored: attention within a window of 4096 tokens is taken as attention to all of "
            "them");

  const Model gpt2 = parse_model(
      R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024,
          "vocab_size": 50257, "n_inner": null})",
      "config.json");
  EXPECT_EQ(parameters(gpt2), parameters(load_model("gpt2-xl")));

  // EleutherAI/gpt-neo-1.3B has 1,315,575,808 parameters.
  const Model neo = parse_model(
      R"({"model_type": "gpt_neo", "num_layers": 24, "hidden_size": 2048, "num_heads": 16,
          "intermediate_size": null, "vocab_size": 50257, "max_position_embeddings": 2048,
          "window_size": 256, "attention_types": [[["global", "local"], 12]]})",
      "config.json");
  EXPECT_EQ(parameters(neo), 1'315'575'808);
  EXPECT_EQ(neo.notices.size(), 1U);

  const Model qwen2 = parse_model(
      R"({"model_type": "qwen2", "num_hidden_layers": 80, "hidden_size": 8192,
          "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 29568,
          "vocab_size": 152064, "max_position_embeddings": 32768, "sliding_window": 131072,
          "use_sliding_window": false})",
      "config.json");
  EXPECT_EQ(parameters(qwen2), parameters(load_model("qwen2-72b")));

  const Model deepseek = parse_model(
      R"({"model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168,
          "num_attention_heads": 128, "num_key_value_heads": 128, "intermediate_size": 18432,
          "vocab_size": 129280, "max_position_embeddings": 163840, "n_routed_experts": 256,
          "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
          "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536,
          "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
          "num_nextn_predict_layers": 1, "moe_layer_freq": 1})",
      "config.json");
  EXPECT_EQ(parameters(deepseek), parameters(load_model("deepseek-v3")));
  EXPECT_EQ(deepseek.notices.size(), 1U);
}

TEST(Model, ConfigurationsOfMistralAndQwen3) {
  const std::string sizes =
      R"("hidden_size": 4096, "max_position_embeddings": 32768, "num_hidden_layers": )";
  const Model mistral = parse_model(
      R"({"model_type": "mistral", "num_attention_heads": 32, "num_key_value_heads": 8,
          "intermediate_size": 14336, "vocab_size": 32000, )" +
          sizes + "32}",
      "config.json");
  EXPECT_EQ(parameters(mistral), parameters(load_model("mistral-7b")));
  const Model qwen3 = parse_model(
      R"({"model_type": "qwen3_moe", "num_attention_heads": 64, "num_key_value_heads": 4,
          "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936, "num_experts": 128,
          "num_experts_per_tok": 8, "moe_intermediate_size": 1536, )" +
          sizes + "94}",
      "config.json");
  EXPECT_EQ(parameters(qwen3), parameters(load_model("qwen3-235b")));
}

TEST(Model, BiasesThatAreNotTakenAreNamed) {
  std::string config = kLlamaConfig;
  config.insert(config.find('{') + 1, R"("attention_bias": true, )");
  const Model read = parse_model(config, "config.json");
  EXPECT_EQ(read.biases, Biases::qkv);
  ASSERT_EQ(read.notices.size(), 1U);
  EXPECT_EQ(read.notices[0].message, "ignored: the bias of the output of attention");
  config.insert(config.find('{') + 1, R"("mlp_bias": true, )");
  EXPECT_EQ(parse_model(config, "config.json").biases, Biases::all);
}

TEST(Model, DamagedFilesEndInOneMessage) {
  const std::string config = kLlamaConfig;
  for (std::size_t length = 1; length < config.size(); length += 7) {
    try {
      parse_model(config.substr(0, length), "config.json");
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input) << length;
    }
  }
}

}  // namespace
}  // namespace hemiola::workload
