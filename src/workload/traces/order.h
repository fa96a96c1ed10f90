// Order of nodes that wait for each other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace hemiola::workload {

/// The indices of nodes in an order in which each stands behind its dependencies, and otherwise as
/// they are: of those that may come next, the first. Empty: they are so already. Failure (deadlock)
/// with the nodes of a cycle, if there is one.
std::vector<std::uint32_t> order_nodes(const Trace& trace, const std::vector<std::string>& names);

}  // namespace hemiola::workload
