#include "workload/costs/traffic.h"

#include <algorithm>

namespace hemiola::workload {

std::vector<Traffic> traffic_of(const sim::Result& result, std::size_t ranks, int launches) {
  std::vector<Traffic> traffic;
  for (const sim::LinkUse& link : result.links) {
    const auto known = std::ranges::find(traffic, link.link_class, &Traffic::link_class);
    Traffic& one = known == traffic.end() ? traffic.emplace_back(Traffic{link.link_class}) : *known;
    one.wire_bytes += static_cast<double>(link.wire_bytes);
  }
  for (Traffic& one : traffic) one.wire_bytes /= static_cast<double>(ranks) * launches;
  return traffic;
}

}  // namespace hemiola::workload
