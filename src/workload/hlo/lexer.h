// Words, numbers and balanced text of HLO. Private to its reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/diagnostics.h"

namespace hemiola::workload::hlo {

/// A place in a text that goes forward. `file` and `text` outlive it.
class Cursor {
 public:
  /// `whole` is what places are counted in; the cursor reads `part` of it.
  Cursor(const std::string& file, std::string_view whole, std::string_view part)
      : file_(file), whole_(whole), at_(offset_in_whole(part)), end_(at_ + part.size()) {}

  std::size_t offset() const { return at_; }
  bool at_end() const { return at_ >= end_; }
  /// '\0' at the end.
  char peek() const { return at_end() ? '\0' : whole_[at_]; }

  /// Back to where it has been.
  void rewind(std::size_t offset) { at_ = offset; }

  /// Blanks, line ends and comments.
  void skip_blanks();
  /// Blanks and comments up to the end of the line.
  void skip_blanks_of_line();
  /// Whether the next character is `c`, which is then taken. Blanks before it are skipped.
  bool take(char c);
  bool take(std::string_view text);
  /// Failure unless take(). `what`: "a ')' that ends the operands".
  void expect(char c, std::string_view what);

  /// [A-Za-z0-9_.-]*, empty if there is none.
  std::string_view word();
  /// The same after an optional '%'. Failure if it is empty.
  std::string_view name(std::string_view what);
  /// Failure if there is none, or it is beyond 64 bits.
  std::int64_t integer(std::string_view what);

  /// From the opening bracket that is here to behind its closing one; strings and comments in it
  /// are passed over.
  std::string_view balanced();
  /// An attribute's value: up to a comma, a closing bracket or a line's end that is in no brackets.
  std::string_view value();

  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    fail_at(at_, message, hint);
  }
  [[noreturn]] void fail_at(std::size_t offset, const std::string& message,
                            const std::string& hint = {}) const;
  /// What is next, for messages: "'x'", "the end of the line", "the end of the text".
  std::string next() const;

 private:
  std::size_t offset_in_whole(std::string_view part) const {
    return part.empty() ? whole_.size() : static_cast<std::size_t>(part.data() - whole_.data());
  }
  bool skip_comment();
  void skip_string();

  const std::string& file_;
  std::string_view whole_;
  std::size_t at_, end_;
};

}  // namespace hemiola::workload::hlo
