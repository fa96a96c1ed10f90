// Names of enumerations whose values count from 0, as arrays in their order.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace hemiola {

/// "" of a value that has none, such as the number of them.
template <typename Value, std::size_t count>
constexpr std::string_view name_in(const std::array<std::string_view, count>& names, Value value) {
  const auto at = static_cast<std::size_t>(value);
  return at < count ? names[at] : std::string_view();
}

/// The other way round; nothing for a name that is none.
template <typename Value, std::size_t count>
std::optional<Value> value_named(const std::array<std::string_view, count>& names,
                                 std::string_view name) {
  for (std::size_t i = 0; i < count; ++i)
    if (names[i] == name) return static_cast<Value>(i);
  return std::nullopt;
}

}  // namespace hemiola
