// SyncMon's workgroups leave their CU while all their wavefronts sleep, if others want the place,
// and come back when woken. Their state is stored and loaded like other data.
#pragma once

#include <cstdint>
#include <deque>

#include "sim/device/device.h"

namespace hemiola::sim {

class Host;
class Issue;
class Sync;

class Residency {
 public:
  Residency(Device& device, Host& host, Issue& issue, Sync& sync)
      : device_(device), host_(host), issue_(issue), sync_(sync) {}

  /// A line of flags of one of its wavefronts did.
  void fell_asleep(std::int32_t group, std::int64_t now);
  /// For workgroups that have no place: those that sleep leave, who has slept longest first.
  void make_room(int rank, std::int64_t now);
  /// Somebody has left a CU.
  void give_room(int rank, const LatencyBreakdown& spent, bool newcomers_first, std::int64_t now);
  void state_moved(std::int32_t group, const LatencyBreakdown& spent, std::int64_t now);
  /// It was woken while it is not on a CU.
  void want(std::int32_t group, std::int64_t now);

 private:
  bool is_idle(const Workgroup& group) const;
  bool is_outranked(const RankState& state, std::int32_t priority) const;
  std::deque<std::int32_t>::iterator first_to_get_room(RankState& state, int rank) const;
  void move_state(std::int32_t group, Intent intent, std::int64_t now);
  bool switch_in(std::int32_t group, std::int64_t now);

  Device& device_;
  Host& host_;
  Issue& issue_;
  Sync& sync_;
};

}  // namespace hemiola::sim
