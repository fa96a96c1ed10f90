// First-in first-out servers, and order tags of completions.
#pragma once

#include <cstdint>

#include "sim/device/device.h"

namespace hemiola::sim {

class Servers {
 public:
  explicit Servers(Device& device) : device_(device) {}

  /// Through a server, at once: when it leaves.
  std::int64_t serve(std::int32_t server, Request& request, std::int64_t arrival);
  /// Which of what waits at a server is served next; it waits no longer.
  std::int32_t take_next(Arbiter& arbiter) const;
  /// Order tag of a completion: the way on which the request comes back to its CU.
  enum class Return { l1, cu_in, slices, port };
  std::uint32_t complete_tag(int rank, Return way, std::int32_t cu_or_port) const;

 private:
  Device& device_;
};

}  // namespace hemiola::sim
