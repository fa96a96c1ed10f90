#include "sim/model/multicast_planes.h"

#include <algorithm>
#include <string>

#include "core/diagnostics.h"
#include "sim/support/index.h"

namespace hemiola::sim {

machine::LinkId MulticastPlane::down_to(int member) const {
  return std::ranges::find_if(down, [&](const auto& lane) { return lane.first == member; })->second;
}

const std::vector<MulticastPlane>& MulticastPlanes::of(std::int32_t group, int rank) {
  std::vector<MulticastPlane>& planes = known_[pair_key(group, rank)];
  if (planes.empty()) planes = find(group, rank);
  return planes;
}

std::vector<MulticastPlane> MulticastPlanes::find(std::int32_t group, int rank) const {
  const std::vector<int>& members = program_.groups()[index(group)];
  std::vector<MulticastPlane> planes;
  for (const machine::NodeId node : machine_.multicast_switches(members)) {
    for (const machine::LinkId up : machine_.lanes(machine_.gpus[index(rank)], node)) {
      MulticastPlane plane{.node = node, .up = up, .down = {}};
      for (const int member : members) {
        const auto lanes = machine_.lanes(node, machine_.gpus[index(member)]);
        plane.down.emplace_back(member,
                                lanes[index(machine_.links[index(up)].lane) % lanes.size()]);
      }
      planes.push_back(std::move(plane));
    }
  }
  if (planes.empty())
    throw Failure("multicast group " + std::to_string(group) + " has no switch in common");
  return planes;
}

}  // namespace hemiola::sim
