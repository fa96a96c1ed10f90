#include "workload/models/model_config.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "core/json.h"
#include "core/lists.h"

namespace hemiola::workload {
namespace {

constexpr std::int64_t kLongestConfigSize = std::int64_t{1} << 40;

class ConfigReader {
 public:
  explicit ConfigReader(const JsonValue& root) : root_(root) {}

  Model read();

 private:
  std::int64_t size(const char* key, std::int64_t least = 1) const {
    if (!root_.has(key))
      root_.fail(fmt::format("the key '{}' is missing", key),
                 fmt::format("a configuration of '{}' has it", type_));
    return root_.integer(key, least, kLongestConfigSize);
  }
  std::int64_t size_or(const char* key, std::int64_t otherwise, std::int64_t least = 1) const {
    return root_.integer_or(key, otherwise, least, kLongestConfigSize);
  }
  bool truth_or(const char* key, bool otherwise) const {
    return root_.has(key) ? root_.at(key).boolean() : otherwise;
  }
  std::string text_of(const char* key) const { return root_.at(key).json().dump(); }
  void notice(const char* key, const std::string& message) {
    model_.notices.push_back(
        {.severity = Severity::warning, .message = message, .where = root_.at(key).where()});
  }

  std::string type() const;
  void llama();
  void mistral();
  void qwen2();
  void qwen3();
  void mixtral();
  void qwen3_mixture();
  void deepseek_v3();
  void gpt2();
  void gpt_neo();
  void window(const char* key);

  struct Reader {
    const char* type;
    const char* architecture;
    void (ConfigReader::*read)();
  };
  static const std::vector<Reader>& readers();

  JsonValue root_;
  std::string type_;
  Model model_{};
};

const std::vector<ConfigReader::Reader>& ConfigReader::readers() {
  static const std::vector<Reader> known{
      {"llama", "LlamaForCausalLM", &ConfigReader::llama},
      {"mistral", "MistralForCausalLM", &ConfigReader::mistral},
      {"qwen2", "Qwen2ForCausalLM", &ConfigReader::qwen2},
      {"qwen3", "Qwen3ForCausalLM", &ConfigReader::qwen3},
      {"qwen3_moe", "Qwen3MoeForCausalLM", &ConfigReader::qwen3_mixture},
      {"mixtral", "MixtralForCausalLM", &ConfigReader::mixtral},
      {"deepseek_v3", "DeepseekV3ForCausalLM", &ConfigReader::deepseek_v3},
      {"gpt2", "GPT2LMHeadModel", &ConfigReader::gpt2},
      {"gpt_neo", "GPTNeoForCausalLM", &ConfigReader::gpt_neo}};
  return known;
}

std::string ConfigReader::type() const {
  if (root_.has("model_type")) return root_.at("model_type").text();
  for (const JsonValue& item : root_.items("architectures")) {
    for (const Reader& reader : readers())
      if (item.text() == reader.architecture) return reader.type;
    return item.text();
  }
  root_.fail("neither 'model_type' nor 'architectures' says what this model is");
}

Model ConfigReader::read() {
  type_ = type();
  std::vector<std::string> names;
  for (const Reader& reader : readers()) {
    names.emplace_back(reader.type);
    if (type_ != reader.type) continue;
    (this->*reader.read)();
    return complete(std::move(model_), root_.where());
  }
  const JsonValue place = root_.at(root_.has("model_type") ? "model_type" : "architectures");
  place.fail("models of type '" + type_ + "' are not read",
             suggest(type_, names, "these are: " + joined(names)));
}

void ConfigReader::llama() {
  model_.layers = size("num_hidden_layers");
  model_.hidden = size("hidden_size");
  model_.heads = size("num_attention_heads");
  model_.kv_heads = size_or("num_key_value_heads", model_.heads);
  model_.head_dim = size_or("head_dim", 0);
  model_.intermediate = size("intermediate_size");
  model_.vocabulary = size("vocab_size");
  model_.sequence = size("max_position_embeddings");
  model_.gated = true;
  model_.norm = Norm::rms;
  model_.positions = Positions::rotary;
  model_.tied_embeddings = truth_or("tie_word_embeddings", false);
  model_.dropout = false;
  model_.biases = Biases::none;
  const bool in_mlp = truth_or("mlp_bias", false);
  if (truth_or("attention_bias", false)) {
    model_.biases = in_mlp ? Biases::all : Biases::qkv;
    if (!in_mlp) notice("attention_bias", "ignored: the bias of the output of attention");
  } else if (in_mlp) {
    notice("mlp_bias", "ignored: biases of the MLP");
  }
}

void ConfigReader::mistral() {
  llama();
  window("sliding_window");
}

void ConfigReader::qwen2() {
  llama();
  model_.biases = Biases::qkv;
  if (truth_or("use_sliding_window", false)) window("sliding_window");
}

void ConfigReader::qwen3() {
  llama();
  model_.query_key_norm = true;
  if (truth_or("use_sliding_window", false)) window("sliding_window");
}

void ConfigReader::mixtral() {
  llama();
  model_.experts.count = size("num_local_experts");
  model_.experts.per_token = size("num_experts_per_tok");
  model_.experts.intermediate = model_.intermediate;
  window("sliding_window");
}

void ConfigReader::qwen3_mixture() {
  qwen3();
  model_.experts.count = size("num_experts");
  model_.experts.per_token = size("num_experts_per_tok");
  model_.experts.intermediate = size("moe_intermediate_size");
  if (size_or("decoder_sparse_step", 1) != 1)
    root_.at("decoder_sparse_step").fail("mixtures in every layer only are read");
}

void ConfigReader::deepseek_v3() {
  llama();
  model_.experts.count = size("n_routed_experts");
  model_.experts.per_token = size("num_experts_per_tok");
  model_.experts.shared = size_or("n_shared_experts", 0, 0);
  model_.experts.intermediate = size("moe_intermediate_size");
  model_.experts.first_dense_layers = size_or("first_k_dense_replace", 0, 0);
  model_.experts.router_bias = true;
  model_.latent.kv_rank = size("kv_lora_rank");
  model_.latent.query_rank = size_or("q_lora_rank", 0);
  model_.latent.plain_dim = size("qk_nope_head_dim");
  model_.latent.rope_dim = size("qk_rope_head_dim");
  model_.latent.value_dim = size("v_head_dim");
  model_.head_dim = 0;
  if (size_or("moe_layer_freq", 1) != 1)
    root_.at("moe_layer_freq").fail("mixtures in every layer only are read");
  if (size_or("num_nextn_predict_layers", 0, 0) > 0)
    notice("num_nextn_predict_layers",
           "ignored: layers that predict further tokens are not part of the model");
}

void ConfigReader::gpt2() {
  model_.layers = size("n_layer");
  model_.hidden = size("n_embd");
  model_.heads = size("n_head");
  model_.intermediate = size_or("n_inner", 0);
  model_.vocabulary = size("vocab_size");
  model_.sequence = size("n_positions");
  model_.tied_embeddings = truth_or("tie_word_embeddings", true);
}

void ConfigReader::gpt_neo() {
  model_.layers = size("num_layers");
  model_.hidden = size("hidden_size");
  model_.heads = size("num_heads");
  model_.intermediate = size_or("intermediate_size", 0);
  model_.vocabulary = size("vocab_size");
  model_.sequence = size("max_position_embeddings");
  model_.tied_embeddings = truth_or("tie_word_embeddings", true);
  model_.biases = Biases::output;
  model_.dropout = false;
  // By default every second layer looks at a window of 256 tokens.
  for (const char* key : {"attention_layers", "attention_types"})
    if (root_.has(key) && text_of(key).find("local") == std::string::npos) return;
  if (root_.has("window_size")) window("window_size");
}

void ConfigReader::window(const char* key) {
  const std::int64_t tokens = size_or(key, 0);
  if (tokens > 0 && tokens < model_.sequence)
    notice(key, fmt::format("ignored: attention within a window of {} tokens is taken as attention "
                            "to all of them",
                            tokens));
}

}  // namespace

bool is_hugging_face_config(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string_view::npos && text[begin] == '{' &&
         (text.find("\"model_type\"") != std::string_view::npos ||
          text.find("\"architectures\"") != std::string_view::npos);
}

Model parse_hugging_face_config(std::string_view text, const std::string& file) {
  const JsonFile source{.text = text, .name = file};
  nlohmann::json json = parse_json(source);
  // What is null is as if it were not there.
  for (auto member = json.begin(); member != json.end();)
    member = member->is_null() ? json.erase(member) : std::next(member);
  Model model = ConfigReader(JsonValue(json, source)).read();
  // Configurations lie as config.json in a folder that has the model's name.
  const std::filesystem::path path(file);
  const std::string stem = path.stem().string();
  const std::string folder = path.parent_path().filename().string();
  model.name = stem == "config" && !folder.empty() ? folder : stem;
  model.source = file;
  return model;
}

}  // namespace hemiola::workload
