// What-if: kernels, copies or the CPU's work take no time. (Calls that take none are the
// scheduler's: ScheduleOptions::without.)
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "workload/workload.h"

namespace hemiola::workload {

/// By kind, and by name.
struct LeftOut {
  bool products = false;
  bool attention = false;
  bool kernels = false;  ///< all others, by their bytes or as recorded
  bool copies = false;
  bool recorded_calls = false;       ///< communication of which only the time is known
  bool host = false;                 ///< the CPU: nodes of the host, and what it needs to launch
  std::vector<std::string> names{};  ///< of what was recorded so too, with `*` for any text
  bool any() const {
    return products || attention || kernels || copies || recorded_calls || host || !names.empty();
  }
};

/// The same workload where such nodes take no time; the same object if there are none to leave out.
/// A note in its notices for each kind or name that no node has: it changes nothing.
std::shared_ptr<const Workload> leave_out(std::shared_ptr<const Workload> workload,
                                          const LeftOut& what);

}  // namespace hemiola::workload
