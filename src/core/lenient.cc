#include "core/lenient.h"

#include <array>
#include <string_view>
#include <utility>

namespace hemiola {
namespace {

constexpr std::array<std::string_view, 2> kWords{"ignored: ", "converted: "};

}  // namespace

void warn_leniently(Diagnostics& list, Leniency what, const std::string& message,
                    SourceLocation where, std::string hint) {
  list.warning(std::string(kWords.at(static_cast<std::size_t>(what))) + message, std::move(where),
               std::move(hint));
}

bool is_lenient(const Diagnostic& diagnostic) {
  if (diagnostic.severity != Severity::warning) return false;
  for (const std::string_view word : kWords)
    if (diagnostic.message.starts_with(word)) return true;
  return false;
}

void refuse_lenient(const Diagnostics& list) {
  Diagnostics errors;
  for (const Diagnostic& diagnostic : list.items()) {
    if (!is_lenient(diagnostic)) continue;
    errors.error(diagnostic.message, diagnostic.where,
                 diagnostic.hint.empty() ? "without --strict it is a warning" : diagnostic.hint);
  }
  if (errors.has_errors()) throw Failure(errors);
}

}  // namespace hemiola
