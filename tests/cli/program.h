// Runs the hemiola program as a user would, in a folder of its own.
#pragma once

#include <string>

namespace hemiola::test {

struct Outcome {
  int code = -1;  ///< exit code; 124: it took more than a minute; 128 + n: killed by signal n
  std::string out;
  std::string err;
};

/// The program while it runs; ended with the object.
class Running {
 public:
  explicit Running(int process, std::string streams)
      : process_(process), streams_(std::move(streams)) {}
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  /// Waits until it handles SIGINT itself: from then on it is in its work. False if it ended first,
  /// or does not come to that in a minute.
  bool wait_until_it_catches_interrupts();
  void send(int signal) const;
  /// Waits for its end.
  Outcome wait();

 private:
  int process_;  ///< -1: it has ended
  std::string streams_;
};

/// A temporary folder in which the program runs; gone with the object.
class Workplace {
 public:
  Workplace();
  ~Workplace();
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  void write(const std::string& name, const std::string& content) const;
  std::string read(const std::string& name) const;
  /// Names of the files in it, in order, with a blank after each.
  std::string files() const;
  /// `arguments` as a shell reads them.
  Outcome run(const std::string& arguments) const;
  /// The same, without waiting for its end. One at a time. `interrupts`: what SIGINT does to it
  /// before it says otherwise itself; scripts start what they put into the background with it
  /// ignored.
  enum class Interrupts { end_it, ignored };
  Running start(const std::string& arguments, Interrupts interrupts = Interrupts::end_it) const;
  /// Of a file in it, from here.
  std::string path(const std::string& name) const { return folder_ + '/' + name; }

 private:
  std::string folder_;
  std::string
      streams_;  ///< beside it, so that files() shows what the program left and nothing else
};

bool contains(const std::string& text, const std::string& word);

/// A file of tests/cli/inputs.
std::string fixture(const std::string& name);
/// The same with the first `from` replaced by `to`; fails the test where there is none.
std::string edited(const std::string& name, const std::string& from, const std::string& to);

}  // namespace hemiola::test
