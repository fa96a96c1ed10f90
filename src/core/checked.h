// Numbers of files, and JSON that is no JSON: read by one checked function each, so that no file
// makes a number wrap around or an exception of a library end a run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostics.h"

namespace hemiola {

/// A whole number in [least, most]; nothing for any other value of JSON.
template <typename Json>
std::optional<std::int64_t> whole_number(const Json& value, std::int64_t least = INT64_MIN,
                                         std::int64_t most = INT64_MAX) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.template get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX))
    return std::nullopt;
  const auto number = value.template get<std::int64_t>();
  return number < least || number > most ? std::nullopt : std::optional(number);
}

/// All of a text as a whole number: "-12"; nothing for "+1", " 1", "1.0", "", or one beyond 64
/// bits.
std::optional<std::int64_t> whole_number_in(std::string_view text);
/// All of a text as a number that is finite: "0.5", "2e12"; nothing for "nan", "1e400", "5x", "".
std::optional<double> finite_number(std::string_view text);

/// Why whole[begin, end) is no JSON, with line and column in the file `name`; nothing if it is.
/// A number beyond what a double holds, such as 1e400, is none.
std::optional<Failure> json_failure(const std::string& name, std::string_view whole,
                                    std::size_t begin, std::size_t end);

}  // namespace hemiola
