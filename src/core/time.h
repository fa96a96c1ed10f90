// Simulated time: an integer number of femtoseconds.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace hemiola {

/// A point in time or a duration, in femtoseconds. int64 holds 9,223 s, which bounds every run.
/// No floating point ever decides when something happens; `ns()` and `us()` are for printing only.
struct Time {
  std::int64_t fs = 0;

  static constexpr Time max() { return {std::numeric_limits<std::int64_t>::max()}; }
  static constexpr Time from_ns(std::int64_t ns) { return {ns * 1'000'000}; }
  static constexpr Time from_us(std::int64_t us) { return {us * 1'000'000'000}; }
  static constexpr Time from_ps(std::int64_t ps) { return {ps * 1'000}; }

  constexpr double ns() const { return static_cast<double>(fs) / 1e6; }
  constexpr double us() const { return static_cast<double>(fs) / 1e9; }

  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time& operator+=(Time other) {
    fs += other.fs;
    return *this;
  }
  constexpr Time& operator-=(Time other) {
    fs -= other.fs;
    return *this;
  }
  friend constexpr Time operator+(Time a, Time b) { return {a.fs + b.fs}; }
  friend constexpr Time operator-(Time a, Time b) { return {a.fs - b.fs}; }
  friend constexpr Time operator*(Time a, std::int64_t k) { return {a.fs * k}; }
  friend constexpr Time operator*(std::int64_t k, Time a) { return {a.fs * k}; }
};

}  // namespace hemiola
