// What a switch does for its multicast groups (NVLS): replicas, and answers that it reduces.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/device.h"
#include "sim/model/multicast_planes.h"

namespace hemiola::sim {

class Tracing;

class Multicast {
 public:
  Multicast(Device& device, Tracing& tracing) : device_(device), tracing_(tracing) {}

  struct Answered {
    std::int32_t parent = -1;  ///< whose last answer it was
    std::int64_t time = 0;     ///< when it leaves the switch
  };
  const std::vector<MulticastPlane>& planes(std::int32_t group, int rank) {
    return planes_.of(group, rank);
  }
  /// That on which a request for a group is.
  const MulticastPlane& plane_of(const Request& request) {
    return planes(device_.detail(request).group, request.source)[index(request.route)];
  }
  /// The I/O port of its GPU through which a request to others, of a group or not, leaves and its
  /// answer comes back.
  std::int32_t source_port(const Request& request);
  /// A request for a group is at its switch.
  void count_multicast(std::int32_t id);
  std::int32_t make_replica(std::int32_t id, int member, machine::LinkId down);
  /// Order tag with which a member's answer comes to the switch.
  std::uint32_t tag_of_answer(const Request& answer) const;
  Answered take_answer(std::int32_t id, std::int64_t now);

 private:
  Device& device_;
  Tracing& tracing_;
  MulticastPlanes planes_{device_.machine, device_.program};
};

}  // namespace hemiola::sim
