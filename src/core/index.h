// Numbers of ranks, steps, wavefronts, ... are signed; containers want theirs unsigned.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hemiola {

/// `i` is not below 0.
constexpr std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace hemiola
