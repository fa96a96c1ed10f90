#include "core/affine.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/diagnostics.h"

namespace hemiola {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50;
constexpr std::size_t kLongest = 200;  // bounds the depth of parentheses too

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Affine parse() {
    if (text_.size() > kLongest) {
      text_ = text_.substr(0, 20);
      fail("it is longer than " + std::to_string(kLongest) + " characters");
    }
    const Affine value = sum();
    blanks();
    if (at_ < text_.size()) fail("an operator is missing");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Failure("the expression '" + std::string(text_) + "' is not affine: " + what +
                      " at column " + std::to_string(at_ + 1),
                  {}, "for example (rank + i + 1) % 8 * 2 + 1; i and j count the loops");
  }
  void blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool take(char c) {
    blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::int64_t checked(__int128 value) const {
    if (value > kMost || value < -kMost) fail("a number beyond 2^50");
    return static_cast<std::int64_t>(value);
  }
  Affine times(const Affine& value, std::int64_t factor) const {
    Affine product = value;
    if (value.modulus > 0) {
      product.scale = checked(static_cast<__int128>(value.scale) * factor);
      product.offset = checked(static_cast<__int128>(value.offset) * factor);
      return product;
    }
    for (std::int64_t* part :
         {&product.constant, &product.rank, &product.loop[0], &product.loop[1]})
      *part = checked(static_cast<__int128>(*part) * factor);
    return product;
  }
  Affine plus(const Affine& a, const Affine& b) const {
    if (b.modulus > 0 && a.modulus == 0) return plus(b, a);
    Affine total = a;
    if (a.modulus > 0) {
      if (b.modulus > 0 || !b.is_constant()) fail("a '%' can only be added to a number");
      total.offset = checked(static_cast<__int128>(a.offset) + b.constant);
      return total;
    }
    total.constant = checked(static_cast<__int128>(a.constant) + b.constant);
    total.rank = checked(static_cast<__int128>(a.rank) + b.rank);
    for (std::size_t i = 0; i < a.loop.size(); ++i)
      total.loop[i] = checked(static_cast<__int128>(a.loop[i]) + b.loop[i]);
    return total;
  }
  static bool is_number(const Affine& value) { return value.modulus == 0 && value.is_constant(); }

  Affine sum() {
    Affine value = product();
    for (;;)
      if (take('+'))
        value = plus(value, product());
      else if (take('-'))
        value = plus(value, times(product(), -1));
      else
        return value;
  }
  Affine product() {
    Affine value = atom();
    for (;;) {
      if (take('*')) {
        const Affine factor = atom();
        if (is_number(factor))
          value = times(value, factor.constant);
        else if (is_number(value))
          value = times(factor, value.constant);
        else
          fail("a product of two variables");
      } else if (take('%')) {
        const Affine modulus = atom();
        if (!is_number(modulus) || modulus.constant < 1) fail("'%' needs a number of at least 1");
        if (value.modulus > 0) fail("a second '%'");
        value.modulus = modulus.constant;
      } else {
        return value;
      }
    }
  }
  Affine atom() {
    if (take('(')) {
      const Affine value = sum();
      if (!take(')')) fail("a ')' is missing");
      return value;
    }
    if (take('-')) return times(atom(), -1);
    blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word == "rank") return {.rank = 1};
    if (word == "i") return {.loop = {1, 0}};
    if (word == "j") return {.loop = {0, 1}};
    if (word.empty()) fail("a number or variable is missing");
    __int128 number = 0;
    for (const char c : word) {
      if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
        at_ = begin;
        fail("'" + std::string(word) + "' is neither a number nor rank, i or j");
      }
      number = std::min<__int128>(number * 10 + (c - '0'), __int128{1} << 60);
    }
    return {.constant = checked(number)};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Affine normalised(const Affine& value) {
  Affine simple = value;
  if (value.modulus > 0) {
    if (!value.is_constant()) return simple;
    return {.constant = value({})};
  }
  simple.constant = value.constant * value.scale + value.offset;
  simple.rank *= value.scale;
  for (std::int64_t& factor : simple.loop) factor *= value.scale;
  simple.scale = 1;
  simple.offset = 0;
  return simple;
}

std::string to_string(const Affine& value) {
  const Affine simple = normalised(value);
  std::string text;
  int terms = 0;
  const auto add = [&](std::int64_t factor, const char* variable) {
    if (factor == 0) return;
    ++terms;
    if (text.empty())
      text = factor < 0 ? "-" : "";
    else
      text += factor < 0 ? " - " : " + ";
    const std::string size = std::to_string(factor < 0 ? -factor : factor);
    text += *variable == '\0' ? size : (size == "1" ? "" : size + "*") + variable;
  };
  add(simple.rank, "rank");
  add(simple.loop[0], "i");
  add(simple.loop[1], "j");
  add(simple.constant, "");
  if (text.empty()) text = "0";
  if (simple.modulus > 0) {
    if (terms > 1 || text.front() == '-') text = "(" + text + ")";
    text += " % " + std::to_string(simple.modulus);
    if (simple.scale != 1) text += " * " + std::to_string(simple.scale);
    if (simple.offset != 0)
      text += (simple.offset < 0 ? " - " : " + ") + std::to_string(std::abs(simple.offset));
  }
  return text;
}

Affine parse_affine(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace hemiola
