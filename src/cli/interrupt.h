// Ctrl-C: the first one asks what runs to stop where it can, the second one ends the program at
// once.
#pragma once

#include <atomic>

namespace hemiola::cli {

/// From now on SIGINT sets the flag, instead of ending the program. May be called again.
const std::atomic<bool>& catch_interrupts();

/// Ends the program as an uncaught SIGINT does, so that a shell sees 130 and leaves its loops too.
[[noreturn]] void end_interrupted();

}  // namespace hemiola::cli
