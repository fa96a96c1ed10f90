// Numbers of ranks, steps, wavefronts, ... are signed, and so are values of enumerations;
// containers want theirs unsigned.
#pragma once

#include <cstddef>
#include <type_traits>

namespace hemiola {

/// `i` is a whole number or a value of an enumeration, and not below 0.
template <typename T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) constexpr std::size_t index(T i) {
  return static_cast<std::size_t>(i);
}

}  // namespace hemiola
