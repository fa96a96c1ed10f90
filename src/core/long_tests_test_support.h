// How much tests do that can do more: some of their cases in tools/test, all of them in
// tools/test_long.
#pragma once

#include <cstdlib>
#include <string_view>

namespace hemiola {

/// Whether all cases are asked for: HEMIOLA_LONG_TESTS=1 in the environment, which tools/test_long
/// sets.
inline bool long_tests() {
  const char* value = std::getenv("HEMIOLA_LONG_TESTS");
  return value != nullptr && std::string_view(value) == "1";
}

/// `some` in a usual run, `all` in a long one. What is left out of the usual run has to be such
/// that each kind of mistake is still found by what is left in.
template <typename T>
T some_or_all(T some, T all) {
  return long_tests() ? all : some;
}

}  // namespace hemiola
