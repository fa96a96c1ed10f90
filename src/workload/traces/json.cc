#include "workload/traces/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.h"

namespace hemiola::workload {
namespace {

/// Where a text is no JSON, without a tree of it.
struct FirstError : nlohmann::json_sax<nlohmann::json> {
  std::size_t at = 0;
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    at = position > 0 ? position - 1 : 0;
    return false;
  }
};

}  // namespace

std::optional<std::int64_t> nanoseconds_of(std::string_view text) {
  while (!text.empty() && std::string_view(" \n\r\t").find(text.back()) != std::string_view::npos)
    text.remove_suffix(1);
  // The sum of two still fits: 4e15 microseconds are 126 years.
  constexpr std::int64_t kMost = 4'000'000'000'000'000;
  std::int64_t whole = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, whole);
  if (error != std::errc{} || whole < 0 || whole > kMost) return std::nullopt;
  if (at == end) return whole * 1000;
  if (*at != '.') {
    double value = 0;
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    constexpr double kMostInDouble = 4e15;
    if (problem != std::errc{} || stop != end || !(value >= 0 && value < kMostInDouble))
      return std::nullopt;
    return static_cast<std::int64_t>(std::llround(value * 1000));
  }
  std::int64_t fraction = 0, unit = 100;
  for (const char* digit = at + 1; digit != end; ++digit) {
    if (*digit < '0' || *digit > '9') return std::nullopt;
    fraction += unit * (*digit - '0');
    unit /= 10;
  }
  return whole * 1000 + fraction;
}

std::optional<std::int64_t> integer_of_token(std::string_view text) {
  if (!text.empty() && text.front() == '"') text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || at == text.data()) return std::nullopt;
  return number;
}

void fail_with_json(const std::string& file, std::string_view content, const char* place) {
  FirstError error;
  if (!nlohmann::json::sax_parse(content, &error)) {
    const bool is_cut = error.at >= content.size();
    throw Failure(is_cut ? "the JSON text ends too early" : "the JSON text is malformed here",
                  locate(file, content, std::min(error.at, content.size())),
                  is_cut ? "the file may be truncated" : "");
  }
  const bool has_place =
      place != nullptr && place >= content.data() && place <= content.data() + content.size();
  throw Failure("is no trace: something else was expected here",
                has_place ? locate(file, content, static_cast<std::size_t>(place - content.data()))
                          : SourceLocation{.file = file});
}

}  // namespace hemiola::workload
