// Watches one execution after the other: a text that ends the process, or on which it does not end,
// is kept.
#pragma once

#include <functional>
#include <string>

namespace hemiola::fuzz {

/// Once. From then on an abort, of a sanitizer too, and an execution without end leave the text in
/// ./fuzz-crash, say so and end the process with status 1.
void guard_process();

/// read(), which is at work on `text`, for some seconds at most.
bool guarded(const std::string& text, const std::function<bool()>& read);

}  // namespace hemiola::fuzz
