// Workloads without a run, and searches, as text and JSON.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>

#include "workload/iteration/search.h"

namespace hemiola::report {

/// What a workload has: ranks, nodes, flop, bytes by kind of call, memory.
void print_workload(std::ostream& out, const workload::Workload& workload);
/// The `top` fastest, and why others were refused, counted.
void print_search(std::ostream& out, const workload::SearchOutcome& outcome, std::size_t top);
std::string search_json(const std::string& command, const workload::SearchOutcome& outcome);

}  // namespace hemiola::report
