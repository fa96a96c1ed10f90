// The size of a matrix product.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "hemiola/types.h"

namespace hemiola::machine {

/// C[b] = A[b] B[b] (+ C[b]) for b in [0, batch): A is m x k, B is k x n, C is m x n elements.
struct GemmShape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  DataType type =
      DataType::bfloat16;  ///< of A and B; float32 means TF32 where there is such a unit
  std::optional<DataType> output = {};  ///< of C; that of A and B if none
  bool accumulate = false;              ///< C is read too
  auto operator<=>(const GemmShape&) const = default;
};

}  // namespace hemiola::machine
