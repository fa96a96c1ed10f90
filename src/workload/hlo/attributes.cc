#include "workload/hlo/attributes.h"

#include <nlohmann/json.hpp>
#include "core/checked.h"
#include "core/lists.h"

namespace hemiola::workload::hlo {
namespace {

bool is_in_brackets(std::string_view text) {
  return text.size() >= 2 && ((text.front() == '{' && text.back() == '}') ||
                              (text.front() == '[' && text.back() == ']') ||
                              (text.front() == '(' && text.back() == ')'));
}

/// The place behind the string that begins at `at`.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote; ++at)
    if (text[at] == '\\') ++at;
  return at + 1;
}

/// Where the value that begins at `at` ends: at one of `ends` outside of brackets and strings.
std::size_t end_of_value(std::string_view text, std::size_t at, std::string_view ends) {
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = behind_string(text, at);
      continue;
    }
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (depth == 0 && ends.find(c) != std::string_view::npos) return at;
    ++at;
  }
  return text.size();
}

}  // namespace

std::optional<std::int64_t> integer_of(std::string_view text) {
  return whole_number_in(trimmed(text));
}

std::vector<std::string_view> items_of(std::string_view text) {
  text = trimmed(text);
  if (is_in_brackets(text)) text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> items;
  for (std::size_t begin = 0;;) {
    const std::size_t end = end_of_value(text, begin, ",");
    const std::string_view item = trimmed(text.substr(begin, end - begin));
    const bool is_last = end == text.size();
    if (!is_last || !item.empty() || !items.empty()) items.push_back(item);
    if (is_last) return items;
    begin = end + 1;
  }
}

std::vector<std::int64_t> integers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view item : items_of(text)) {
    const auto number = integer_of(item);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

std::string_view field_of(std::string_view text, std::string_view name) {
  text = trimmed(text);
  if (is_in_brackets(text)) text = text.substr(1, text.size() - 2);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n,", at);
    if (begin == std::string_view::npos) break;
    const std::size_t equals = text.find('=', begin);
    if (equals == std::string_view::npos) break;
    const std::size_t end = end_of_value(text, equals + 1, ", \t\r\n");
    if (trimmed(text.substr(begin, equals - begin)) == name)
      return text.substr(equals + 1, end - equals - 1);
    at = end;
  }
  return {};
}

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
      text.back() == text.front())
    return text.substr(1, text.size() - 2);
  return text;
}

std::vector<std::int64_t> dimensions_of(const Module& module, const Instruction& instruction,
                                        std::string_view name) {
  return integers_in(module.attribute(instruction, name));
}

nlohmann::json backend_config(const Module& module, const Instruction& instruction) {
  const std::string_view value = module.attribute(instruction, "backend_config");
  if (value.empty()) return nullptr;
  nlohmann::json parsed = nlohmann::json::parse(value, nullptr, false);
  // Older backends write it as a string, whose escapes are those of JSON's.
  if (parsed.is_string())
    parsed = nlohmann::json::parse(parsed.get_ref<const std::string&>(), nullptr, false);
  return parsed.is_object() ? parsed : nlohmann::json();
}

std::optional<std::int64_t> number_of(const nlohmann::json& value) {
  if (value.is_number()) return whole_number(value);
  if (value.is_string()) return integer_of(value.get_ref<const std::string&>());
  return std::nullopt;
}

}  // namespace hemiola::workload::hlo
