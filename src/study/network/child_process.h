// Another program that answers lines with lines.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>

namespace hemiola::study {

class ChildProcess {
 public:
  /// Failure where it cannot be started.
  explicit ChildProcess(const std::string& program);
  /// Its input ends, and so should it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Without the line's end. What is written is sent at the next read().
  void write(const std::string& line);
  /// Failure where it has ended.
  std::string read();

 private:
  std::string program_;
  pid_t process_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
};

}  // namespace hemiola::study
