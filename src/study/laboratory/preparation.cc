#include "study/laboratory/preparation.h"

#include "core/lists.h"

namespace hemiola::study {

std::string to_text(const Settings& settings) {
  return joined(
      settings, [](const auto& one) { return one.first + '=' + one.second; }, " ");
}

Bytes round_up(const program::Program& program, const program::BindOptions& wanted) {
  program::BindOptions at = wanted;
  at.type = program.fixed_type.value_or(wanted.type);
  while (true) {  // a program that follows the size may be another one at the size above
    const Bytes next = program.follows_size() ? program.sized(at).next_legal_size(at.size, at.type)
                                              : program.next_legal_size(at.size, at.type);
    if (next == at.size) return next;
    at.size = next;
  }
}

Bytes round_down(const program::Program& program, const program::BindOptions& wanted) {
  const auto next = [&](std::int64_t size) {
    program::BindOptions at = wanted;
    at.size = {size};
    return round_up(program, at);
  };
  // The next legal size never falls where sizes rise: the last of those whose next is not above.
  std::int64_t fits = 0, above = wanted.size.count + 1;
  while (above - fits > 1) {
    const std::int64_t middle = fits + (above - fits) / 2;
    (next(middle) <= wanted.size ? fits : above) = middle;
  }
  return fits == 0 ? Bytes{} : next(fits);
}

std::string rounding_note(Bytes asked, Bytes taken, const std::string& program) {
  return to_string(asked) + " is run as " + to_string(taken) + ", the next size that " + program +
         " takes";
}

void check_skew(std::span<const Time> skew, int ranks, const SourceLocation& where) {
  if (std::ssize(skew) <= ranks) return;
  throw Failure("lists " + std::to_string(skew.size()) + " starts, but the program has " +
                    std::to_string(ranks) + " ranks",
                where);
}

std::string error_text(const Failure& failure) {
  std::string text;
  for (const Diagnostic& item : failure.diagnostics().items()) {
    if (item.severity != Severity::error) continue;
    text += (text.empty() ? "" : "; ") + item.message;
    if (!item.hint.empty()) text += " (" + item.hint + ")";
  }
  return text;
}

std::string weaker(const std::string& a, const std::string& b) {
  if (a.empty() || b == "skipped") return b;
  return a == "full" ? b : a;
}

}  // namespace hemiola::study
