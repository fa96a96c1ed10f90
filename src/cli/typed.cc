#include "cli/typed.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include "cli/pages.h"
#include "core/diagnostics.h"
#include "report/page.h"

namespace hemiola::cli {

namespace {

/// Names that options had until 0.1: they work for a version.
struct Renamed {
  const char *verb, *old, *now;
};
constexpr Renamed kRenamed[] = {
    {"run", "--sizes", "--size"},       {"check", "--sizes", "--size"},
    {"validate", "--sizes", "--size"},  {"sweep", "--out", "--output"},
    {"explore", "--out", "--database"}, {"replay", "--save", "--output"}};

/// Says the name of today in place of an old one. `--sizes FILE` was another option.
std::vector<std::string> rename_options(std::vector<std::string>& words) {
  std::vector<std::string> notes;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    for (const Renamed& one : kRenamed) {
      if (words.front() != one.verb || name != one.old) continue;
      const std::string value = equals != name.npos    ? words[i].substr(equals + 1)
                                : i + 1 < words.size() ? words[i + 1]
                                                       : "";
      const bool is_file = name == "--sizes" && std::filesystem::exists(value);
      const std::string now = is_file ? "--call-sizes" : one.now;
      notes.push_back(name + " is " + now + " now (docs/migrations.md)");
      words[i].replace(0, name.size(), now);
      break;
    }
  }
  return notes;
}

}  // namespace

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
  std::vector<std::string> notes = rename_options(words);
  return {.words = std::move(words), .notes = std::move(notes)};
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

/// Lines in which the file that standard input is in is called that.
class NamedInput : public std::streambuf {
 public:
  NamedInput(std::streambuf* to, const Session& session) : to_(to), session_(session) {}
  ~NamedInput() override {
    sync();
    if (std::cout.rdbuf() == this) std::cout.rdbuf(to_);
  }
  NamedInput(const NamedInput&) = delete;
  NamedInput& operator=(const NamedInput&) = delete;

 protected:
  int overflow(int letter) override {
    if (letter == traits_type::eof()) return sync();
    line_ += static_cast<char>(letter);
    return letter == '\n' && sync() != 0 ? traits_type::eof() : letter;
  }
  int sync() override {
    const std::string text = with_typed_names(std::exchange(line_, {}), session_);
    const auto size = static_cast<std::streamsize>(text.size());
    return to_->sputn(text.data(), size) == size ? to_->pubsync() : -1;
  }

 private:
  std::streambuf* to_;
  const Session& session_;
  std::string line_;
};

void take_input(CLI::App& app, Session& session) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0 || is_output_file(*option)) continue;
    option->transform([&session](std::string text) {
      if (text != "-") return text;
      if (!session.input.empty())
        throw Failure("standard input is one file", {.file = "-"}, "a file for the other one");
      session.input = standard_input();
      session.named_output = std::make_shared<NamedInput>(std::cout.rdbuf(), session);
      std::cout.rdbuf(session.named_output.get());
      return session.input;
    });
  }
  for (CLI::App* verb : app.get_subcommands({})) take_input(*verb, session);
}

void check_output(const std::string& option, const std::string& file) {
  if (file.empty() || file == "-") return;
  namespace fs = std::filesystem;
  std::error_code error;
  const auto fail = [&](const std::string& message) {
    throw Failure("'" + file + "' " + message, SourceLocation{.file = option});
  };
  const fs::file_status status = fs::status(file, error);
  if (fs::is_directory(status)) fail("is a folder, not a file");
  if (fs::exists(status) && !fs::is_regular_file(status)) return;  // a pipe or a terminal
  const fs::path parent = fs::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (!fs::is_directory(folder, error)) fail("is in a folder that is not there");
  if (::access(folder.c_str(), W_OK) != 0) fail("is in a folder that cannot be written");
}

void take_outputs_of(const CLI::App& app, std::map<std::string, std::string>& written) {
  for (const CLI::Option* option : app.get_options()) {
    if (!is_output_file(*option) || option->count() == 0) continue;
    const std::string& file = option->results().back();
    const std::string name = option->get_name();
    const auto [other, is_new] = written.emplace(file, name);
    if (!is_new)
      throw Failure(other->second + " and " + name + " write to one place, '" + file + "'",
                    {.file = name}, "a place for each of them");
    if (file == "-") std::cout.rdbuf(std::cerr.rdbuf());
    if (option->get_type_name() != "PREFIX") check_output(name, file);
    if (name == "--report" && !file.empty()) report::page::require_rendering();
  }
  for (const CLI::App* verb : app.get_subcommands()) take_outputs_of(*verb, written);
}

}  // namespace

std::string with_typed_names(std::string text, const Session& session) {
  for (std::size_t at = 0; !session.input.empty();) {
    at = text.find(session.input, at);
    if (at == text.npos) break;
    text.replace(at, session.input.size(), "standard input");
  }
  return text;
}

void take_standard_input(CLI::App& app, Session& session) {
  take_input(app, session);
}

void take_outputs(const CLI::App& app) {
  std::map<std::string, std::string> written;  // file: option
  take_outputs_of(app, written);
}

}  // namespace hemiola::cli
