// Warnings, notes and progress: what goes to the terminal beside the results, on standard error.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "cli/cli.h"
#include "core/diagnostics.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

/// Prints each warning and note once, however often it is found; nothing with --quiet.
class Notices {
 public:
  explicit Notices(const Session& session) : quiet_(session.quiet), strict_(session.strict) {}
  /// With --strict Failure instead, if among them is what a reader ignored or converted, quiet or
  /// not.
  void show(const Diagnostics& diagnostics);
  void show(const study::Notices& notices);
  void note(const std::string& message, const std::string& hint = {});

 private:
  void show(const Diagnostic& diagnostic);

  bool quiet_, strict_;
  std::set<std::string> shown_;
};

/// A line that says what is being done, how much of it is, and how long the rest may take, once it
/// has taken a second; off a terminal one every half minute of what takes more than one. The line
/// is gone when the object is. While there is one, Ctrl-C is for Session::monitor, and stays so
/// until the program ends.
class Progress {
 public:
  explicit Progress(Session& session);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// What begins. Interrupted after a Ctrl-C.
  void doing(std::string what);
  /// The same, without an end of it: of work that several threads do, `share` (0 to 1) of it done.
  void show(std::string what, double share);
  /// What begins now takes the work from `begin` to `end`, as shares of all of it (0 to 1); how
  /// much of that is done, the monitor knows. Shares of what is estimated, not of time.
  void part(double begin, double end);
  /// Parts of one kind, "runs", of which so many are done.
  void parts(std::int64_t done, std::int64_t all, std::string_view kind);
  /// A line for a part that is over, on a terminal or not: what takes long shows what it has. The
  /// first lines are kept until all has taken two seconds, and never seen where it takes less.
  void finished(const std::string& part);

 private:
  void watch();
  double done() const;  ///< 0 to 1
  std::chrono::steady_clock::duration left(std::chrono::steady_clock::duration elapsed) const;
  std::string line(std::chrono::steady_clock::duration elapsed) const;

  Session& session_;
  double begin_ = 0, end_ = 1;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::string finished_;  ///< lines that are not printed yet
  std::thread watcher_;
};

/// Progress and notices of experiments, which Session::monitor watches.
study::Watch watch_of(Session& session, Progress& progress, Notices& notices);

/// Of a verb that was interrupted: what it was doing, how far it was, what it leaves behind.
std::string where_it_stood(const Session& session);

}  // namespace hemiola::cli
