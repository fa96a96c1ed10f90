#include "explore/suite/scenarios.h"

#include <fmt/format.h>

#include <set>

#include "core/embedded.h"
#include "core/lists.h"
#include "core/text.h"
#include "study/support/yaml_file.h"

namespace hemiola::explore {
namespace {

constexpr std::string_view kScenarioFolder = "data/scenarios/";
constexpr std::string_view kYaml = ".yaml";
constexpr std::int64_t kMostRanks = 65536;
constexpr std::int64_t kLongest = std::int64_t{1} << 40;  ///< of a size

/// What is said of a model: numbers, and where they are from. Scenarios name it, nothing more.
const std::vector<std::string> kModelKeys{
    "hidden",   "ffn",       "padded_ffn", "heads", "kv_heads",   "head_dim", "rope_head_dim",
    "q_latent", "kv_latent", "experts",    "top_k", "expert_ffn", "source"};
const std::vector<std::string> kScenarioKeys{"name", "model", "set",   "operator", "gather",
                                             "gemm", "dtype", "ranks", "load"};

/// "overlap" of "data/scenarios/overlap.yaml"; empty: it is none.
std::string_view suite_of(std::string_view path) {
  if (!path.starts_with(kScenarioFolder) || !path.ends_with(kYaml)) return {};
  path.remove_prefix(kScenarioFolder.size());
  path.remove_suffix(kYaml.size());
  return path;
}

class ScenarioReader : study::YamlFile {
 public:
  explicit ScenarioReader(const std::string& file) : YamlFile(file) {}

  Suite read(std::string_view yaml) {
    Suite suite{.file = name(), .text = std::string(yaml), .scenarios = {}};
    const YAML::Node root = load(yaml);
    allow_keys(root, {"models", "scenarios"});
    read_models(root);
    member(root, "scenarios");
    std::set<std::string> names;
    for (const YAML::Node& node : list(root, "scenarios")) {
      suite.scenarios.push_back(scenario(node));
      if (!names.insert(suite.scenarios.back().name).second)
        fail(node, "there are two scenarios named '" + suite.scenarios.back().name + "'");
    }
    if (suite.scenarios.empty()) fail(root["scenarios"], "the suite has no scenario");
    return suite;
  }

 private:
  void read_models(const YAML::Node& root) {
    const YAML::Node models = root["models"];
    has_models_ = models.IsDefined();
    if (!has_models_) return;
    if (!models.IsMap()) fail(models, "'models' must be a map of names and dimensions");
    for (const auto& item : models) {
      const std::string& model = item.first.Scalar();
      allow_keys(item.second, kModelKeys);
      for (const auto& dimension : item.second) {
        const std::string& key = dimension.first.Scalar();
        if (key == "source")
          text(item.second, key, "");
        else
          count(item.second, key, 1, 1, kLongest);
      }
      models_.push_back(model);
    }
  }

  Scenario scenario(const YAML::Node& node) const {
    allow_keys(node, kScenarioKeys);
    for (const char* key : {"name", "operator", "gemm", "ranks"}) member(node, key);
    Scenario scenario{.name = text(node, "name", "")};
    if (scenario.name.empty()) fail(node["name"], "a scenario has a name");
    scenario.model = text(node, "model", "");
    if (node["model"] && has_models_) one_of(node, "model", models_);
    if (node["set"]) scenario.set = one_of(node, "set", {"fit", "unseen"});
    Operator& op = scenario.op;
    op.kind = operator_named(text(node, "operator", ""), at(node["operator"]));
    op.ranks = static_cast<int>(count(node, "ranks", 0, 2, kMostRanks));
    op.type = type(node);
    if (node["gather"]) {
      check_gathers_b(op.kind, at(node["gather"]));
      op.gathers_b = one_of(node, "gather", {"a", "b"}) == "b";
    }
    op.load = text(node, "load", plan::kEvenLoad);
    if (node["load"]) check_load(op, at(node["load"]));
    read_sizes(node, op);
    check(op, at(node["gemm"]));
    return scenario;
  }

  /// Of gathered B the file counts the rows of one rank: each has its own.
  void read_sizes(const YAML::Node& node, Operator& op) const {
    const YAML::Node gemm = node["gemm"];
    if (!gemm.IsSequence() || gemm.size() != 3)
      fail(gemm, "'gemm' must be a list of three sizes",
           "[M, N, K], for example [8192, 28672, 8192]");
    std::int64_t* const sizes[] = {&op.m, &op.n, &op.k};
    for (std::size_t i = 0; i < 3; ++i) {
      *sizes[i] = gemm[i].IsScalar() ? parse_count(gemm[i].Scalar()).value_or(0) : 0;
      if (*sizes[i] < 1 || *sizes[i] > kLongest)
        fail(gemm[i], "a size of 'gemm' must be a number from 1 to " + std::to_string(kLongest));
    }
    if (op.gathers_b) op.m *= op.ranks;
  }

  DataType type(const YAML::Node& node) const {
    const std::string word = text(node, "dtype", "bf16");
    const auto type = parse_data_type(word);
    if (!type)
      fail(node["dtype"], "'" + word + "' is not an element type", "for example bf16, fp8_e4m3");
    return *type;
  }

  std::string one_of(const YAML::Node& node, const std::string& key,
                     const std::vector<std::string>& words) const {
    const std::string word = text(node, key, "");
    for (const std::string& known : words)
      if (known == word) return word;
    fail(node[key], "'" + word + "' is not among the values of '" + key + "'",
         suggest(word, words, words.size() < 4 ? "there are: " + joined(words) : ""));
  }

  bool has_models_ = false;
  std::vector<std::string> models_;
};

}  // namespace

std::vector<std::string> shipped_suites() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (!suite_of(file.path).empty()) names.emplace_back(suite_of(file.path));
  return names;
}

Suite read_scenarios(const std::string& name_or_file) {
  const std::string path = std::string(kScenarioFolder) + name_or_file + std::string(kYaml);
  if (const EmbeddedFile* shipped = find_embedded(path)) {
    Suite suite = parse_scenarios(shipped->content, path);
    suite.file = name_or_file;
    return suite;
  }
  const bool is_name = name_or_file.find_first_of("./") == std::string::npos;
  if (is_name && !is_there(name_or_file)) {
    const std::vector<std::string> names = shipped_suites();
    throw Failure("there is no suite and no file '" + name_or_file + "'",
                  SourceLocation{.file = "--suite"},
                  suggest(name_or_file, names, "there is the suite " + names.front()));
  }
  return parse_scenarios(read_file(name_or_file), name_or_file);
}

Suite parse_scenarios(std::string_view yaml, const std::string& file) {
  return ScenarioReader(file).read(yaml);
}

Suite with_ranks(Suite suite, int ranks) {
  for (Scenario& scenario : suite.scenarios) {
    Operator& op = scenario.op;
    if (op.gathers_b) op.m = op.m / op.ranks * ranks;
    op.ranks = ranks;
  }
  suite.text += fmt::format("\n# each scenario by {} GPUs\n", ranks);
  return suite;
}

}  // namespace hemiola::explore
