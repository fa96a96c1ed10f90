// For which sizes a proof of one size holds.
#pragma once

#include <string>
#include <vector>

#include "verify/verify.h"

namespace hemiola::verify {

/// Sizes at which a program does the same, operation by operation, with every byte range in the
/// same order as every other: what was proven at one of them holds at all.
struct SizeClass {
  Bytes min{};
  Bytes max{};       ///< legal sizes from `min` to `max`; of one size: both
  std::string why;   ///< why it is this size only; empty where it is a class
  Bytes multiple{};  ///< > 0: of these sizes only the multiples of it
  bool contains(Bytes size) const {
    const bool fits = multiple.count == 0 || size.count % multiple.count == 0;
    return fits && min <= size && size <= max;
  }
  bool open() const { return max.count == INT64_MAX; }
};

/// Of the size that `bound` was bound to. `program` is what it was bound from, `proof` what was
/// proven at that size.
SizeClass size_class(const program::Program& program, const program::Bound& bound,
                     const Proof& proof);

/// Legal sizes beside a class, which are worth a look: the smallest of all, the next below and the
/// next above; those that lie in it are left out.
std::vector<Bytes> sizes_beside(const program::Program& program, const program::Bound& bound,
                                const SizeClass& sizes);

}  // namespace hemiola::verify
