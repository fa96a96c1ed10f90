// The machine as plans see it: ways between ranks, the links that each occupies, and for how long.
// Coarser than the simulator: parallel links are one, a transfer spreads evenly over all paths of
// its way, and only bandwidths (of links and of the GPUs' ports to them) and latencies count.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/monitor.h"
#include "core/time.h"
#include "machine/machine.h"

namespace hemiola::plan {

/// One direction of all parallel links between two nodes.
struct Trunk {
  machine::NodeId from = 0, to = 0;
  std::int32_t link_class = 0;
  std::int32_t lanes = 0;
  Rate bandwidth{};  ///< of all lanes, raw; not more than a NIC at one of its ends does
  Rate ports{};      ///< of all lanes, data without headers: the slower GPU at its ends; 0: ideal
};

/// How data gets from one rank to another.
struct Way {
  struct Use {
    std::int32_t trunk = 0;
    std::int32_t paths = 0;  ///< of those of the way
  };
  int from = 0, to = 0;
  std::int32_t paths = 1;  ///< equally loaded
  std::vector<Use> uses;
  Time latency{0};  ///< of the first byte, links and switches and NICs
  bool is_network = false;
};

class Fabric {
 public:
  /// Both outlive it. Interrupted when the monitor asks for it, as in way(): large machines have
  /// many.
  explicit Fabric(const machine::Machine& machine, const Monitor* monitor = nullptr);

  int ranks() const { return machine_.ranks(); }
  const machine::Machine& machine() const { return machine_; }
  const std::vector<Trunk>& trunks() const { return trunks_; }

  /// Along the machine's routes. Failure: none. Stays valid as long as the fabric.
  const Way& way(int from, int to);

  /// The ways that pass through no other rank: links between ranks, through one switch, and where
  /// that does not connect them, through more. Ranks that reach each other by load and store are an
  /// island; of the ways of a rank into another island only those with the fewest hops are listed.
  std::vector<std::pair<int, int>> neighbours();
  std::int32_t island(int rank) const { return islands_[index(rank)]; }

  /// From a compute unit at one end of a way to the memory at the other, for data or a flag.
  Time crossing(const Way& way) const;
  /// A load from own memory, in the L2.
  Time load(int rank) const;

  /// Of a workgroup between two transfers, where the first is told to others and the second waits
  /// for something: a fence with nothing to wait for, syncs, a poll.
  Time pause(int rank) const;
  /// From the begin of a release fence with nothing to wait for until a workgroup of the other rank
  /// (or of the same) has seen the flag behind it.
  Time flag(int from, int to);
  /// From the last byte's leaving until it can be used: it is loaded, arrives, is acknowledged, and
  /// a flag follows; behind a NIC the flag is posted behind the data.
  Time handover(const Way& way);

  /// How long `bytes` keep a trunk busy, or the ports of the GPUs at the ends of a way that it has
  /// (0: none, or ideal ones).
  Time wire(const Way& way, const Way::Use& use, std::int64_t bytes) const;
  Time port(const Way& way, const Way::Use& use, std::int64_t bytes) const;
  /// The longer of both, and the busiest of a way.
  Time busy(const Way& way, const Way::Use& use, std::int64_t bytes) const;
  Time busy(const Way& way, std::int64_t bytes) const;

 private:
  struct Reached {
    int rank = 0;
    int hops = 0;
  };
  std::vector<Reached> reach(int rank, bool through_nics) const;
  void find_trunks();
  void find_islands();
  bool add_short_way(int from, int to);
  void add_routes(int from, int to);
  Time latency_of(machine::NodeId node, bool is_end) const;

  const machine::Machine& machine_;
  const Monitor* monitor_;
  std::vector<Trunk> trunks_;
  std::vector<std::int32_t> trunk_of_;              // by link
  std::vector<std::vector<std::int32_t>> leaving_;  // by node: trunks
  std::vector<int> rank_of_;                        // by node, or -1
  std::vector<std::int32_t> islands_;               // by rank
  std::vector<std::int32_t> paths_;                 // by trunk: of the way being added
  std::map<std::pair<int, int>, Way> ways_;
};

/// Ranks from 0 on that rank 0 reaches by loads and stores, itself among them: those of a node,
/// where nodes are alike and their ranks follow each other.
int node_size(const machine::Machine& machine);

}  // namespace hemiola::plan
