// A short run of every reader without libFuzzer: all seeds as they are, then a fixed number of
// damaged ones, the same in every run. For builds with any sanitizer, or none.
//
//     short_run ROOT RUNS [READER...]
//
// ROOT: of the project; its tests/fuzz/seeds.txt names the seeds. RUNS: damaged texts per reader.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "corpus.h"
#include "guard.h"
#include "readers.h"

namespace hemiola::fuzz {
namespace {

/// A place of `text` changed; `other` is a seed to take pieces from.
void damage_once(std::string& text, const std::string& other, Draw& draw) {
  const std::size_t at = draw.next(text.size());
  switch (draw.next(10)) {
    case 0:
      text[at] = static_cast<char>(draw.next(256));
      break;
    case 1:
      text[at] = static_cast<char>(text[at] ^ (1 << draw.next(8)));
      break;
    case 2:
      text[at] = "{}[]()<>%,:;=+-*/\"'#&! \n0123456789"[draw.next(34)];
      break;
    case 3:
      text.erase(at, 1 + draw.next(8));
      break;
    case 4:
      text.insert(at, text.substr(draw.next(text.size()), 1 + draw.next(40)));
      break;
    case 5: {  // a number for another
      const std::size_t digit = text.find_first_of("0123456789", at);
      if (digit == std::string::npos) break;
      const std::size_t end = text.find_first_not_of("0123456789", digit);
      text.replace(digit, end == std::string::npos ? end : end - digit, some_number(draw));
      break;
    }
    case 6: {  // a line twice, or not at all
      const std::size_t begin = line_begin(text, at);
      const std::string line = text.substr(begin, text.find('\n', at) + 1 - begin);
      draw.next(2) == 0 ? text.erase(begin, line.size()) : text.insert(begin, line);
      break;
    }
    case 7: {  // a word for another
      const auto [begin, size] = word_at(text, at);
      const auto [from, length] = word_at(other, draw.next(other.size()));
      text.replace(begin, size, draw.next(3) == 0 ? std::string() : other.substr(from, length));
      break;
    }
    case 8:
      text.insert(at, other.substr(draw.next(other.size()), 1 + draw.next(200)));
      break;
    default:  // cut short
      if (draw.next(4) == 0) text.resize(at);
  }
}

std::string damaged(std::string text, const std::string& other, Draw& draw) {
  const std::size_t places = draw.next(2) == 0 ? 1 : 2 + draw.next(3);
  for (std::size_t i = 0; i < places && !text.empty(); ++i) damage_once(text, other, draw);
  return text;
}

bool takes_in_time(const Reader& reader, const std::string& text) {
  return guarded(text, [&] { return takes(reader, text); });
}

/// Whether texts of both kinds were there: else the seeds, or the damage, are not what is meant.
bool run(const Reader& reader, const std::string& root, int runs) {
  const std::vector<std::string> seeds = seeds_of(reader.name, root);
  long whole = 0, taken = 0;
  for (const std::string& seed : seeds) whole += takes_in_time(reader, seed) ? 1 : 0;
  if (whole == 0) {
    fmt::print("{}: takes none of its {} seeds\n", reader.name, seeds.size());
    return false;
  }
  Draw draw{1};
  for (int i = 0; i < runs; ++i) {
    const std::string& seed = seeds[static_cast<std::size_t>(i) % seeds.size()];
    const std::string text = damaged(seed, seeds[draw.next(seeds.size())], draw);
    taken += takes_in_time(reader, text) ? 1 : 0;
  }
  fmt::print("{}: takes {} of {} seeds, {} of {} damaged ones\n", reader.name, whole, seeds.size(),
             taken, runs);
  return runs < 100 || (taken > 0 && taken < runs);
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) {
    fmt::print(stderr, "usage: short_run ROOT RUNS [READER...]\n");
    return 2;
  }
  guard_process();
  const std::vector<std::string> names(arguments.begin() + 2, arguments.end());
  for (const std::string& name : names) {
    if (find_reader(name) != nullptr) continue;
    fmt::print(stderr, "{} is no reader\n", name);
    return 2;
  }
  bool passed = true;
  for (const Reader& reader : readers()) {
    if (!names.empty() && std::find(names.begin(), names.end(), reader.name) == names.end())
      continue;
    passed = run(reader, arguments[0], std::atoi(arguments[1].c_str())) && passed;
  }
  return passed ? 0 : 1;
}

}  // namespace
}  // namespace hemiola::fuzz

/// An absurd allocation is a finding, and what a sanitizer finds ends in an abort.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:max_allocation_size_mb=1024";
}

int main(int count, char** arguments) {
  return hemiola::fuzz::main_of({arguments + 1, arguments + count});
}
