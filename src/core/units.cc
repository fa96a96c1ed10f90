#include "core/units.h"

#include <array>
#include <cstddef>
#include <limits>

#include "core/lists.h"

namespace hemiola {
namespace {

using Wide = unsigned __int128;
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t power_of_ten(int exponent) {
  std::int64_t value = 1;
  for (int i = 0; i < exponent; ++i) value *= 10;
  return value;
}

/// A unit is `numerator / denominator` base units. Tables run from the largest unit to the
/// smallest.
struct Unit {
  std::string_view name;
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

constexpr std::array kTimeUnits{Unit{"s", power_of_ten(15)}, Unit{"ms", power_of_ten(12)},
                                Unit{"us", power_of_ten(9)}, Unit{"ns", power_of_ten(6)},
                                Unit{"ps", power_of_ten(3)}, Unit{"fs", 1}};
constexpr std::array kBinaryUnits{Unit{"TiB", std::int64_t{1} << 40}, Unit{"GiB", 1 << 30},
                                  Unit{"MiB", 1 << 20}, Unit{"KiB", 1 << 10}, Unit{"B", 1}};
constexpr std::array kByteUnits{Unit{"TB", power_of_ten(12)},
                                Unit{"GB", power_of_ten(9)},
                                Unit{"MB", power_of_ten(6)},
                                Unit{"KB", power_of_ten(3)},
                                Unit{"TiB", std::int64_t{1} << 40},
                                Unit{"GiB", 1 << 30},
                                Unit{"MiB", 1 << 20},
                                Unit{"KiB", 1 << 10},
                                Unit{"G", 1 << 30},
                                Unit{"M", 1 << 20},
                                Unit{"K", 1 << 10},
                                Unit{"B", 1}};
constexpr std::array kDecimalRateUnits{Unit{"TB/s", power_of_ten(12)},
                                       Unit{"GB/s", power_of_ten(9)}, Unit{"MB/s", power_of_ten(6)},
                                       Unit{"KB/s", power_of_ten(3)}, Unit{"B/s", 1}};
constexpr std::array kOtherRateUnits{Unit{"TiB/s", std::int64_t{1} << 40},
                                     Unit{"GiB/s", 1 << 30},
                                     Unit{"MiB/s", 1 << 20},
                                     Unit{"KiB/s", 1 << 10},
                                     Unit{"Tb/s", power_of_ten(12), 8},
                                     Unit{"Gb/s", power_of_ten(9), 8},
                                     Unit{"Mb/s", power_of_ten(6), 8},
                                     Unit{"Kb/s", power_of_ten(3), 8}};
constexpr std::array kFrequencyUnits{Unit{"GHz", power_of_ten(9)}, Unit{"MHz", power_of_ten(6)},
                                     Unit{"kHz", power_of_ten(3)}, Unit{"Hz", 1}};

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// An unsigned decimal number, value = mantissa / 10^fraction_digits.
struct Decimal {
  std::uint64_t mantissa = 0;
  int fraction_digits = 0;
};

/// Up to this many digits any product of a mantissa, a unit and a power of ten fits in 128 bits.
constexpr int kMaxDigits = 19;

/// Takes a number off the front of `text`; nothing if there is none or it has too many digits.
std::optional<Decimal> take_decimal(std::string_view& text) {
  std::size_t whole = 0;
  while (whole < text.size() && is_digit(text[whole])) ++whole;
  if (whole == 0) return std::nullopt;
  std::size_t end = whole;
  std::string digits(text.substr(0, whole));
  int fraction_digits = 0;
  if (end < text.size() && text[end] == '.') {
    ++end;
    const std::size_t first = end;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end == first) return std::nullopt;
    std::string_view fraction = text.substr(first, end - first);
    while (!fraction.empty() && fraction.back() == '0') fraction.remove_suffix(1);
    if (fraction.size() > kMaxDigits) return std::nullopt;
    fraction_digits = static_cast<int>(fraction.size());
    digits += fraction;
  }
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.size() > kMaxDigits) return std::nullopt;
  Decimal value{0, fraction_digits};
  for (const char c : digits)
    value.mantissa = value.mantissa * 10 + static_cast<std::uint64_t>(c - '0');
  text.remove_prefix(end);
  return value;
}

/// The value in base units, rounded to the nearest; nothing on overflow, and for a quantity that is
/// not zero but would round to it.
std::optional<std::int64_t> in_base_units(const Decimal& value, const Unit& unit) {
  Wide denominator = static_cast<Wide>(unit.denominator);
  for (int i = 0; i < value.fraction_digits; ++i) denominator *= 10;
  const Wide numerator = static_cast<Wide>(value.mantissa) * static_cast<Wide>(unit.numerator);
  const Wide rounded = (numerator + denominator / 2) / denominator;
  if (rounded > static_cast<Wide>(kMax)) return std::nullopt;
  if (rounded == 0 && value.mantissa != 0) return std::nullopt;
  return static_cast<std::int64_t>(rounded);
}

template <std::size_t n>
const Unit* find_unit(const std::array<Unit, n>& units, std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return &unit;
  return nullptr;
}

template <typename... Tables>
std::optional<std::int64_t> parse_quantity(std::string_view text, const Tables&... tables) {
  text = trimmed(text);
  const std::optional<Decimal> value = take_decimal(text);
  if (!value) return std::nullopt;
  const std::string_view name = trimmed(text);
  const Unit* unit = nullptr;
  ((unit = unit ? unit : find_unit(tables, name)), ...);
  return unit ? in_base_units(*value, *unit) : std::nullopt;
}

/// In the largest unit that leaves a whole part, with as many decimals as exactness takes.
template <std::size_t n>
std::string exact_text(std::int64_t value, const std::array<Unit, n>& units) {
  const bool negative = value < 0;
  const std::uint64_t magnitude =
      negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const Unit* unit = &units.back();
  for (const Unit& candidate : units) {
    if (magnitude >= static_cast<std::uint64_t>(candidate.numerator)) {
      unit = &candidate;
      break;
    }
  }
  const auto scale = static_cast<std::uint64_t>(unit->numerator);
  std::string text = (negative ? "-" : "") + std::to_string(magnitude / scale);
  if (std::uint64_t rest = magnitude % scale; rest != 0) {
    text += '.';
    for (std::uint64_t digit = scale / 10; rest != 0; digit /= 10) {
      text += static_cast<char>('0' + rest / digit);
      rest %= digit;
    }
  }
  return text + ' ' + std::string(unit->name);
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
  const auto fs = parse_quantity(text, kTimeUnits);
  return fs ? std::optional(Time{*fs}) : std::nullopt;
}

std::optional<Bytes> parse_bytes(std::string_view text) {
  const auto count = parse_quantity(text, kByteUnits);
  return count ? std::optional(Bytes{*count}) : std::nullopt;
}

std::optional<Rate> parse_rate(std::string_view text) {
  if (trimmed(text) == "inf") return Rate::ideal();
  const auto rate = parse_quantity(text, kDecimalRateUnits, kOtherRateUnits);
  if (!rate || *rate == 0) return std::nullopt;  // 0 stands for ideal: only "inf" may say so
  return Rate{*rate};
}

std::optional<Frequency> parse_frequency(std::string_view text) {
  const auto hertz = parse_quantity(text, kFrequencyUnits);
  if (!hertz || *hertz == 0) return std::nullopt;
  return Frequency{*hertz};
}

std::optional<std::int64_t> parse_count(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    const int digit = c - '0';
    if (value > (kMax - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  return value;
}

std::string to_string(Time time) {
  return time.fs == 0 ? "0 ns" : exact_text(time.fs, kTimeUnits);
}

std::string to_string(Bytes bytes) {
  for (const Unit& unit : kBinaryUnits)
    if (bytes.count != 0 && bytes.count % unit.numerator == 0)
      return std::to_string(bytes.count / unit.numerator) + ' ' + std::string(unit.name);
  return "0 B";
}

std::string to_string(Rate rate) {
  return rate.is_ideal() ? "inf" : exact_text(rate.bytes_per_second, kDecimalRateUnits);
}

std::string to_string(Frequency frequency) {
  return exact_text(frequency.hertz, kFrequencyUnits);
}

}  // namespace hemiola
