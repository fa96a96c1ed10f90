// How busy the links are over the time of an iteration.
//
// A machine of thousands of links is kept as a row for each class of ranks and class of links: what
// the calls of a rank put on the wires of such links, over what those of a GPU can take (all links
// of the class on the machine, shared out among its GPUs). So it is a mean over the ranks of a
// class and both directions of links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "workload/costs/simulated_costs.h"
#include "workload/scheduler/places.h"
#include "workload/scheduler/schedule.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Bins of equal length over the whole time.
constexpr std::size_t kLinkBins = 96;

struct LinkShares {
  std::int32_t rank_class = 0;
  std::string link_class;
  double wire_bytes = 0;       ///< of a rank, in the whole time
  std::vector<double> shares;  ///< by bin, from 0 up: how much of the rate is used
};

/// Rows that carry something, by class of ranks, then in the order of the machine's classes. A call
/// sends evenly from its begin to its end; of a message each side has half. Calls that were not
/// simulated carry nothing.
std::vector<LinkShares> link_shares(const Workload& workload, Places& places, SimulatedCosts& costs,
                                    const machine::Machine& machine, const ScheduleResult& result);

}  // namespace hemiola::workload
