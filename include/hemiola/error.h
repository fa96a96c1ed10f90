// What goes wrong, as values: collected while reading, thrown once, rendered at the border.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace hemiola {

/// Where in the input something was found. Unknown parts stay empty or zero.
struct SourceLocation {
  std::string file{};     ///< as the user named it; "<option>" for what was said in none
  int line = 0;           ///< 1-based, 0 unknown
  int column = 0;         ///< 1-based, 0 unknown
  std::string pointer{};  ///< JSON pointer ("/gpus/0/ops/3") or XML path ("/algo/gpu[0]/tb[1]")
};

enum class Severity { error, warning, note };

struct Diagnostic {
  Severity severity = Severity::error;
  std::string message;  ///< one sentence, lower case, no full stop
  SourceLocation where;
  std::string hint;  ///< what to do about it; may be empty
};

/// "file:line:column: error: message (at /pointer)\n  hint: ..." without a trailing newline.
std::string render(const Diagnostic& diagnostic);

/// A list of diagnostics in the order they were found.
class Diagnostics {
 public:
  void error(std::string message, SourceLocation where = {}, std::string hint = {});
  void warning(std::string message, SourceLocation where = {}, std::string hint = {});
  void append(const Diagnostics& other);

  bool has_errors() const { return errors_ > 0; }
  bool empty() const { return items_.empty(); }
  const std::vector<Diagnostic>& items() const { return items_; }
  std::string render() const;  ///< one rendered diagnostic per line

 private:
  std::vector<Diagnostic> items_;
  int errors_ = 0;
};

/// The exit codes of every verb (fixed by the design).
enum class ExitCode : int {
  done = 0,
  internal = 1,
  bad_input = 2,
  wrong_program = 3,
  deadlock = 4,
  limit_exceeded = 5,  ///< one that was asked for (diff --fail-above)
  not_proven = 6       ///< nothing wrong was found, and nothing was proven (check, compile)
};

/// What an entrance throws: the whole list, and the exit code that the command line returns for it.
class Failure : public std::exception {
 public:
  explicit Failure(Diagnostics diagnostics, ExitCode code = ExitCode::bad_input);
  /// One error.
  explicit Failure(std::string message, SourceLocation where = {}, std::string hint = {},
                   ExitCode code = ExitCode::bad_input);

  const Diagnostics& diagnostics() const { return diagnostics_; }
  ExitCode code() const { return code_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Diagnostics diagnostics_;
  ExitCode code_;
  std::string text_;
};

/// What a computation that was asked to stop throws, once nothing of it is left running.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace hemiola
