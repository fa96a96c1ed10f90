#include "core/checked.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/text.h"

namespace hemiola {
namespace {

/// Where a text is no JSON, without a tree of it.
struct FirstJsonError : nlohmann::json_sax<nlohmann::json> {
  std::size_t at = 0;
  bool is_number = false;
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
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    is_number = error.id == kNumberOverflow;
    at = position - std::min(position, is_number ? token.size() : 1);
    return false;
  }
};

template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && at == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> whole_number_in(std::string_view text) {
  return number_in<std::int64_t>(text);
}

std::optional<double> finite_number(std::string_view text) {
  const std::optional<double> number = number_in<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<Failure> json_failure(const std::string& name, std::string_view whole,
                                    std::size_t begin, std::size_t end) {
  FirstJsonError error;
  if (nlohmann::json::sax_parse(whole.substr(begin, end - begin), &error)) return std::nullopt;
  const std::size_t at = std::min(begin + error.at, whole.size());
  const SourceLocation where = locate(name, whole, at);
  if (error.is_number) return Failure("the number here is too large to be read", where);
  const bool is_cut = at == whole.size();
  return Failure(is_cut ? "the JSON text ends too early" : "the JSON text is malformed here", where,
                 is_cut ? "the file may be truncated" : "");
}

}  // namespace hemiola
