// Traffic over cuts: the bandwidth half of a program's bound. Private to bound/.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "sim/alike/classes.h"
#include "sim/result/result.h"
#include "sim/support/index.h"
#include "sim/support/line_map.h"

namespace hemiola::sim {

/// Of an ordered pair of ranks, for a LineMap.
inline std::int64_t pair_number(int from, int to) {
  return static_cast<std::int64_t>(pair_key(from, to));
}

inline std::pair<int, int> ranks_of(std::int64_t pair_number) {
  const auto key = static_cast<std::uint64_t>(pair_number);
  return {first_of(key), second_of(key)};
}

/// Wire bytes by cut: what leaves or enters a node, over all links that its traffic may use there;
/// and single links that traffic without a choice takes.
class LinkTraffic {
 public:
  explicit LinkTraffic(const machine::Machine& machine) : machine_(machine) {}

  /// `requests` packets of together `payload` bytes from one rank to another.
  void add(int from, int to, std::int64_t payload, std::int64_t requests) {
    if (from == to || requests == 0) return;
    pairs_[pair_number(from, to)].add(payload, requests);
  }

  /// The same through the switches of a group: a load brings what all members have to `rank`, added
  /// up; a store takes it to all of them.
  void add_group(int rank, std::int32_t group, bool load, std::int64_t payload,
                 std::int64_t requests) {
    groups_[{rank, group, load}].add(payload, requests);
  }

  /// What was added is that of the first `period` ranks: adds the same for all periods behind.
  /// `groups`: of the program.
  void repeat(int period, int ranks, const std::vector<std::vector<int>>& groups);

  /// `classes`: what was added is all that the members of each class carry, at the places of the
  /// first; null: each where it goes.
  LowerBound bound(const std::vector<std::vector<int>>& groups, const Classes* classes) const;

 private:
  struct Pair {
    std::int64_t payload = 0;
    std::int64_t requests = 0;
    void add(std::int64_t more_payload, std::int64_t more_requests) {
      payload += more_payload;
      requests += more_requests;
    }
  };
  using Crossing = std::pair<machine::NodeId, machine::LinkId>;
  struct Cut {
    std::vector<machine::LinkId> links;  ///< ascending
    std::int64_t wire = 0;
    void add(std::span<const Crossing> used, std::int64_t bytes);
  };
  /// true: what leaves the node. In order of nodes.
  using Cuts = std::map<std::pair<machine::NodeId, bool>, Cut>;
  struct Crossings {
    Cuts cuts;
    std::map<machine::LinkId, Cut> single;                         ///< each of one link
    std::map<std::vector<machine::NodeId>, std::int64_t> reduced;  ///< operands, by switches
  };
  struct GroupKey {
    int rank = 0;
    std::int32_t group = 0;
    bool load = false;
    auto operator<=>(const GroupKey&) const = default;
  };

  Crossings crossings(const std::vector<std::vector<int>>& groups) const;
  void add_group_cuts(const GroupKey& key, const Pair& pair,
                      const std::vector<std::vector<int>>& groups, Crossings& all) const;
  void add_cuts(std::vector<Crossing>& crossings, bool leaves, std::int32_t paths, const Pair& pair,
                Cuts& cuts) const;
  std::vector<bool> crossed_by_members(const Crossings& first,
                                       const std::vector<std::vector<int>>& groups,
                                       const Classes& classes) const;
  Crossings of_all_members(const Crossings& first, const std::vector<std::vector<int>>& groups,
                           const Classes& classes) const;
  std::vector<Crossing> lanes_of(int rank, const std::vector<machine::NodeId>& switches,
                                 bool leaves) const;
  std::int64_t wire(machine::LinkId link, const Pair& pair) const;

  const machine::Machine& machine_;
  LineMap<Pair> pairs_;  ///< by pair_number()
  std::map<GroupKey, Pair> groups_;
};

}  // namespace hemiola::sim
