// What a kernel's pointers point into. Private to readback/.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/readback/kernel.h"

namespace hemiola::compile::readback {

/// What a pointer of the kernel points into.
struct Memory {
  enum class Kind : std::uint8_t {
    tensor,
    rows,
    turns,
    moves,
    table,
    signals,
    addresses,
    counters,
    shares,
    stores
  } kind;
  std::int32_t tensor = 0;
  int rank = 0;
  const std::vector<std::int64_t>* numbers = nullptr;  ///< of tables
  std::int32_t store = -1;                             ///< of tensors: Region::store

  bool counts() const { return kind == Kind::counters || kind == Kind::shares; }
  /// KernelEvent::number of a count at `base`.
  std::int64_t part(std::int64_t base) const {
    return base + (kind == Kind::shares ? kFirstShares : 0);
  }
};

}  // namespace hemiola::compile::readback
