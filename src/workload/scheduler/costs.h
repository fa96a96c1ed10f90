// What launches cost: alone, and beside each other. The scheduler (schedule.h) asks.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "core/time.h"
#include "core/units.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// Launches of one kind take the same time alone.
struct LaunchKind {
  /// `send`: a message, on both its ranks. `receive`: a receiver copies out of its FIFO what was
  /// sent before it came.
  NodeKind kind = NodeKind::compute;
  std::int32_t work = -1;   ///< as in Node
  std::int32_t place = -1;  ///< of Places: which ranks take part
  Time fixed{};             ///< takes so long, whatever else runs; 0: to be found

  auto operator<=>(const LaunchKind&) const = default;
};

/// What takes part in one launch: groups of ranks that do the same, each for itself.
struct Place {
  std::vector<std::vector<int>> groups;  ///< of a compute: one rank each
  std::vector<std::int32_t> classes;     ///< of Workload, whose ranks are in these groups
  bool operator==(const Place&) const = default;
};

/// Speeds are parts of kFullSpeed: an integer, so that a schedule is the same on every host.
constexpr std::int64_t kFullSpeed = 1'000'000;

/// What a launch begins behind.
enum class Follows : std::uint8_t {
  nothing,       ///< nothing was before it
  own_stream,    ///< a launch of its stream has just ended: it was dispatched meanwhile
  other_stream,  ///< its stream waited for something else
};

/// Whether it runs on each rank for itself, and uses no link.
inline bool is_local(NodeKind kind) {
  return is_kernel(kind) || kind == NodeKind::receive;
}

class Costs {
 public:
  virtual ~Costs() = default;
  /// From its begin to its end. At least 1 fs.
  virtual Time alone(const LaunchKind& kind, Follows follows) = 0;
  /// From the host's call to its start where the stream is empty.
  virtual Time latency(const LaunchKind& kind) = 0;
  /// Of a message: what the connection's FIFO takes before the receiver has come. A send that fits
  /// into it does not wait for its receive.
  virtual Bytes buffer(const LaunchKind&) { return {}; }
  /// The speeds of launches that are under way together on the ranks of a class, in their order;
  /// each in [1, kFullSpeed]. At least two, none with a fixed time.
  virtual std::vector<std::int64_t> speeds(std::int32_t rank_class,
                                           const std::vector<LaunchKind>& together) = 0;
};

}  // namespace hemiola::workload
