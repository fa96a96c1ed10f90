// What a reader finds again and again in one file: said once, with how often.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/diagnostics.h"
#include "core/lenient.h"

namespace hemiola {

/// Counts findings of one kind and keeps the first, because files repeat them by the thousand.
class Finding {
 public:
  /// `where()` is the place; it is asked for the first only, because finding a line takes a search
  /// through the file.
  template <typename Where>
  void note(std::string what, Where where) {
    if (count_++ > 0) return;
    text_ = std::move(what);
    first_ = where();
  }

  bool any() const { return count_ > 0; }

  /// "what (and 11 more like it)", if there was any.
  void warn(Diagnostics& warnings, std::string hint = {}) const;
  void warn(Diagnostics& warnings, Leniency leniency, std::string hint = {}) const;

 private:
  std::string counted() const;

  std::int64_t count_ = 0;
  SourceLocation first_;
  std::string text_;
};

}  // namespace hemiola
