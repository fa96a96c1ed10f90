// Whether a text is still what it was.
#pragma once

#include <string>
#include <string_view>

namespace hemiola::study {

/// FNV-1a, 64 bits, in hexadecimal: to notice that something has changed, not to defend against
/// anybody.
std::string digest(std::string_view content);

}  // namespace hemiola::study
