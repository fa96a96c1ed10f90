// JSON values that know where they stand, for errors with line and pointer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"

namespace hemiola {

/// The text and name of the file that is being read; both outlive every JsonValue of it.
struct JsonFile {
  std::string_view text;
  std::string name;
};

/// Byte offset of the value at a JSON pointer in well-formed JSON; npos if it is not there.
std::size_t find_pointer(std::string_view json, std::string_view pointer);

/// Parses a file; Failure with line and column for a syntax error, or for a key that stands twice
/// in one object.
nlohmann::json parse_json(const JsonFile& file);

/// A value of a parsed file. Every accessor throws Failure at the value's place where what is asked
/// for is missing, has the wrong type or is out of range.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& value, const JsonFile& file, std::string pointer = {})
      : value_(&value), file_(&file), pointer_(std::move(pointer)) {}

  /// Failure for a value that is not an object, or for a key that is not among `known` (with a
  /// suggestion).
  void allow_keys(std::initializer_list<std::string_view> known) const;
  void allow_keys(std::span<const std::string> known) const;

  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;  ///< of an object, sorted
  bool is_text() const { return value_->is_string(); }
  JsonValue at(std::string_view key) const;                   ///< a member
  std::optional<JsonValue> find(std::string_view key) const;  ///< a member that may be absent
  std::vector<JsonValue> items() const;                       ///< the elements of an array
  std::vector<JsonValue> items(
      std::string_view key) const;  ///< of a member; none where it is absent

  std::string text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;
  std::uint64_t unsigned_integer() const;
  double number() const;
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const {
    return at(key).integer(least, most);
  }
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least,
                          std::int64_t most) const {
    return has(key) ? integer(key, least, most) : otherwise;
  }

  const nlohmann::json& json() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  SourceLocation where() const;  ///< with the line, which takes a search through the text
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;

 private:
  const nlohmann::json* value_;
  const JsonFile* file_;
  std::string pointer_;
};

/// A file that was read, which outlives its values; so does `text`.
class JsonText {
 public:
  JsonText(std::string_view text, const std::string& name)
      : file_{text, name}, json_(parse_json(file_)) {}
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  JsonValue root() const { return {json_, file_}; }

 private:
  JsonFile file_;
  nlohmann::json json_;
};

}  // namespace hemiola
