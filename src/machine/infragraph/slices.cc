#include "machine/infragraph/slices.h"

#include <algorithm>
#include <optional>

#include "core/lists.h"
#include "core/units.h"

namespace hemiola::machine::infragraph {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// A whole number with an optional minus, or nothing.
std::optional<std::int64_t> parse_index(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  if (!is_number(text)) return std::nullopt;
  const auto value = parse_count(text);
  if (!value) return std::nullopt;
  return negative ? -*value : *value;
}

}  // namespace

Indices Segment::resolve(std::int64_t size, const SourceLocation& where) const {
  if (!has_slice) return {0, size, 1};
  const auto fail = [&](const std::string& why) -> Failure {
    return Failure("'" + text() + "' " + why, where,
                   "there are " + std::to_string(size) + " '" + name + "', from " + name +
                       "[0] to " + name + "[" + std::to_string(size - 1) + "]");
  };
  const std::vector<std::string> parts = split(slice, ':');
  std::vector<std::optional<std::int64_t>> numbers;
  for (const std::string& part : parts) {
    numbers.push_back(parse_index(part));
    if (!numbers.back() && !part.empty()) throw fail("is no slice: use [i], [a:b] or [a:b:step]");
  }
  if (parts.size() > 3 || (parts.size() == 1 && !numbers[0]))
    throw fail("is no slice: use [i], [a:b] or [a:b:step]");
  const auto bound = [&](std::int64_t index, std::int64_t most) {
    const std::int64_t from_start = index < 0 ? index + size : index;
    if (from_start < 0 || from_start > most) throw fail("is out of range");
    return from_start;
  };
  if (parts.size() == 1) return {bound(*numbers[0], size - 1), 1, 1};
  const std::int64_t step = parts.size() == 3 ? numbers[2].value_or(1) : 1;
  if (step < 1) throw fail("has a step below 1");
  const std::int64_t first = numbers[0] ? bound(*numbers[0], size) : 0;
  const std::int64_t end = numbers[1] ? bound(*numbers[1], size) : size;
  if (first >= end) throw fail("selects nothing");
  return {first, (end - first - 1) / step + 1, step};
}

std::vector<Segment> parse_path(std::string_view text, const SourceLocation& where) {
  std::vector<Segment> segments;
  const auto fail = [&](const char* why) {
    return Failure("the name '" + std::string(text) + "' " + why, where,
                   "names look like xpu, xpu[3], xpu[0:4], cx5[0:2].port[0] or dgx.0.xpu.3");
  };
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of(".["), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name.find_first_of("]:") != std::string_view::npos) throw fail("is malformed");
    if (name.empty()) throw fail("has an empty part");
    rest.remove_prefix(end);
    if (is_number(name) && !segments.empty() && !segments.back().has_slice) {
      segments.back().slice = std::string(name);
      segments.back().has_slice = true;
    } else {
      segments.push_back({std::string(name), {}, false});
    }
    if (!rest.empty() && rest.front() == '[') {
      const std::size_t close = rest.find(']');
      if (close == std::string_view::npos) throw fail("lacks a ']'");
      if (segments.back().has_slice) throw fail("has two indices in a row");
      segments.back().slice = std::string(rest.substr(1, close - 1));
      segments.back().has_slice = true;
      rest.remove_prefix(close + 1);
    }
    if (!rest.empty() && rest.front() == '.') {
      rest.remove_prefix(1);
      if (rest.empty()) throw fail("ends in a dot");
    }
  }
  if (segments.empty()) throw fail("is empty");
  return segments;
}

}  // namespace hemiola::machine::infragraph
