// YAML with places: what the readers of YAML files of this layer share.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola::study {

/// Every member throws Failure with the file and the line of what is wrong.
class YamlFile {
 public:
  explicit YamlFile(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  YAML::Node load(std::string_view text) const;
  SourceLocation at(const YAML::Node& node) const;
  [[noreturn]] void fail(const YAML::Node& node, const std::string& message,
                         const std::string& hint = {}) const;

  /// Failure for what is not a map, a key that is not among `known` (with a suggestion), and one
  /// that stands there twice.
  void allow_keys(const YAML::Node& node, const std::vector<std::string>& known) const;
  /// Failure where it is missing.
  YAML::Node member(const YAML::Node& node, const std::string& key) const;
  /// The items of a member that is a list; none where it is absent or empty.
  std::vector<YAML::Node> list(const YAML::Node& node, const std::string& key) const;
  /// A member that is one value.
  std::string text(const YAML::Node& node, const std::string& key,
                   const std::string& otherwise) const;
  std::int64_t count(const YAML::Node& node, const std::string& key, std::int64_t otherwise,
                     std::int64_t least, std::int64_t most) const;
  /// A member that is a map of names and values, in its order; none where it is absent.
  std::vector<std::pair<std::string, std::string>> pairs(const YAML::Node& node,
                                                         const std::string& key) const;

 private:
  std::string name_;
};

}  // namespace hemiola::study
