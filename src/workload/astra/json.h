// JSON members with places and with fractions, for the files of ASTRA-sim.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"

namespace hemiola::workload::astra {

/// A value with its place, and as it is.
struct JsonMember {
  JsonValue value;
  const nlohmann::json& json;

  bool has(const std::string& key) const { return value.has(key); }
  std::optional<JsonMember> member(const std::string& key) const {
    if (!value.has(key)) return std::nullopt;
    return JsonMember{value.at(key), json.at(key)};
  }
  std::int64_t integer(const std::string& key, std::int64_t otherwise, std::int64_t least,
                       std::int64_t most) const {
    return has(key) ? value.integer(key, least, most) : otherwise;
  }
  /// Above 0, or `otherwise` where the key is not there.
  double real(const std::string& key, double otherwise) const {
    const auto found = member(key);
    if (!found) return otherwise;
    const double number = found->json.is_number() ? found->json.get<double>() : 0;
    if (!std::isfinite(number) || number <= 0)
      found->value.fail(fmt::format("'{}' must be a number above 0", key));
    return number;
  }
  std::string one_of(std::initializer_list<std::string_view> words) const {
    const std::string text = value.text();
    std::vector<std::string> known;
    for (const std::string_view word : words) {
      if (word == text) return text;
      known.emplace_back(word);
    }
    value.fail(fmt::format("'{}' is none of {}", text, fmt::join(known, ", ")),
               suggest(text, known));
  }
};

/// The file, which outlives its members.
class JsonText {
 public:
  JsonText(std::string_view text, const std::string& name)
      : file_{text, name}, json_(parse_json(file_)) {}

  JsonMember root() const { return {JsonValue(json_, file_), json_}; }

 private:
  JsonFile file_;
  nlohmann::json json_;
};

}  // namespace hemiola::workload::astra
