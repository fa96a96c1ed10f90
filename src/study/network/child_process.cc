#include "study/network/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "core/diagnostics.h"

extern char** environ;

namespace hemiola::study {

ChildProcess::ChildProcess(const std::string& program) : program_(program) {
  std::array<int, 2> in{}, out{};
  if (pipe2(in.data(), O_CLOEXEC) != 0) throw Failure("no pipe to " + program_);
  if (pipe2(out.data(), O_CLOEXEC) != 0) {
    close(in[0]);
    close(in[1]);
    throw Failure("no pipe from " + program_);
  }
  // A child that ends early is found by read(), not by a signal at a write.
  std::signal(SIGPIPE, SIG_IGN);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::array<char*, 2> arguments{program_.data(), nullptr};
  const int error =
      posix_spawn(&process_, program_.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_ = fdopen(in[1], "w");
  from_ = fdopen(out[0], "r");
  if (error != 0) {
    process_ = -1;
    std::fclose(to_);
    std::fclose(from_);
    throw Failure("cannot start " + program_, {},
                  "tools/test ns3 builds it; Debian's libns3-dev has ns-3");
  }
}

ChildProcess::~ChildProcess() {
  std::fclose(to_);
  std::fclose(from_);
  waitpid(process_, nullptr, 0);
}

void ChildProcess::write(const std::string& line) {
  std::fwrite(line.data(), 1, line.size(), to_);
  std::fputc('\n', to_);
}

std::string ChildProcess::read() {
  std::fflush(to_);
  std::string line;
  for (int c = std::fgetc(from_); c != '\n'; c = std::fgetc(from_)) {
    if (c == EOF) throw Failure(program_ + " has ended without an answer");
    line += static_cast<char>(c);
  }
  return line;
}

}  // namespace hemiola::study
