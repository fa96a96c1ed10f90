// Why nothing moves any more.
#pragma once

#include "verify/programs/describe.h"

namespace hemiola::verify {

/// Explains a stuck interpretation: the missing signal, packet or barrier mate if there is one,
/// else the cycle of workgroups that wait for each other.
Finding explain_deadlock(const Interpreter& interpreter, const Memory& memory);

}  // namespace hemiola::verify
