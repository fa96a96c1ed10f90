// Seeds of readers, and how texts are damaged without libFuzzer: the same way in every run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hemiola::fuzz {

struct Draw {
  std::uint64_t state;
  /// One of 0 to below - 1.
  std::size_t next(std::size_t below);
};

std::string content_of(const std::string& file);
/// Of the lines `READER PATTERN...` of tests/fuzz/seeds.txt those of this reader. `root`: of the
/// project. Larger files are left out: they only repeat what smaller ones have, and take longer.
std::vector<std::string> seeds_of(std::string_view reader, const std::string& root);

std::size_t line_begin(const std::string& text, std::size_t at);
/// Begin and length of the word that has this place; of what is no word the one byte.
std::pair<std::size_t, std::size_t> word_at(const std::string& text, std::size_t at);
/// A number of up to 64 bits, small ones as often as large ones.
std::string some_number(Draw& draw);

}  // namespace hemiola::fuzz
