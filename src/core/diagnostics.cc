#include "core/diagnostics.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hemiola {
namespace {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Insertions, deletions, substitutions and swaps of neighbours; case and '-' against '_' are free.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    const auto plain = [](char c) { return c == '_' ? '-' : lower(c); };
    return plain(x) == plain(y);
  };
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = previous[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

/// Whether the word is the beginning or the end of a name, part by part: "h100" of "dgx-h100",
/// "l2.size" of "gpu.l2.size".
bool is_part(std::string_view word, std::string_view name) {
  constexpr std::string_view kBetween = "-./";
  if (word.empty() || name.size() <= word.size()) return false;
  const std::size_t rest = name.size() - word.size();
  return (name.ends_with(word) && kBetween.find(name[rest - 1]) != kBetween.npos) ||
         (name.starts_with(word) && kBetween.find(name[word.size()]) != kBetween.npos);
}

}  // namespace

std::string render(const Diagnostic& diagnostic) {
  const SourceLocation& where = diagnostic.where;
  std::string text;
  if (!where.file.empty() && where.file != kOption.file) {
    text += where.file;
    if (where.line > 0) text += ':' + std::to_string(where.line);
    if (where.line > 0 && where.column > 0) text += ':' + std::to_string(where.column);
    text += ": ";
  }
  text += name_of(diagnostic.severity);
  text += ": ";
  text += diagnostic.message;
  if (!where.pointer.empty()) text += " (at " + where.pointer + ')';
  if (!diagnostic.hint.empty()) text += "\n  hint: " + diagnostic.hint;
  return text;
}

void Diagnostics::error(std::string message, SourceLocation where, std::string hint) {
  items_.push_back({Severity::error, std::move(message), std::move(where), std::move(hint)});
  ++errors_;
}

void Diagnostics::warning(std::string message, SourceLocation where, std::string hint) {
  items_.push_back({Severity::warning, std::move(message), std::move(where), std::move(hint)});
}

void Diagnostics::append(const Diagnostics& other) {
  // By index: `other` may be this list itself.
  const std::size_t count = other.items_.size();
  const int errors = other.errors_;
  items_.reserve(items_.size() + count);
  for (std::size_t i = 0; i < count; ++i) items_.push_back(other.items_[i]);
  errors_ += errors;
}

std::string Diagnostics::render() const {
  std::string text;
  for (const Diagnostic& item : items_) {
    if (!text.empty()) text += '\n';
    text += hemiola::render(item);
  }
  return text;
}

Failure::Failure(Diagnostics diagnostics, ExitCode code)
    : diagnostics_(std::move(diagnostics)), code_(code), text_(diagnostics_.render()) {}

Failure::Failure(std::string message, SourceLocation where, std::string hint, ExitCode code)
    : code_(code) {
  diagnostics_.error(std::move(message), std::move(where), std::move(hint));
  text_ = diagnostics_.render();
}

std::string suggest(std::string_view word, const std::vector<std::string>& candidates,
                    const std::string& otherwise) {
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates)
    if (is_part(word, candidate) && (best == nullptr || candidate.size() < best->size()))
      best = &candidate;
  if (best != nullptr) return "did you mean '" + *best + "'?";
  for (const std::string& candidate : candidates) {
    // A third of the letters may be wrong; a longer distance is a guess, not a suggestion.
    const std::size_t limit = (std::max(word.size(), candidate.size()) + 1) / 3;
    const std::size_t difference = word.size() > candidate.size() ? word.size() - candidate.size()
                                                                  : candidate.size() - word.size();
    if (difference > limit) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > limit) continue;
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? "did you mean '" + *best + "'?" : otherwise;
}

}  // namespace hemiola
