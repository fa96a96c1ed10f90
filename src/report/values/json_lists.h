// Lists and objects of JSON, made of the text of each element. Private to the layer.
#pragma once

#include <string>
#include <string_view>

#include "core/lists.h"
#include "report/values/numbers.h"

namespace hemiola::report {

/// {"degree": 4}, with `value(...)` of what each name has.
template <typename Members, typename Value>
std::string json_object(const Members& members, const Value& value) {
  return "{" +
         joined(members,
                [&](const auto& member) {
                  return json_string(member.first) + ": " + value(member.second);
                }) +
         "}";
}

/// One element to a line, the brackets around them; nothing between the brackets of none.
template <typename Items, typename Text>
std::string json_list(const Items& items, const std::string& indent, const Text& text,
                      std::string_view brackets = "[]") {
  const std::string lines = joined(items, text, ",\n" + indent + "  ");
  if (lines.empty()) return std::string(brackets);
  return brackets[0] + ("\n" + indent + "  " + lines + "\n" + indent) + brackets[1];
}

/// Elements that are lines: a comma behind all but the last.
template <typename Items, typename Text>
std::string json_lines(const Items& items, const Text& text) {
  const std::string lines = joined(items, text, ",\n");
  return lines.empty() ? lines : lines + "\n";
}

}  // namespace hemiola::report
