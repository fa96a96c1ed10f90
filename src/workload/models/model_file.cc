// Models as text: our schema, and where models are found.

#include "core/embedded.h"
#include "core/lists.h"
#include "core/text.h"
#include "study/support/yaml_file.h"
#include "workload/models/model.h"
#include "workload/models/model_config.h"

namespace hemiola::workload {
namespace {

constexpr std::string_view kModelFolder = "data/models/";
constexpr std::string_view kModelYaml = ".yaml";
constexpr std::int64_t kLongestModelSize = std::int64_t{1} << 40;

const std::vector<std::string> kModelFileKeys{
    "name",       "aliases",         "source",   "layers",       "hidden",
    "heads",      "kv_heads",        "head_dim", "intermediate", "activation",
    "vocabulary", "tied_embeddings", "sequence", "norm",         "query_key_norm",
    "positions",  "biases",          "dropout",  "experts",      "latent_attention"};

struct ModelFile {
  Model model;
  std::vector<std::string> aliases;
};

class ModelReader : study::YamlFile {
 public:
  explicit ModelReader(const std::string& file) : YamlFile(file) {}

  ModelFile read(std::string_view yaml) const {
    const YAML::Node root = load(yaml);
    allow_keys(root, kModelFileKeys);
    ModelFile read;
    Model& model = read.model;
    member(root, "name");
    model.name = text(root, "name", "");
    if (model.name.empty()) fail(root["name"], "a model has a name");
    model.source = text(root, "source", "");
    read_sizes(root, model);
    model.gated = one_of(root, "activation", {"swiglu", "gelu"}, "") == 0;
    model.tied_embeddings = truth(root, "tied_embeddings");
    model.norm = one_of(root, "norm", {"rms", "layer"}, "") == 0 ? Norm::rms : Norm::layer;
    model.query_key_norm = truth(root, "query_key_norm");
    model.positions =
        static_cast<Positions>(one_of(root, "positions", {"rotary", "learned", "none"}, "rotary"));
    model.biases =
        static_cast<Biases>(one_of(root, "biases", {"none", "qkv", "output", "all"}, "none"));
    model.dropout = truth(root, "dropout");
    if (root["experts"]) read_experts(root["experts"], model.experts);
    if (root["latent_attention"]) read_latent(root["latent_attention"], model.latent);
    read_aliases(root, read.aliases);
    model = complete(model, at(root));
    return read;
  }

 private:
  std::int64_t size(const YAML::Node& node, const std::string& key, bool required,
                    std::int64_t least) const {
    if (required) member(node, key);
    return count(node, key, 0, least, kLongestModelSize);
  }

  void read_sizes(const YAML::Node& root, Model& model) const {
    model.layers = size(root, "layers", true, 1);
    model.hidden = size(root, "hidden", true, 1);
    model.heads = size(root, "heads", true, 1);
    model.kv_heads = size(root, "kv_heads", false, 1);
    model.head_dim = size(root, "head_dim", false, 1);
    model.intermediate = size(root, "intermediate", false, 1);
    model.vocabulary = size(root, "vocabulary", true, 1);
    model.sequence = size(root, "sequence", true, 1);
  }

  void read_experts(const YAML::Node& node, Experts& experts) const {
    allow_keys(node, {"count", "per_token", "shared", "intermediate", "first_dense_layers",
                      "router_bias"});
    experts.count = size(node, "count", true, 1);
    experts.per_token = size(node, "per_token", true, 1);
    experts.shared = size(node, "shared", false, 0);
    experts.intermediate = size(node, "intermediate", true, 1);
    experts.first_dense_layers = size(node, "first_dense_layers", false, 0);
    experts.router_bias = truth(node, "router_bias");
  }

  void read_latent(const YAML::Node& node, LatentAttention& latent) const {
    allow_keys(node, {"kv_rank", "query_rank", "plain_dim", "rope_dim", "value_dim"});
    latent.kv_rank = size(node, "kv_rank", true, 1);
    latent.query_rank = size(node, "query_rank", false, 0);
    latent.plain_dim = size(node, "plain_dim", true, 1);
    latent.rope_dim = size(node, "rope_dim", false, 0);
    latent.value_dim = size(node, "value_dim", true, 1);
  }

  void read_aliases(const YAML::Node& root, std::vector<std::string>& aliases) const {
    const YAML::Node list = root["aliases"];
    if (!list) return;
    if (!list.IsSequence()) fail(list, "'aliases' must be a list of names");
    for (const auto& item : list) {
      if (!item.IsScalar()) fail(item, "an alias must be one word");
      aliases.push_back(item.Scalar());
    }
  }

  /// Absent is false.
  bool truth(const YAML::Node& node, const std::string& key) const {
    return one_of(node, key, {"false", "true"}, "false") == 1;
  }

  /// Which of the words; the key must be there if `otherwise` is empty.
  std::size_t one_of(const YAML::Node& node, const std::string& key,
                     const std::vector<std::string>& words, const std::string& otherwise) const {
    if (otherwise.empty()) member(node, key);
    const std::string word = text(node, key, otherwise);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == word) return i;
    fail(node[key], "'" + word + "' is not among the values of '" + key + "'",
         "there are: " + joined(words));
  }
};

/// "llama-3-8b" of "data/models/llama-3-8b.yaml"; empty: it is none.
std::string_view model_of(std::string_view path) {
  if (!path.starts_with(kModelFolder) || !path.ends_with(kModelYaml)) return {};
  path.remove_prefix(kModelFolder.size());
  path.remove_suffix(kModelYaml.size());
  return path;
}

ModelFile parse_shipped(const EmbeddedFile& file) {
  return ModelReader(std::string(file.path)).read(file.content);
}

}  // namespace

std::vector<std::string> shipped_models() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (!model_of(file.path).empty()) names.emplace_back(model_of(file.path));
  return names;
}

Model parse_model(std::string_view text, const std::string& file) {
  if (is_hugging_face_config(text)) return parse_hugging_face_config(text, file);
  return ModelReader(file).read(text).model;
}

Model load_model(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files()) {
    const std::string_view name = model_of(file.path);
    if (name.empty()) continue;
    ModelFile read = parse_shipped(file);
    if (name == name_or_file) return read.model;
    names.emplace_back(name);
    for (const std::string& alias : read.aliases) {
      if (alias == name_or_file) return read.model;
      names.push_back(alias);
    }
  }
  const bool is_name = name_or_file.find('/') == std::string::npos &&
                       !name_or_file.ends_with(".yaml") && !name_or_file.ends_with(".json");
  if (is_name && !is_there(name_or_file)) {
    throw Failure("there is no model and no file '" + name_or_file + "'",
                  SourceLocation{.file = "--model"},
                  suggest(name_or_file, names, "there are: " + joined(shipped_models())));
  }
  return parse_model(read_file(name_or_file), name_or_file);
}

}  // namespace hemiola::workload
