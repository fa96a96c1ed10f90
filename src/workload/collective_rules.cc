#include "workload/collective_rules.h"

#include "core/text.h"
#include "core/units.h"
#include "study/yaml_file.h"

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
  CollectiveRule rule_of(const YAML::Node& node) const {
    allow_keys(node, {"kind", "ranks", "from", "run", "param"});
    CollectiveRule rule;
    const std::string word = member(node, "kind").Scalar();
    const auto kind = parse_collective(word);
    if (!kind || *kind == Collective::custom || *kind == Collective::send_recv)
      fail(node["kind"], "'" + word + "' is no collective", "for example all-reduce");
    rule.kind = *kind;
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
