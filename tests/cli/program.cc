#include "program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace hemiola::test {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Workplace::Workplace() {
  std::string name = (fs::temp_directory_path() / "hemiola-cli-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  streams_ = name;
  folder_ = name + "/work";
  fs::create_directory(folder_);
}

Workplace::~Workplace() {
  std::error_code ignored;
  fs::remove_all(streams_, ignored);
}

void Workplace::write(const std::string& name, const std::string& content) const {
  std::ofstream(fs::path(folder_) / name, std::ios::binary) << content;
}

std::string Workplace::read(const std::string& name) const {
  return slurp(fs::path(folder_) / name);
}

std::string Workplace::files() const {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    names.insert(entry.path().filename().string());
  }
  std::string text;
  for (const std::string& name : names) text += name + ' ';
  return text;
}

Outcome Workplace::run(const std::string& arguments) const {
  const std::string command = "cd '" + folder_ + "' && timeout 60 '" HEMIOLA_BINARY "' " +
                              arguments + " > ../out 2> ../err < /dev/null";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = slurp(fs::path(streams_) / "out");
  outcome.err = slurp(fs::path(streams_) / "err");
  return outcome;
}

std::string fixture(const std::string& name) {
  const std::string text = slurp(fs::path(HEMIOLA_SOURCE_DIR "/tests/cli/inputs") / name);
  EXPECT_FALSE(text.empty()) << "no fixture " << name;
  return text;
}

std::string edited(const std::string& name, const std::string& from, const std::string& to) {
  std::string text = fixture(name);
  const std::size_t place = text.find(from);
  if (place == std::string::npos) {
    ADD_FAILURE() << name << " has no '" << from << "'";
    return text;
  }
  return text.replace(place, from.size(), to);
}

}  // namespace hemiola::test
