#include "program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

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
  for (const auto& entry : fs::directory_iterator(folder_))
    names.insert(entry.path().filename().string());
  std::string text;
  for (const std::string& name : names) text += name + ' ';
  return text;
}

Outcome Workplace::run(const std::string& arguments) const {
  const std::string command = "cd '" + folder_ +
                              "' && < /dev/null timeout 60 '" HEMIOLA_BINARY "' " + arguments +
                              " > ../out 2> ../err";
  const int status = std::system(command.c_str());
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = slurp(fs::path(streams_) / "out");
  outcome.err = slurp(fs::path(streams_) / "err");
  return outcome;
}

Running Workplace::start(const std::string& arguments, Interrupts interrupts) const {
  const std::string command = "cd '" + folder_ + "' && exec '" HEMIOLA_BINARY "' " + arguments +
                              " > ../out 2> ../err < /dev/null";
  // Inherited; whatever the test itself was started with.
  const auto own = std::signal(SIGINT, interrupts == Interrupts::ignored ? SIG_IGN : SIG_DFL);
  const pid_t process = ::fork();
  if (process == 0) {
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::signal(SIGINT, own);
  return Running(process, streams_);
}

Running::~Running() {
  if (process_ < 0) return;
  send(SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Running::send(int signal) const {
  ::kill(process_, signal);
}

bool Running::wait_until_it_catches_interrupts() {
  const std::string status = "/proc/" + std::to_string(process_) + "/status";
  for (int i = 0; i < 6000; ++i) {
    std::ifstream file(status);
    for (std::string line; std::getline(file, line);) {
      if (!line.starts_with("SigCgt:")) continue;
      const std::uint64_t caught = std::stoull(line.substr(7), nullptr, 16);
      if ((caught >> (SIGINT - 1) & 1) != 0) return true;
    }
    if (::waitpid(process_, nullptr, WNOHANG | WNOWAIT) == process_) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Outcome Running::wait() {
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  Outcome outcome;
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.out = slurp(fs::path(streams_) / "out");
  outcome.err = slurp(fs::path(streams_) / "err");
  return outcome;
}

bool contains(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
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
