// Errors and warnings as values (hemiola/error.h), and what readers need beside them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hemiola/error.h"

namespace hemiola {

/// Of what was said on the command line.
inline const SourceLocation kOption{.file = "<option>"};

/// The nearest of `candidates` by edit distance as "did you mean 'x'?", or `otherwise` when none is
/// near.
std::string suggest(std::string_view word, const std::vector<std::string>& candidates,
                    const std::string& otherwise = {});

}  // namespace hemiola
