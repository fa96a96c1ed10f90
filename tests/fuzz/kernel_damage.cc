#include "kernel_damage.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

namespace hemiola::fuzz {
namespace {

struct Token {
  std::size_t begin = 0, size = 0;
  enum class Kind { name, number, sign } kind = Kind::sign;
};

/// All but blanks and comments.
std::vector<Token> tokens_of(const std::string& text) {
  std::vector<Token> made;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (std::isspace(first) != 0) {
      ++at;
    } else if (std::isalnum(first) != 0 || first == '_') {
      const std::size_t size = word_at(text, at).second;
      made.push_back(
          {at, size, std::isdigit(first) != 0 ? Token::Kind::number : Token::Kind::name});
      at += size;
    } else {
      static constexpr std::array<std::string_view, 12> kLong = {
          "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "->"};
      std::size_t size = 1;
      for (const std::string_view sign : kLong)
        if (text.compare(at, sign.size(), sign) == 0) size = sign.size();
      made.push_back({at, size, Token::Kind::sign});
      at += size;
    }
  }
  return made;
}

std::string text_of(const std::string& text, const Token& token) {
  return text.substr(token.begin, token.size);
}

const Token& some_of(const std::vector<Token>& tokens, Token::Kind kind, Draw& draw) {
  const std::size_t from = draw.next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& one = tokens[(from + i) % tokens.size()];
    if (one.kind == kind) return one;
  }
  return tokens[from];
}

void swap_tokens(std::string& text, Token a, Token b) {
  if (a.begin > b.begin) std::swap(a, b);
  if (a.begin + a.size > b.begin) return;
  const std::string first = text_of(text, a), second = text_of(text, b);
  text.replace(b.begin, b.size, first);
  text.replace(a.begin, a.size, second);
}

std::string kernel_number(Draw& draw) {
  static constexpr std::array<const char*, 12> kNumbers = {"0",  "1",  "2",   "3",    "7",  "16",
                                                           "17", "64", "128", "4096", "-1", "0.5"};
  return draw.next(8) == 0 ? some_number(draw) : kNumbers[draw.next(kNumbers.size())];
}

std::string some_sign(Draw& draw) {
  static constexpr std::array<const char*, 18> kSigns = {
      "+", "-", "*", "//", "%", "<", ">", "<=", "==", "&", "|", "(", ")", "[", "]", ",", ":", "="};
  return kSigns[draw.next(kSigns.size())];
}

/// A line that is gone, twice, further in or out, or has changed places with another one.
void damage_line(std::string& text, Draw& draw) {
  const std::size_t begin = line_begin(text, draw.next(text.size()));
  const std::string line = text.substr(begin, text.find('\n', begin) + 1 - begin);
  switch (draw.next(5)) {
    case 0:
      text.erase(begin, line.size());
      break;
    case 1:
      text.insert(begin, line);
      break;
    case 2:
      text.insert(begin, "    ");
      break;
    case 3:
      if (line.starts_with("    ")) text.erase(begin, 4);
      break;
    default: {
      text.erase(begin, line.size());
      if (!text.empty()) text.insert(line_begin(text, draw.next(text.size())), line);
    }
  }
}

void damage_token(std::string& text, const std::string& other, Draw& draw) {
  using Kind = Token::Kind;
  const std::vector<Token> tokens = tokens_of(text), others = tokens_of(other);
  if (tokens.empty() || others.empty()) return;
  const Token& one = tokens[draw.next(tokens.size())];
  const auto replace = [&](const Token& token, const std::string& by) {
    text.replace(token.begin, token.size, by);
  };
  switch (draw.next(9)) {
    case 0:
      replace(one, "");
      break;
    case 1:
      swap_tokens(text, one, tokens[draw.next(tokens.size())]);
      break;
    case 2:
      text.insert(one.begin, text_of(text, one) + ' ');
      break;
    case 3:
    case 4:
      replace(some_of(tokens, Kind::number, draw), kernel_number(draw));
      break;
    case 5:
      replace(some_of(tokens, Kind::name, draw), text_of(text, some_of(tokens, Kind::name, draw)));
      break;
    case 6:
      replace(some_of(tokens, Kind::name, draw), text_of(other, some_of(others, Kind::name, draw)));
      break;
    case 7:
      replace(some_of(tokens, Kind::name, draw), kernel_number(draw));
      break;
    default:
      replace(some_of(tokens, Kind::sign, draw), some_sign(draw));
  }
}

}  // namespace

std::string damaged_kernel(std::string text, const std::string& other, Draw& draw) {
  const std::size_t changes = 1 + draw.next(3);
  for (std::size_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t kind = draw.next(8);
    if (kind == 0)  // the head of one before the tail of the other, at lines
      text = text.substr(0, line_begin(text, draw.next(text.size()))) +
             other.substr(line_begin(other, draw.next(other.size())));
    else if (kind < 3)
      damage_line(text, draw);
    else
      damage_token(text, other, draw);
  }
  return text;
}

}  // namespace hemiola::fuzz
