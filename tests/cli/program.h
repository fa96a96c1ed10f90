// Runs the hemiola program as a user would, in a folder of its own.
#pragma once

#include <string>

namespace hemiola::test {

struct Outcome {
  int code = -1;  ///< exit code; 124: it took more than a minute; 128 + n: killed by signal n
  std::string out;
  std::string err;
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

 private:
  std::string folder_;
  std::string
      streams_;  ///< beside it, so that files() shows what the program left and nothing else
};

/// A file of tests/cli/inputs.
std::string fixture(const std::string& name);
/// The same with the first `from` replaced by `to`; fails the test where there is none.
std::string edited(const std::string& name, const std::string& from, const std::string& to);

}  // namespace hemiola::test
