// The ways that requests of the line engine take, to other ranks and to multicast groups.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/device/device.h"
#include "sim/line/stages.h"
#include "sim/line/ways.h"
#include "sim/support/growing.h"

namespace hemiola::sim {

class Multicast;
struct MulticastPlane;

class WayTable {
 public:
  WayTable(Device& device, Multicast& multicast, Stages& stages)
      : device_(device), multicast_(multicast), stages_(stages) {}

  /// A program with multicast groups.
  static bool multicasts(const program::Bound& program);
  /// The ways of every simulated rank to its groups, and of their replicas; stages of switches.
  void make_groups();
  const Way& of(std::int32_t route) {
    if (route >= ways_made_.load(std::memory_order_acquire)) add_ways(route);
    return ways_[index(route)];
  }
  const WayLeg& leg_of(const Request& request) {
    if (request.group) [[unlikely]]
      return leg_of_group(request);
    const Way& way = of(request.route);
    return request.stage == Stage::back_out ? way.back : way.forward;
  }
  void prepare_multicast(Request& request) const;
  /// What a switch makes of a request that comes over one of its links.
  struct Replica {
    std::int32_t member;
    machine::LinkId down;
    std::int32_t way;  ///< for replica()
  };
  struct Replication {
    Way way;
    std::vector<Replica> replicas;
  };
  /// Of the how-manieth switch of a rank's group; of a request for a group.
  const Replication& replication(std::int32_t group, int rank, std::int32_t plane) const {
    return replications_[index(first_replication_.at(pair_key(group, rank)) + plane)];
  }
  const Replication& replication(const Request& request) const {
    return replications_[index(request.base)];
  }
  const Way& replica(std::int32_t way) const { return replica_ways_[index(way)]; }
  /// WayLeg::to of a leg that ends at a switch, and the number of its stage.
  static std::int32_t at_switch_of(std::int32_t stage) { return -1 - stage; }
  static std::int32_t switch_of(std::int32_t to) { return -1 - to; }

 private:
  void add_ways(std::int32_t route);
  Way make_way(const Leg& forward, const Leg& back) const;
  void add_replication(const MulticastPlane& plane, int rank, const std::vector<int>& members,
                       std::int32_t stage);
  const WayLeg& leg_of_group(const Request& request) const;

  Device& device_;
  Multicast& multicast_;
  Stages& stages_;
  Growing<Way> ways_;  ///< by Request::route
  std::atomic<std::int32_t> ways_made_ = 0;
  std::mutex making_ways_;
  std::vector<Replication> replications_;
  std::unordered_map<std::uint64_t, std::int32_t> first_replication_;  ///< by group and rank
  std::vector<Way> replica_ways_;
};

}  // namespace hemiola::sim
