// Ctrl-C (SIGINT), and SIGTERM where it is asked for: the first one asks what runs to stop where it
// can, the second one ends the program at once.
#pragma once

#include <atomic>

namespace hemiola::cli {

/// From now on SIGINT sets the flag, instead of ending the program. May be called again.
const std::atomic<bool>& catch_interrupts();

/// The same for SIGTERM too: of verbs that keep what they have when a job scheduler or `timeout`
/// stops them.
void catch_termination();

/// Ends the program as the signal does that came and was not caught (SIGINT if none did), so that a
/// shell sees 130 and leaves its loops too.
[[noreturn]] void end_interrupted();

}  // namespace hemiola::cli
