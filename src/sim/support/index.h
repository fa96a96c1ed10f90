// Numbers of ranks, servers, wavefronts, ... are signed; containers want theirs unsigned (`index`),
// and maps want two of them as one.
#pragma once

#include <cstdint>

#include "core/index.h"

namespace hemiola::sim {

/// Of an ordered pair. Neither is below 0: then the key is not, either, as a signed number.
constexpr std::uint64_t pair_key(std::int32_t first, std::int32_t second) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) << 32 |
         static_cast<std::uint32_t>(second);
}
constexpr std::int32_t first_of(std::uint64_t key) {
  return static_cast<std::int32_t>(key >> 32);
}
constexpr std::int32_t second_of(std::uint64_t key) {
  return static_cast<std::int32_t>(key);
}

}  // namespace hemiola::sim
