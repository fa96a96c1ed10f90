// What the fabric offers one pair of GPUs when nothing else runs.
#pragma once

#include <cstdint>
#include <string>

#include "machine/machine.h"

namespace hemiola::report {

struct PairFigures {
  machine::Reach reach = machine::Reach::none;
  std::int64_t hops = 0;
  std::int64_t paths = 0;
  bool ideal = false;    ///< no link on the way has a finite bandwidth
  double bandwidth = 0;  ///< bytes per second, raw, with requests spread evenly over all paths
  /// One line of the sender from the first link to the end of the last one of path 0: serialisation
  /// and latency of each link, latency of switches and NICs between. Nothing inside the GPUs.
  Time latency{};
};

/// `from` and `to` are different ranks.
PairFigures pair_figures(const machine::Machine& machine, int from, int to);

std::string reach_text(const PairFigures& figures);      ///< "load/store", "network", "none"
std::string bandwidth_text(const PairFigures& figures);  ///< GB/s; "inf"; "-" out of reach
std::string latency_text(const PairFigures& figures);    ///< ns; "-" out of reach

/// bandwidth x payload / (payload + header), as text with its unit.
std::string goodput(const machine::LinkClass& link);

}  // namespace hemiola::report
