#include "study/support/yaml_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/units.h"

namespace hemiola::study {

YAML::Node YamlFile::load(std::string_view text) const {
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::ParserException& problem) {
    throw Failure("this is not YAML: " + problem.msg,
                  {.file = name_, .line = problem.mark.line + 1});
  }
}

SourceLocation YamlFile::at(const YAML::Node& node) const {
  return {.file = name_, .line = node.Mark().line + 1};
}

void YamlFile::fail(const YAML::Node& node, const std::string& message,
                    const std::string& hint) const {
  throw Failure(message, at(node), hint);
}

void YamlFile::allow_keys(const YAML::Node& node, const std::vector<std::string>& known) const {
  if (!node.IsMap()) fail(node, "this must be a map of keys and values");
  std::set<std::string> seen;
  for (const auto& item : node) {
    if (!item.first.IsScalar()) fail(item.first, "a key must be one word");
    const std::string& key = item.first.Scalar();
    if (std::ranges::find(known, key) == known.end())
      fail(item.first, "unknown key '" + key + "'", suggest(key, known));
    if (!seen.insert(key).second) fail(item.first, "the key '" + key + "' stands here twice");
  }
}

YAML::Node YamlFile::member(const YAML::Node& node, const std::string& key) const {
  const YAML::Node value = node[key];
  if (!value) fail(node, "the key '" + key + "' is missing");
  return value;
}

std::vector<YAML::Node> YamlFile::list(const YAML::Node& node, const std::string& key) const {
  const YAML::Node value = node[key];
  if (value && !value.IsNull() && !value.IsSequence()) fail(value, "'" + key + "' must be a list");
  std::vector<YAML::Node> items;
  for (const auto& item : value) items.push_back(item);
  return items;
}

std::string YamlFile::text(const YAML::Node& node, const std::string& key,
                           const std::string& otherwise) const {
  const YAML::Node value = node[key];
  if (value && !value.IsScalar()) fail(value, "'" + key + "' must be one value");
  return value ? value.Scalar() : otherwise;
}

std::int64_t YamlFile::count(const YAML::Node& node, const std::string& key, std::int64_t otherwise,
                             std::int64_t least, std::int64_t most) const {
  if (!node[key]) return otherwise;
  const auto number = parse_count(text(node, key, ""));
  if (!number || *number < least || *number > most)
    fail(node[key], fmt::format("'{}' must be a number from {} to {}", key, least, most));
  return *number;
}

std::vector<std::pair<std::string, std::string>> YamlFile::pairs(const YAML::Node& node,
                                                                 const std::string& key) const {
  std::vector<std::pair<std::string, std::string>> read;
  const YAML::Node map = node[key];
  if (map && !map.IsMap()) fail(map, "'" + key + "' must be a map of keys and values");
  for (const auto& item : map) {
    if (!item.first.IsScalar()) fail(item.first, "a key must be one word");
    const std::string& name = item.first.Scalar();
    if (!item.second.IsScalar()) fail(item.second, "'" + name + "' must be one value");
    read.emplace_back(name, item.second.Scalar());
  }
  return read;
}

}  // namespace hemiola::study
