// Messages about nodes that never begin. Private to the scheduler.
#pragma once

#include <string>
#include <vector>

#include "workload/scheduler/progress.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// "rank 3's node 17 'all-reduce'"; of a class of several "ranks 0-7's node ...".
std::string title(const Workload& workload, const Member& member);

/// Of a call in a group that a reader has inferred: "; the ranks of 'stream 7' are inferred: ...".
/// Empty for others.
std::string inference(const Workload& workload, const Node& node);

/// A call that some came to, and others did not.
struct Stuck {
  std::vector<Member> members;
  std::vector<std::int32_t> missing;  ///< classes
};

/// By class and node: how many dependencies are not over; -1: it is over itself.
using OpenNodes = std::vector<std::vector<std::int32_t>>;

/// Throws Failure with exit code 4: who waits for whom, or the circle.
[[noreturn]] void report_stuck(const Workload& workload, const std::vector<Stuck>& stuck,
                               const OpenNodes& open);

}  // namespace hemiola::workload
