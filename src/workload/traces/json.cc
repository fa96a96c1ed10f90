#include "workload/traces/json.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/checked.h"
#include "core/text.h"

namespace hemiola::workload {

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

std::string_view json_text(TraceJson value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

std::string_view json_list(TraceJson value) {
  simdjson::ondemand::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return {};
  return list.raw_json().value();
}

std::optional<std::int64_t> json_integer(TraceJson value) {
  return integer_of_token(value.raw_json_token());
}

JsonStream::JsonStream(std::string content) : content_(std::move(content)) {
  content_.reserve(content_.size() + simdjson::SIMDJSON_PADDING);
}

void JsonStream::fail(const std::string& file, const char* place) const {
  if (const auto failure = json_failure(file, content_, 0, content_.size())) throw *failure;
  const char* const first = content_.data();
  const bool has_place = place != nullptr && place >= first && place <= first + content_.size();
  throw Failure("is no trace: something else was expected here",
                has_place ? locate(file, content_, static_cast<std::size_t>(place - first))
                          : SourceLocation{.file = file});
}

}  // namespace hemiola::workload
