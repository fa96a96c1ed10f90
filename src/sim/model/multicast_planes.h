// The switches and lanes over which ranks reach their multicast groups (NVLS).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"

namespace hemiola::sim {

struct MulticastPlane {
  machine::NodeId node = 0;  ///< a switch
  machine::LinkId up = 0;    ///< a lane to it
  /// By member, in the order of the group: the lane to it. They are dealt by that on which a
  /// request came.
  std::vector<std::pair<int, machine::LinkId>> down;

  /// `member` is one of the group.
  machine::LinkId down_to(int member) const;
};

/// What is given outlives this.
class MulticastPlanes {
 public:
  MulticastPlanes(const machine::Machine& machine, const program::Bound& program)
      : machine_(machine), program_(program) {}

  /// Those of a rank; at least one. Failure: the group's members have no switch in common.
  const std::vector<MulticastPlane>& of(std::int32_t group, int rank);

 private:
  std::vector<MulticastPlane> find(std::int32_t group, int rank) const;

  const machine::Machine& machine_;
  const program::Bound& program_;
  std::unordered_map<std::uint64_t, std::vector<MulticastPlane>> known_;
};

}  // namespace hemiola::sim
