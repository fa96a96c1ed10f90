// Time and bytes: the quantities of Hemiola, and their text ("500 ns", "64 MiB").
//
// GB = 10^9, GiB = 2^30. In text a unit is always written out.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

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

/// A number of bytes. Signed, so that differences are ordinary arithmetic.
struct Bytes {
  std::int64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.count - b.count}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t k) { return {a.count * k}; }
};

constexpr Bytes KiB(std::int64_t n) {
  return {n << 10};
}
constexpr Bytes MiB(std::int64_t n) {
  return {n << 20};
}
constexpr Bytes GiB(std::int64_t n) {
  return {n << 30};
}

// Nothing on malformed text, unknown units or overflow; surrounding blanks are allowed, and so is a
// blank between number and unit. A decimal fraction is exact up to the resolution of the type.
std::optional<Time> parse_time(std::string_view text);  ///< fs ps ns us ms s
/// B KB MB GB TB KiB MiB GiB TiB, K M G (binary, as in nccl-tests)
std::optional<Bytes> parse_bytes(std::string_view text);

std::string to_string(Time time);    ///< shortest exact form: "12.8 ps", "500 ns"
std::string to_string(Bytes bytes);  ///< binary units when exact: "64 MiB", else "1000 B"

}  // namespace hemiola
