// What a call leaves behind in semaphores and FIFOs, where the next call finds it.
#pragma once

#include <cstdint>
#include <optional>

#include "verify/programs/describe.h"

namespace hemiola::verify {

struct LeftOver {
  /// The first that makes a wait or a receive of the next call end too early, or keeps one from
  /// ending later on; its step is who left it.
  std::optional<Finding> disturbs;
  std::int64_t more_disturb = 0;  ///< others like it
  /// The first semaphore with signals that nobody ever waits for: no call is disturbed.
  std::optional<Finding> ignored;
  std::int64_t more_ignored = 0;
};

/// After the first call has ended. Credits and progress semaphores count on over calls: of them,
/// and of packets in FIFOs, it is compared how much goes in and comes out.
LeftOver left_over(const Interpreter& interpreter);

}  // namespace hemiola::verify
