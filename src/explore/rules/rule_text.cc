// Rules as text.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "core/checked.h"
#include "core/lists.h"
#include "explore/rules/rules.h"

namespace hemiola::explore {
namespace {

class RuleReader {
 public:
  RuleReader(std::string_view text, const std::string& file)
      : stream_{std::string(text)}, file_(file) {}

  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    throw Failure(what, where(), hint);
  }
  SourceLocation where() const { return {.file = file_, .line = line_}; }

  /// The next line that says something, without its comment; false at the end.
  bool next(std::string& said) {
    while (std::getline(stream_, said)) {
      ++line_;
      said = said.substr(0, said.find('#'));
      said = trimmed(said);
      if (!said.empty()) return true;
    }
    return false;
  }

  double number(const std::string& word) const {
    if (const std::optional<double> value = finite_number(word)) return *value;
    fail("'" + word + "' is not a number");
  }

 private:
  std::istringstream stream_;
  std::string file_;
  int line_ = 0;
};

Feature feature_named(const std::string& word, const RuleReader& reader) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kFeatures; ++i) {
    names.emplace_back(name_of(static_cast<Feature>(i)));
    if (names.back() == word) return static_cast<Feature>(i);
  }
  reader.fail(fmt::format("'{}' is not a feature", word),
              suggest(word, names, "there are: " + joined(names)));
}

}  // namespace

std::string Pick::text() const {
  return degree > 1 ? fmt::format("{}, {} steps", family.text(), degree) : family.text();
}

Rule Rule::parse(std::string_view text, const std::string& file) {
  RuleReader reader(text, file);
  Rule rule = analytic();
  rule.name_.clear();
  bool has_factors = false;
  std::string line;
  if (!reader.next(line) || line != kHeading)
    reader.fail("this is not a rule", fmt::format("its first line is '{}'", kHeading));
  while (reader.next(line)) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    Node node;
    if (verb == "name") {
      words >> rule.name_;
      continue;
    }
    if (verb == "factor") {
      const std::size_t last = line.rfind(' ');
      const std::size_t begin = line.find_first_not_of(' ', verb.size());
      if (last == std::string::npos || last <= begin)
        reader.fail("a factor is 'factor FAMILY NUMBER'", "factor serial 1.1");
      const Family family = parse_family(line.substr(begin, last - begin), reader.where());
      const double factor = reader.number(line.substr(last + 1));
      if (!(factor > 0)) reader.fail("a factor is above zero");
      const auto at = std::ranges::find(families(), family);
      rule.factors_[index(at - families().begin())] = factor;
      has_factors = true;
      continue;
    }
    if (verb == "pick") {
      std::string what;
      std::getline(words >> std::ws, what);
      const std::size_t comma = what.find(',');
      node.pick.family = parse_family(what.substr(0, comma), reader.where());
      if (comma != std::string::npos) {
        std::istringstream rest(what.substr(comma + 1));
        std::string steps, unit;
        rest >> steps >> unit;
        const double degree = reader.number(steps);
        if (!(degree >= 1 && degree <= 1e6) || unit != "steps")
          reader.fail("a number of steps is missing", "pick 1D hetero fused, 4 steps");
        node.pick.degree = static_cast<std::int64_t>(degree);
      }
    } else if (verb == "if") {
      std::string feature, less, threshold, then, below, otherwise, above;
      words >> feature >> less >> threshold >> then >> below >> otherwise >> above;
      if (less != "<" || then != "then" || otherwise != "else")
        reader.fail("a node is 'if FEATURE < NUMBER then NODE else NODE'");
      node.feature = feature_named(feature, reader);
      node.threshold = reader.number(threshold);
      const auto later = [&](const std::string& word) {
        const double number = reader.number(word);
        if (!(number > static_cast<double>(rule.nodes_.size()) && number <= 1e6))
          reader.fail(fmt::format("node {} does not come after node {}", word, rule.nodes_.size()),
                      "nodes are counted from 0 in the order of their lines");
        return static_cast<std::int32_t>(number);
      };
      node.below = later(below);
      node.above = later(above);
    } else {
      reader.fail(fmt::format("'{}' is neither name, if, pick nor factor", verb));
    }
    rule.nodes_.push_back(node);
  }
  if (rule.nodes_.empty() && !has_factors) reader.fail("the rule has no node");
  if (!rule.nodes_.empty() && has_factors) reader.fail("a tree has no factors");
  for (const Node& node : rule.nodes_) {
    if (node.feature == Feature::count) continue;
    const std::int32_t last = std::max(node.below, node.above);
    if (last >= std::ssize(rule.nodes_)) reader.fail(fmt::format("there is no node {}", last));
  }
  return rule;
}

}  // namespace hemiola::explore
