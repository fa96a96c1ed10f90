// What a reader takes although it is not as the format says: files that others write and run.
//
// Such a warning begins with what became of the matter: "ignored: ..." or "converted: ...". Users
// can look for these words, and `--strict` makes errors of exactly these warnings. All other
// warnings of a reader (an assumed rate, a signal for nothing) are about a file that was
// understood.
#pragma once

#include <cstdint>
#include <string>

#include "core/diagnostics.h"

namespace hemiola {

enum class Leniency : std::uint8_t {
  ignored,   ///< it stands in the file and was left out
  converted  ///< it was read as what the format calls something else
};

/// A warning of this kind. `message` names what was ignored or converted.
void warn_leniently(Diagnostics& list, Leniency what, const std::string& message,
                    SourceLocation where, std::string hint = {});

bool is_lenient(const Diagnostic& diagnostic);

/// Failure with these warnings as errors, if there are any: bad input for whoever wants the format
/// as it is written down.
void refuse_lenient(const Diagnostics& list);

}  // namespace hemiola
