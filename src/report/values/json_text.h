// JSON as text, every value written by its kind. Not through a JSON library, because times are
// exact decimals that no double holds. Private to the layer.
#pragma once

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "core/units.h"

namespace hemiola::report {

/// Text that is JSON already.
struct JsonText {
  std::string text;
};
/// A time that stands twice: "NAME_fs": 1, "NAME_ns": 0.000001
struct BothUnits {
  Time time;
};

/// With quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_of(std::string_view text);
std::string json_of(const std::string& text);
std::string json_of(const char* text);
/// The shortest text that reads back as the same double; "null" where JSON has no number for it.
std::string json_of(double number);
std::string json_of(bool truth);
std::string json_of(Time time);  ///< in femtoseconds
std::string json_of(Bytes bytes);
std::string json_of(const JsonText& value);
std::string json_of(std::integral auto number) {
  return std::to_string(number);
}
template <typename Value>
std::string json_of(const std::optional<Value>& value) {
  return value ? json_of(*value) : "null";
}
/// An object of names with their values.
template <typename Value>
std::string json_of(const std::map<std::string, Value>& members);
template <typename Value>
std::string json_of(const std::vector<std::pair<std::string, Value>>& members);

/// An object, member by member in the order of the calls.
class JsonObject {
 public:
  /// {"degree": 4, "tile": 128}
  JsonObject() = default;
  /// Each member on a line of its own, behind `indent`; the brackets two blanks to the left of it.
  explicit JsonObject(const std::string& indent);
  /// Without blanks: {"degree":4,"tile":128}
  static JsonObject compact();

  /// Names and values by turns.
  template <typename Value, typename... More>
  JsonObject& add(std::string_view name, const Value& value, const More&... more) {
    write(name, value);
    if constexpr (sizeof...(more) > 0) add(more...);
    return *this;
  }
  /// What is added next begins a line, behind these blanks.
  JsonObject& on_new_line(std::string_view blanks);
  JsonText json() const;

 private:
  template <typename Value>
  void write(std::string_view name, const Value& value) {
    write_text(name, json_of(value));
  }
  void write(std::string_view name, const BothUnits& value);
  void write_text(std::string_view name, std::string_view value);

  std::string open_, between_ = ", ", colon_ = ": ", close_, next_, text_;
};

/// An object on one line: names and values by turns.
template <typename... Members>
JsonText json_object(const Members&... members) {
  return JsonObject().add(members...).json();
}
/// A file: an object with a member to a line.
template <typename... Members>
std::string json_file(const Members&... members) {
  return JsonObject("  ").add(members...).json().text + "\n";
}
/// An object with what `add(object, item)` adds of each item.
template <typename Items, typename Add>
JsonText json_object_of(const Items& items, const Add& add) {
  JsonObject object;
  for (const auto& item : items) add(object, item);
  return object.json();
}
constexpr auto add_pair = [](JsonObject& object, const auto& one) {
  object.add(one.first, one.second);
};
template <typename Value>
std::string json_of(const std::map<std::string, Value>& members) {
  return json_object_of(members, add_pair).text;
}
template <typename Value>
std::string json_of(const std::vector<std::pair<std::string, Value>>& members) {
  return json_object_of(members, add_pair).text;
}

/// What an element is where no function says it.
struct JsonOf {
  JsonText operator()(const auto& item) const { return {json_of(item)}; }
};
template <typename Items, typename Element = JsonOf>
std::vector<std::string> json_elements(const Items& items, const Element& element) {
  std::vector<std::string> all;
  for (const auto& item : items) all.push_back(element(item).text);
  return all;
}
/// What stands before the first element, between two, and behind the last; "[]" of none.
JsonText json_brackets(const std::vector<std::string>& elements, const std::string& before,
                       const std::string& between, const std::string& behind);

/// All elements on one line, `element(item)` of each.
template <typename Items, typename Element = JsonOf>
JsonText json_array(const Items& items, const Element& element = {},
                    const std::string& between = ", ") {
  return json_brackets(json_elements(items, element), "", between, "");
}
/// Each element begins a line, behind these blanks; the bracket closes behind the last one.
template <typename Items, typename Element>
JsonText json_rows(const Items& items, const std::string& blanks, const Element& element) {
  return json_brackets(json_elements(items, element), "\n" + blanks, ",\n" + blanks, "");
}
/// One element to a line, two blanks behind `indent`, where the closing bracket stands.
template <typename Items, typename Element = JsonOf>
JsonText json_list(const Items& items, const std::string& indent, const Element& element = {}) {
  return json_brackets(json_elements(items, element), "\n" + indent + "  ", ",\n" + indent + "  ",
                       "\n" + indent);
}
/// The same, but for no element, too, the closing bracket has a line of its own.
template <typename Items, typename Element = JsonOf>
JsonText json_lines(const Items& items, const std::string& indent, const Element& element = {}) {
  const JsonText list = json_list(items, indent, element);
  return list.text == "[]" ? JsonText{"[\n" + indent + "]"} : list;
}

}  // namespace hemiola::report
