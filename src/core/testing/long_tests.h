// How much tests do that can do more: some of their cases in tools/test, all of them in
// tools/test long.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

namespace hemiola {

/// Whether all cases are asked for: HEMIOLA_LONG_TESTS=1 in the environment, which tools/test long
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

/// Whether a real file of ../shared/inputs is the same algorithm as another one there, but for the
/// header's protocol or range of sizes, or with twice the channels, so that a usual run leaves it
/// out. Smaller files have the protocols, too.
inline bool left_to_long_tests(std::string_view file_name) {
  constexpr std::string_view again[] = {
      "rccl_all-reduce-ring-ll.xml.gz",     // as rccl_all-reduce-ring-simple.xml.gz
      "rccl_all-reduce-ring-ll128.xml.gz",  // the same
      "ndv4_ag-4m.xml",                     // as ndv4_ag-1m.xml
      "ndv4_ag-8m.xml",                     // the same
      "ndv4_r48ll128.xml",                  // as ndv4_r48ll.xml
      "ndv4_ap4ll.xml",                     // as ndv4_ap2ll.xml, with twice the channels
  };
  return !long_tests() &&
         std::find(std::begin(again), std::end(again), file_name) != std::end(again);
}

}  // namespace hemiola
