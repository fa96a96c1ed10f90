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
    // What stands behind an option is its value: --csv ring_perf.
    auto name = words.begin() + 1;
    while (name != words.end() && (!is_nccl_test(*name) || std::prev(name)->starts_with('-')))
      ++name;
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

void take_input(CLI::App& app, Session& session) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || is_output_file(*option)) continue;
    option->transform([&session](std::string text) {
      if (text != "-") return text;
      if (!session.input.empty())
        throw Failure("standard input is one file", {.file = "-"}, "a file for the other one");
      return session.input = standard_input();
    });
  }
  for (CLI::App* verb : app.get_subcommands({})) take_input(*verb, session);
}

void take_outputs(const CLI::App& app, std::map<std::string, std::string>& written) {
  for (const CLI::Option* option : app.get_options()) {
    if (!is_output_file(*option) || option->count() == 0) continue;
    const std::string& file = option->results().back();
    const std::string name = option->get_name();
    const auto [other, is_new] = written.emplace(file, name);
    if (!is_new)
      throw Failure(other->second + " and " + name + " write to one place, '" + file + "'",
                    {.file = name}, "a place for each of them");
    if (file == "-") std::cout.rdbuf(std::cerr.rdbuf());
  }
  for (const CLI::App* verb : app.get_subcommands()) take_outputs(*verb, written);
}

}  // namespace

void take_standard_input(CLI::App& app, Session& session) {
  take_input(app, session);
}

void take_standard_output(const CLI::App& app) {
  std::map<std::string, std::string> written;  // file: option
  take_outputs(app, written);
}

}  // namespace hemiola::cli
