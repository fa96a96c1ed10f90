// Rates and frequencies beside time and bytes, and their text forms ("450 GB/s", "1.755 GHz").
//
// GB = 10^9, GiB = 2^30, Gb/s = 10^9 bits per second. A unit is always written out: a bare number
// is accepted only for counts.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hemiola/units.h"

namespace hemiola {

/// No GPU has more bytes of memory, so no size is larger. It keeps every product of sizes inside 64
/// bits.
constexpr std::int64_t kMostMemory = std::int64_t{1} << 44;

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

// Parsing, as of time and bytes: nothing on malformed text, unknown units or overflow.
/// B/s .. TB/s, KiB/s .. TiB/s, Kb/s .. Tb/s (bits), "inf"
std::optional<Rate> parse_rate(std::string_view text);
std::optional<Frequency> parse_frequency(std::string_view text);  ///< Hz kHz MHz GHz
std::optional<std::int64_t> parse_count(std::string_view text);   ///< a decimal integer

std::string to_string(Rate rate);            ///< decimal units: "450 GB/s", "inf"
std::string to_string(Frequency frequency);  ///< "1.755 GHz"

}  // namespace hemiola
