// Affine expressions: how a compact program says "the chunk of the rank to my left in step i".
#pragma once

#include <array>
#include <cstdint>

namespace hemiola {

/// The variables that an expression may use.
struct Indices {
  std::int64_t rank = 0;
  std::array<std::int64_t, 2> loop{};  ///< counters of the enclosing loops, outermost first
};

/// value = ((constant + rank * r + loop[0] * i + loop[1] * j) mod modulus) * scale + offset, with a
/// mathematical (never negative) mod that is left out when modulus is 0.
struct Affine {
  std::int64_t constant = 0;
  std::int64_t rank = 0;
  std::array<std::int64_t, 2> loop{};
  std::int64_t modulus = 0;
  std::int64_t scale = 1;
  std::int64_t offset = 0;

  constexpr std::int64_t operator()(const Indices& at) const {
    std::int64_t value = constant + rank * at.rank + loop[0] * at.loop[0] + loop[1] * at.loop[1];
    if (modulus > 0) {
      value %= modulus;
      if (value < 0) value += modulus;
    }
    return value * scale + offset;
  }
  constexpr bool is_constant() const { return rank == 0 && loop[0] == 0 && loop[1] == 0; }
  bool operator==(const Affine&) const = default;
};

constexpr Affine constant(std::int64_t value) {
  return {.constant = value};
}
/// (rank + distance) mod ranks
constexpr Affine neighbour(std::int64_t distance, std::int64_t ranks) {
  return {.constant = distance, .rank = 1, .modulus = ranks};
}
constexpr Affine own_rank() {
  return {.rank = 1};
}

}  // namespace hemiola
