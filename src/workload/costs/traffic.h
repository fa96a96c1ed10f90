// What launches put on links.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/result/result.h"

namespace hemiola::workload {

/// What a launch puts on the wires of all links of a class, by each rank that takes part.
struct Traffic {
  std::string link_class;
  double wire_bytes = 0;
};

/// By each of `ranks`, in one of `launches` that did the same.
std::vector<Traffic> traffic_of(const sim::Result& result, std::size_t ranks, int launches);

}  // namespace hemiola::workload
