#include "cli/typed.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <utility>

#include "cli/pages.h"
#include "core/diagnostics.h"

namespace hemiola::cli {

Typed typed(std::vector<std::string> words) {
  if (words.empty()) return {};
  if (words.front() == "version" || words.front() == "-v" || words.front() == "-V")
    words.front() = "--version";
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (words.size() > 1 && words.front() == "run") {
    const auto name = std::find_if(words.begin() + 1, words.end(), is_nccl_test);
    if (name != words.end()) {
      std::vector<std::string> of_test{*name};
      of_test.insert(of_test.end(), words.begin() + 1, name);
      of_test.insert(of_test.end(), name + 1, words.end());
      return nccl_test(of_test);
    }
  }
  return {.words = std::move(words), .notes = {}};
}

namespace {

/// A file in memory that can be read again and again, which a pipe cannot.
std::string standard_input() {
  const int file = ::memfd_create("stdin", 0);
  char piece[1 << 16];
  ssize_t size = 0;
  while (file >= 0 && (size = ::read(STDIN_FILENO, piece, sizeof piece)) > 0)
    if (::write(file, piece, static_cast<std::size_t>(size)) != size) size = -1;
  if (file < 0 || size < 0)
    throw Failure("standard input cannot be read", {.file = "-"}, "give a file");
  return "/proc/self/fd/" + std::to_string(file);
}

/// The option whose value a word is; null: it is a positional argument.
const CLI::Option* option_of(const CLI::App& verb, const std::string& before) {
  if (before.size() < 2 || before.front() != '-') return nullptr;
  const CLI::Option* option = verb.get_option_no_throw(before);
  return option != nullptr && option->get_items_expected_max() > 0 ? option : nullptr;
}

}  // namespace

std::string take_dashes(CLI::App& app, std::vector<std::string>& words) {
  CLI::App* verb = &app;
  std::map<std::string, std::string> written;  // file: option
  std::string input;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    for (CLI::App* inner : verb->get_subcommands({}))
      if (inner->get_name() == word) verb = inner;
    const std::string before = i == 0 ? "" : words[i - 1];
    const CLI::Option* option = option_of(*verb, before);
    const bool is_output = option != nullptr && is_output_file(*option);
    if (is_output) {
      const auto [other, is_new] = written.emplace(word, before);
      if (!is_new)
        throw Failure(other->second + " and " + before + " write to one place, '" + word + "'",
                      {.file = before}, "a place for each of them");
    }
    if (word != "-") continue;
    if (is_output) {
      std::cout.rdbuf(std::cerr.rdbuf());
    } else if (!input.empty()) {
      throw Failure("standard input is one file", {.file = "-"}, "a file for the other one");
    } else {
      word = input = standard_input();
    }
  }
  return input;
}

}  // namespace hemiola::cli
