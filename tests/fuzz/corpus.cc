#include "corpus.h"

#include <glob.h>

#include <cctype>
#include <fstream>
#include <sstream>

#include "core/random.h"

namespace hemiola::fuzz {
namespace {

constexpr std::size_t kMostBytes = 16 << 10;

}  // namespace

std::size_t Draw::next(std::size_t below) {
  state += kSplitMixStep;
  return static_cast<std::size_t>(splitmix64(state) % below);
}

std::string content_of(const std::string& file) {
  std::ostringstream all;
  all << std::ifstream(file, std::ios::binary).rdbuf();
  return all.str();
}

std::vector<std::string> seeds_of(std::string_view reader, const std::string& root) {
  std::ifstream list(root + "/tests/fuzz/seeds.txt");
  std::vector<std::string> seeds;
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != reader) continue;
    while (words >> word) {
      glob_t found{};
      glob((root + "/" + word).c_str(), 0, nullptr, &found);
      for (std::size_t i = 0; i < found.gl_pathc; ++i) {
        std::string text = content_of(found.gl_pathv[i]);
        if (!text.empty() && text.size() <= kMostBytes) seeds.push_back(std::move(text));
      }
      globfree(&found);
    }
  }
  return seeds;
}

std::size_t line_begin(const std::string& text, std::size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
}

std::pair<std::size_t, std::size_t> word_at(const std::string& text, std::size_t at) {
  const auto in_word = [&](std::size_t i) {
    return std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_';
  };
  std::size_t begin = at, end = at + 1;
  if (!in_word(at)) return {at, 1};
  while (begin > 0 && in_word(begin - 1)) --begin;
  while (end < text.size() && in_word(end)) ++end;
  return {begin, end - begin};
}

std::string some_number(Draw& draw) {
  return std::to_string(draw.next(std::size_t{1} << draw.next(64)));
}

}  // namespace hemiola::fuzz
