// In which order the host gives the tasks of a rank to their streams, and which waits, events and
// signals that takes. Waits that an earlier one of the same stream implies are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "compile/fuse/tasks.h"

namespace hemiola::compile {

/// A wait of a stream in front of a task.
struct Wait {
  enum class Kind : std::uint8_t {
    stream,  ///< for all that a stream of the same rank has been given by now
    event,   ///< for a task of the same rank, behind which more was given already
    signal,  ///< for a task of another rank
    part     ///< for a part of a kernel of any rank: `on.position` is its number
  };
  Kind kind = Kind::stream;
  Point on;
};

/// A task as it is given, with what stands in front of it and behind it.
struct Issue {
  Point task;
  std::vector<Wait> waits;
  bool records = false;           ///< an event behind it, which a later wait names
  std::vector<int> signals_to{};  ///< ranks that wait for it, or whose kernels do, from the own
                                  ///< one on
};

/// By rank, in the order of the host. A transfer that a launch of any rank needs stands in front of
/// the first such launch of its own number; one that needs launches stands behind the last of them.
/// Failure (exit code 4) at `file` for tasks of a rank that wait for each other.
std::vector<std::vector<Issue>> order_of(const std::vector<RankTasks>& tasks,
                                         const std::string& file);

}  // namespace hemiola::compile
