// Damaged kernels: a message or a description, never a crash and never without end.
#include <random>

#include "compile/describe_test_support.h"
#include "core/long_tests_test_support.h"

namespace hemiola::compile {
namespace {

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    const auto is_word = [&](std::size_t at) {
      return std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
    };
    if (is_word(i)) {
      while (end < text.size() && is_word(end)) ++end;
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::string damaged(const std::string& text, std::mt19937& random) {
  const bool by_lines = random() % 3 == 0;
  std::vector<std::string> pieces;
  if (by_lines) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
      pieces.push_back(text.substr(begin, end + 1 - begin));
      begin = end + 1;
    }
  } else {
    pieces = tokens_of(text);
  }
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes && pieces.size() > 2; ++i) {
    const std::size_t at = random() % pieces.size();
    switch (random() % 3) {
      case 0:
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at), std::string(pieces[at]));
        break;
      default:
        std::swap(pieces[at], pieces[random() % pieces.size()]);
    }
  }
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

TEST(DamagedKernels, are_described_or_refused) {
  HEMIOLA_NEEDS_PYTHON_READER();
  std::mt19937 random(20);
  int refused = 0, described_ones = 0;
  const int cases = some_or_all(60, 2000);
  for (const std::string& name : example_kernels()) {
    const std::string text = example_text(name);
    for (int i = 0; i < cases; ++i) {
      const std::string changed = damaged(text, random);
      if (failure_of(changed).empty())
        ++described_ones;
      else
        ++refused;
    }
  }
  // Both happen, or the damage is not of the kind that is meant.
  EXPECT_GT(refused, cases);
  EXPECT_GT(described_ones, cases);
}

TEST(DamagedKernels, that_are_cut_off_are_described_or_refused) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = example_text("attention");
  for (std::size_t length = 0; length < text.size(); length += 97)
    failure_of(text.substr(0, length));
}

}  // namespace
}  // namespace hemiola::compile
