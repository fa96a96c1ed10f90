// Traces in JSON: long files, of which texts and numbers are looked at where they stand.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hemiola::workload {

/// Nanoseconds of a number of microseconds, e.g. "4458677009853.422"; nothing for what is none.
std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);
/// Of a number or a text that begins with one.
std::optional<std::int64_t> integer_of_token(std::string_view token);

using TraceJson = simdjson::ondemand::value;
/// Empty for what is no text.
std::string_view json_text(TraceJson value);
/// As it is written; empty for what is no list.
std::string_view json_list(TraceJson value);
/// Of a number or a text that begins with one.
std::optional<std::int64_t> json_integer(TraceJson value);

/// A file with an object, and what reads it: texts refer to both.
class JsonStream {
 public:
  explicit JsonStream(std::string content);

  /// Calls `read(key, value)` for each field. Failure at the first place where the file is no JSON,
  /// or, if it is, where something else was expected.
  template <typename Read>
  void each_field(const std::string& file, const Read& read) {
    simdjson::ondemand::document document;
    bool is_open = false;
    try {
      document = parser_.iterate(content_.data(), content_.size(), content_.capacity());
      is_open = true;
      for (auto field : document.get_object()) read(field.unescaped_key().value(), field.value());
    } catch (const simdjson::simdjson_error&) {
      const char* at = nullptr;
      if (!is_open || document.current_location().get(at) != simdjson::SUCCESS) at = nullptr;
      fail(file, at);
    }
  }

 private:
  /// `place`: null if it is not known.
  [[noreturn]] void fail(const std::string& file, const char* place) const;

  std::string content_;
  simdjson::ondemand::parser parser_;
};

}  // namespace hemiola::workload
