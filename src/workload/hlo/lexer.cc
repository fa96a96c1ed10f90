#include "workload/hlo/lexer.h"

#include <fmt/format.h>

#include <charconv>

#include "core/text.h"

namespace hemiola::workload::hlo {
namespace {

bool is_in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

char closing(char opening) {
  switch (opening) {
    case '(':
      return ')';
    case '[':
      return ']';
    default:
      return '}';
  }
}

bool is_opening(char c) {
  return c == '(' || c == '[' || c == '{';
}
bool is_closing(char c) {
  return c == ')' || c == ']' || c == '}';
}

}  // namespace

bool Cursor::skip_comment() {
  if (peek() != '/' || at_ + 1 >= end_) return false;
  if (whole_[at_ + 1] == '/') {
    while (!at_end() && peek() != '\n') ++at_;
    return true;
  }
  if (whole_[at_ + 1] != '*') return false;
  const std::size_t end = whole_.substr(0, end_).find("*/", at_ + 2);
  if (end == std::string_view::npos) fail("the comment that begins here does not end");
  at_ = end + 2;
  return true;
}

void Cursor::skip_blanks() {
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
      ++at_;
    else if (!skip_comment())
      return;
  }
}

void Cursor::skip_blanks_of_line() {
  while (!at_end()) {
    const char c = peek();
    if (c == ' ' || c == '\t' || c == '\r')
      ++at_;
    else if (!skip_comment())
      return;
  }
}

bool Cursor::take(char c) {
  skip_blanks();
  if (at_end() || peek() != c) return false;
  ++at_;
  return true;
}

bool Cursor::take(std::string_view text) {
  skip_blanks();
  if (!whole_.substr(at_, end_ - at_).starts_with(text)) return false;
  at_ += text.size();
  return true;
}

void Cursor::expect(char c, std::string_view what) {
  if (!take(c)) fail(fmt::format("expected {}, not {}", what, next()));
}

std::string_view Cursor::word() {
  skip_blanks();
  const std::size_t begin = at_;
  while (!at_end() && is_in_word(peek())) {
    if (peek() == '-' && at_ + 1 < end_ && whole_[at_ + 1] == '>') break;  // an arrow
    ++at_;
  }
  return whole_.substr(begin, at_ - begin);
}

std::string_view Cursor::name(std::string_view what) {
  take('%');
  const std::string_view found = word();
  if (found.empty()) fail(fmt::format("expected {}, not {}", what, next()));
  return found;
}

std::int64_t Cursor::integer(std::string_view what) {
  skip_blanks();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(whole_.data() + at_, whole_.data() + end_, number);
  if (error == std::errc::result_out_of_range)
    fail(fmt::format("{} is a number beyond 64 bits", what));
  if (error != std::errc{}) fail(fmt::format("expected {}, not {}", what, next()));
  at_ = static_cast<std::size_t>(end - whole_.data());
  return number;
}

void Cursor::skip_string() {
  const std::size_t begin = at_;
  const char quote = peek();
  for (++at_; !at_end() && peek() != quote; ++at_)
    if (peek() == '\\') ++at_;
  if (at_end()) {
    at_ = begin;
    fail("the string that begins here does not end", "the text may be cut short");
  }
  ++at_;
}

std::string_view Cursor::balanced() {
  skip_blanks();
  const std::size_t begin = at_;
  std::string open;  // brackets that have to be closed, the innermost last
  while (!at_end()) {
    const char c = peek();
    if (c == '"' || c == '\'') {
      skip_string();
      continue;
    }
    if (c == '/' && skip_comment()) continue;
    if (is_opening(c)) open.push_back(closing(c));
    if (is_closing(c)) {
      if (open.back() != c) fail(fmt::format("expected '{}' before this '{}'", open.back(), c));
      open.pop_back();
    }
    ++at_;
    if (open.empty()) return whole_.substr(begin, at_ - begin);
  }
  fail_at(begin, fmt::format("the '{}' that is here is not closed", whole_[begin]),
          "the text may be cut short");
}

std::string_view Cursor::value() {
  skip_blanks();
  const std::size_t begin = at_;
  while (!at_end()) {
    const char c = peek();
    if (is_opening(c))
      balanced();
    else if (c == '"' || c == '\'')
      skip_string();
    else if (c == ',' || c == '\n' || is_closing(c))
      break;
    else if (c != '/' || !skip_comment())
      ++at_;
  }
  std::string_view found = whole_.substr(begin, at_ - begin);
  while (!found.empty() && (found.back() == ' ' || found.back() == '\r' || found.back() == '\t'))
    found.remove_suffix(1);
  return found;
}

void Cursor::fail_at(std::size_t offset, const std::string& message,
                     const std::string& hint) const {
  throw Failure(message, locate(file_, whole_, offset), hint);
}

std::string Cursor::next() const {
  if (at_end()) return end_ == whole_.size() ? "the end of the text" : "the end";
  const char c = peek();
  if (c == '\n' || c == '\r') return "the end of the line";
  if (is_in_word(c)) {
    std::size_t end = at_;
    constexpr std::size_t kMost = 40;
    while (end < end_ && end - at_ < kMost && is_in_word(whole_[end])) ++end;
    return fmt::format("'{}'", whole_.substr(at_, end - at_));
  }
  if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
    return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(c));
  return fmt::format("'{}'", c);
}

}  // namespace hemiola::workload::hlo
