#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "compile/rules/roles.h"
#include "core/diagnostics.h"
#include "core/text.h"

namespace hemiola::compile::rules {
namespace {

[[noreturn]] void refuse(const std::string& file, const YAML::Mark& mark, std::string what,
                         std::string hint = {}) {
  throw Failure(
      std::move(what),
      {.file = file, .line = std::max(0, mark.line) + 1, .column = std::max(0, mark.column) + 1},
      std::move(hint));
}

int count_in(const std::string& file, const YAML::Node& node) {
  try {
    const int count = node.as<int>();
    if (count > 0 && count <= 64) return count;
  } catch (const YAML::Exception&) {
  }
  refuse(file, node.Mark(), "this is no number from 1 to 64");
}

}  // namespace

Protocol read_protocol(const std::string& file, const std::vector<std::string>& parameters) {
  Protocol made;
  if (file.empty()) return made;
  YAML::Node root;
  try {
    root = YAML::Load(read_file(file));
  } catch (const YAML::Exception& error) {
    refuse(file, error.mark, "not YAML: " + error.msg);
  }
  if (!root.IsMap()) refuse(file, root.Mark(), "a protocol is a map of keys and values");
  for (const auto& pair : root) {
    const std::string key = pair.first.as<std::string>();
    const YAML::Node value = pair.second;
    const auto count = std::map<std::string, int*>{
        {"programs", &made.programs}, {"residents", &made.residents}, {"calls", &made.calls}};
    if (const auto known = count.find(key); known != count.end()) {
      *known->second = count_in(file, value);
    } else if (key == "ranks" && value.IsSequence()) {
      for (const YAML::Node& one : value) made.ranks.push_back(count_in(file, one));
    } else if (key == "ranks") {
      made.ranks = {count_in(file, value)};
    } else if (key == "between") {
      made.is_said = true;
      const std::string what = value.as<std::string>();
      if (what != "nothing" && what != "meet")
        refuse(file, value.Mark(), fmt::format("between calls is '{}'", what), "nothing or meet");
      made.meets_between = what == "meet";
    } else if (key == "parameters") {
      for (const auto& one : value) {
        const std::string name = one.first.as<std::string>();
        if (std::ranges::find(parameters, name) == parameters.end())
          refuse(file, one.first.Mark(), fmt::format("the kernel has no parameter '{}'", name),
                 suggest(name, parameters));
        made.parameters[name] = one.second.as<std::string>();
      }
    } else {
      refuse(file, pair.first.Mark(), fmt::format("unknown key '{}'", key),
             suggest(key, {"ranks", "programs", "residents", "calls", "between", "parameters"}));
    }
  }
  return made;
}

}  // namespace hemiola::compile::rules
