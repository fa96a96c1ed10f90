// Warnings, notes and progress: what goes to the terminal beside the results, on standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "core/diagnostics.h"

namespace hemiola::cli {

/// Prints each warning and note once, however often it is found.
class Notices {
 public:
  explicit Notices(bool quiet) : quiet_(quiet) {}
  void show(const Diagnostics& diagnostics);
  void note(const std::string& message, const std::string& hint = {});

 private:
  void show(const Diagnostic& diagnostic);

  bool quiet_;
  std::set<std::string> shown_;
};

/// A line that says what is being done, on a terminal and only once it has taken a second. The line
/// is gone when the object is.
class Progress {
 public:
  explicit Progress(bool enabled);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void doing(std::string what);

 private:
  void watch();

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace hemiola::cli
