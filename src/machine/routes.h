// A check on the whole machine that shares the rules of Machine::routes().
#pragma once

#include <optional>
#include <utility>

#include "machine/machine.h"

namespace hemiola::machine {

/// Two ranks of which the first has no route to the second, or nothing. Asks from every rank on
/// small machines and from rank 0 on large ones (ranks x links above 2 million).
std::optional<std::pair<int, int>> find_unreachable(const Machine& machine);

}  // namespace hemiola::machine
