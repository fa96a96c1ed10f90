// Bytes, rates and frequencies, and the text forms of all quantities ("450 GB/s", "64 MiB").
//
// GB = 10^9, GiB = 2^30, Gb/s = 10^9 bits per second. A unit is always written out: a bare number
// is accepted only for counts.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace hemiola {

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

/// Bytes per second; `ideal()` (written "inf") costs nothing: every transfer takes the 1 fs
/// minimum.
/// 0 means ideal
struct Rate {
  std::int64_t bytes_per_second = 0;

  static constexpr Rate ideal() { return {0}; }
  constexpr bool is_ideal() const { return bytes_per_second == 0; }

  /// Time to serve `bytes`, rounded to the nearest femtosecond and at least 1 fs, because every hop
  /// takes strictly positive time (docs/model.md). At 10 TB/s 128 B take 12,800 fs, so the rounding
  /// error is below 4e-5.
  constexpr Time time_for(std::int64_t bytes) const {
    if (bytes_per_second <= 0 || bytes <= 0) return {1};
    const __int128 numerator =
        static_cast<__int128>(bytes) * 1'000'000'000'000'000 + bytes_per_second / 2;
    const auto fs = static_cast<std::int64_t>(numerator / bytes_per_second);
    return {fs > 0 ? fs : 1};
  }

  constexpr auto operator<=>(const Rate&) const = default;
};

/// Cycles per second.
struct Frequency {
  std::int64_t hertz = 0;
  constexpr auto operator<=>(const Frequency&) const = default;
  constexpr Time period() const {
    return {hertz > 0 ? (1'000'000'000'000'000 + hertz / 2) / hertz : 1};
  }
};

// Parsing: nothing on malformed text, unknown units or overflow; surrounding blanks are allowed,
// and so is a blank between number and unit. A decimal fraction is exact up to the resolution of
// the type.
std::optional<Time> parse_time(std::string_view text);  ///< fs ps ns us ms s
/// B KB MB GB TB KiB MiB GiB TiB, K M G (binary, as in nccl-tests)
std::optional<Bytes> parse_bytes(std::string_view text);
/// B/s .. TB/s, KiB/s .. TiB/s, Kb/s .. Tb/s (bits), "inf"
std::optional<Rate> parse_rate(std::string_view text);
std::optional<Frequency> parse_frequency(std::string_view text);  ///< Hz kHz MHz GHz
std::optional<std::int64_t> parse_count(std::string_view text);   ///< a decimal integer

std::string to_string(Time time);            ///< shortest exact form: "12.8 ps", "500 ns"
std::string to_string(Bytes bytes);          ///< binary units when exact: "64 MiB", else "1000 B"
std::string to_string(Rate rate);            ///< decimal units: "450 GB/s", "inf"
std::string to_string(Frequency frequency);  ///< "1.755 GHz"

}  // namespace hemiola
