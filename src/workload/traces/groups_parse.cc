// The two texts that say which ranks a process group has.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/checked.h"
#include "core/json.h"
#include "core/text.h"
#include "workload/traces/groups.h"

namespace hemiola::workload {
namespace {

using GroupJson = nlohmann::json;

std::optional<int> rank_of_json(const GroupJson& value) {
  constexpr std::int64_t kMost = 1 << 24;  // more than any machine has
  const std::optional<std::int64_t> rank = whole_number(value, -kMost, kMost);
  return rank ? std::optional(static_cast<int>(*rank)) : std::nullopt;
}

std::optional<std::vector<int>> ranks_of_json(const GroupJson& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<int> ranks;
  for (const GroupJson& one : list) {
    const std::optional<int> rank = rank_of_json(one);
    if (!rank) return std::nullopt;
    ranks.push_back(*rank);
  }
  return ranks;
}

/// Ranks, groups of ranks, or "all".
bool set_ranks(ProcessGroup& group, const GroupJson& value) {
  if (value.is_string()) return value.get<std::string>() == "all";
  if (const auto ranks = ranks_of_json(value); ranks && !ranks->empty()) {
    group.ranks = *ranks;
    return true;
  }
  if (!value.is_array()) return false;
  for (const GroupJson& one : value) {
    const auto ranks = ranks_of_json(one);
    if (!ranks || ranks->empty()) return false;
    group.parts.push_back(*ranks);
  }
  return !value.empty();
}

bool is_before_group(const ProcessGroup& a, const ProcessGroup& b) {
  const auto one = whole_number_in(a.name), other = whole_number_in(b.name);
  if (one && other) return *one < *other;
  if (one.has_value() != other.has_value()) return one.has_value();
  return a.name < b.name;
}

std::optional<ProcessGroup> group_of_json(const GroupJson& value) {
  if (!value.is_object()) return std::nullopt;
  const auto name = value.find("pg_name");
  const auto ranks = value.find("ranks");
  if (name == value.end() || !name->is_string() || ranks == value.end()) return std::nullopt;
  std::optional<std::vector<int>> list = ranks_of_json(*ranks);
  if (!list) return std::nullopt;
  ProcessGroup group{name->get<std::string>(), std::move(*list)};
  for (const char* key : {"group_size", "pg_size"}) {
    const auto size = value.find(key);
    if (size != value.end()) group.size = rank_of_json(*size).value_or(0);
  }
  const auto alias = value.find("backend_id");
  if (alias != value.end() && alias->is_number_integer()) group.alias = alias->dump();
  return group;
}

/// The list of groups that a value is, or that a text in it is. An empty list says nothing.
std::optional<std::vector<ProcessGroup>> groups_in(const GroupJson& value, int deepest) {
  if (deepest == 0) return std::nullopt;
  if (value.is_string()) {
    const GroupJson inner = GroupJson::parse(value.get_ref<const std::string&>(), nullptr, false);
    return inner.is_discarded() ? std::nullopt : groups_in(inner, deepest - 1);
  }
  if (!value.is_array() || value.empty()) return std::nullopt;
  std::vector<ProcessGroup> groups;
  for (const GroupJson& one : value)
    if (std::optional<ProcessGroup> group = group_of_json(one))
      groups.push_back(std::move(*group));
    else if (auto inner = groups_in(one, deepest - 1))
      return inner;
    else if (one.is_object())
      return std::nullopt;
  return groups.empty() ? std::nullopt : std::optional(std::move(groups));
}

}  // namespace

std::optional<std::vector<ProcessGroup>> parse_group_file(std::string_view text) {
  const GroupJson json = GroupJson::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  std::vector<ProcessGroup> groups;
  for (const auto& [name, list] : json.items()) {
    ProcessGroup& group = groups.emplace_back(ProcessGroup{.name = name, .ranks = {}});
    if (!set_ranks(group, list)) return std::nullopt;
  }
  std::ranges::stable_sort(groups, is_before_group);
  return groups;
}

std::vector<ProcessGroup> read_group_file(const std::string& path) {
  const std::string text = read_file(path);
  parse_json({text, path});  // for the place of what is no JSON, and of names that stand twice
  std::optional<std::vector<ProcessGroup>> groups = parse_group_file(text);
  if (!groups)
    throw Failure(
        "is no list of process groups", {.file = path},
        R"(it says which ranks each group, or the group of a stream, has: {"1": [0, 1], "stream 20": "all"})");
  return std::move(*groups);
}

std::optional<std::vector<ProcessGroup>> parse_process_groups(std::string_view text) {
  constexpr int kDeepest = 4;  // a text in a list in a text
  if (const GroupJson json = GroupJson::parse(text, nullptr, false); !json.is_discarded())
    return groups_in(json, kDeepest);
  // A list of Python, whose texts have other quotes.
  const std::size_t begin = text.find("[{"), end = text.rfind("}]");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    return std::nullopt;
  const std::string_view list = text.substr(begin, end + 2 - begin);
  if (const GroupJson json = GroupJson::parse(list, nullptr, false); !json.is_discarded())
    return groups_in(json, kDeepest);
  const GroupJson json =
      GroupJson::parse("\"" + std::string(list) + "\"", nullptr, false);  // its quotes are escaped
  return json.is_discarded() ? std::nullopt : groups_in(json, kDeepest);
}

}  // namespace hemiola::workload
