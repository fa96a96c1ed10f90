#include "workload/costs/collective_rules.h"

#include "core/text.h"
#include "core/units.h"
#include "study/support/yaml_file.h"

namespace hemiola::workload {
namespace {

class RulesFile : study::YamlFile {
 public:
  explicit RulesFile(const std::string& file) : YamlFile(file) {}

  std::vector<CollectiveRule> read(std::string_view content) const {
    const YAML::Node root = load(content);
    allow_keys(root, {"collectives"});
    const YAML::Node list = member(root, "collectives");
    if (!list.IsSequence() || list.size() == 0)
      fail(list, "'collectives' is a list of at least one rule",
           "for example - {kind: all-reduce, ranks: 8, run: all-reduce/ring}");
    std::vector<CollectiveRule> rules;
    for (const YAML::Node& one : list) rules.push_back(rule_of(one));
    return rules;
  }

 private:
  /// A product and its collective in one launch.
  void fused(const YAML::Node& node, CollectiveRule& rule) const {
    if (node["kind"] || node["from"])
      fail(node["fuse"], "'fuse' says the collective, and a product its size",
           "leave out 'kind' and 'from'");
    rule.is_fused = true;
    const std::string word = node["fuse"].Scalar();
    if (word == "ag-gemm")
      rule.kind = Collective::all_gather;
    else if (word == "gemm-rs")
      rule.kind = Collective::reduce_scatter;
    else if (word == "gemm-ar")
      rule.kind = Collective::all_reduce;
    else
      fail(node["fuse"], "'" + word + "' is no product with its collective",
           "ag-gemm, gemm-rs or gemm-ar");
    const YAML::Node sizes = node["gemm"];
    if (!sizes) {
      if (is_file(member(node, "run").Scalar()))
        fail(node["run"], "a plan is of one product, and the rule does not say which",
             "add gemm: [M, N, K], as 'explore --gemm' has it");
      return;
    }
    if (!sizes.IsSequence() || sizes.size() != 3)
      fail(sizes, "'gemm' is a list of three sizes", "gemm: [M, N, K], as 'explore --gemm' has it");
    const auto size = [&](std::size_t i) {
      const auto value = parse_count(sizes[i].Scalar());
      if (!value || *value < 1) fail(sizes[i], "is no size of a matrix", "for example 8192");
      return *value;
    };
    rule.product = machine::GemmShape{.m = size(0), .n = size(1), .k = size(2)};
  }

  CollectiveRule rule_of(const YAML::Node& node) const {
    allow_keys(node, {"kind", "fuse", "gemm", "ranks", "from", "run", "param"});
    CollectiveRule rule;
    if (node["fuse"]) {
      fused(node, rule);
    } else {
      const std::string word = member(node, "kind").Scalar();
      const auto kind = parse_collective(word);
      if (!kind || *kind == Collective::custom || *kind == Collective::send_recv)
        fail(node["kind"], "'" + word + "' is no collective", "for example all-reduce");
      if (node["gemm"]) fail(node["gemm"], "'gemm' goes with 'fuse'");
      rule.kind = *kind;
    }
    rule.ranks = static_cast<int>(count(node, "ranks", 0, 2, 1 << 20));
    if (node["from"]) {
      const auto size = parse_bytes(node["from"].Scalar());
      if (!size) fail(node["from"], "'from' is a size", "for example 1MiB");
      rule.least = size->count;
    }
    rule.program = member(node, "run").Scalar();
    rule.parameters = pairs(node, "param");
    return rule;
  }
};

}  // namespace

std::vector<CollectiveRule> parse_collective_rules(std::string_view text, const std::string& file) {
  return RulesFile(file).read(text);
}
std::vector<CollectiveRule> read_collective_rules(const std::string& file) {
  return parse_collective_rules(read_file(file), file);
}

}  // namespace hemiola::workload
