// Ranks of the ASTRA-sim model: nodes that become ready, the resources that they take, and what
// they take of them.
//
// A rank has at most one node of the CPU, one kernel, and one communication or access of remote
// memory under way; receives are not limited. Of nodes that are ready, the lowest id goes first.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "workload/astra/astra.h"
#include "workload/astra/calendar.h"
#include "workload/astra/collectives.h"
#include "workload/astra/fabric.h"
#include "workload/followers.h"

namespace hemiola::workload::astra {

/// What an analysis of a trace gives once for all ranks that have it.
struct Order {
  explicit Order(const Workload& workload, const Trace& trace);

  std::vector<std::uint32_t> nodes;         ///< by rising id
  std::vector<std::uint32_t> ranking;       ///< of a node in `nodes`
  std::vector<std::uint32_t> dependencies;  ///< how many a node has, streams included
  Followers followers;
};

class Ranks : public Collectives::Listener {
 public:
  Ranks(const Workload& workload, const AstraConfiguration& configuration, bool folded,
        Calendar& calendar, Fabric& fabric);

  /// All ranks issue what waits for nothing.
  void begin();
  void over(std::uint32_t rank, std::uint32_t node) override;

  // Events.
  void parcel(std::uint32_t number);
  void memory_free(std::uint32_t number);

  Collectives& collectives() { return collectives_; }
  bool done() const { return unfinished_ == 0; }
  /// What every rank that is not done waits for.
  [[noreturn]] void fail_deadlock() const;
  /// Of the simulated ranks; without totals.
  AstraResult result() const;

 private:
  enum Resource : std::uint8_t { kHost, kCompute, kCommunication, kUnlimited, kResources };

  struct Rank {
    const RankClass* what = nullptr;
    const Order* order = nullptr;
    std::vector<std::uint32_t> waiting;  ///< by node: dependencies that are not over
    /// By resource: what is ready, as places in Order::nodes; heaps with the lowest first.
    std::array<std::vector<std::uint32_t>, kResources> ready;
    std::vector<std::uint32_t> late;  ///< ready too, but not before something else is over
    std::array<bool, kUnlimited> busy{};
    std::unordered_map<std::uint32_t, std::int64_t>
        under_way;                               ///< nodes, and when they were issued
    std::size_t left = 0;                        ///< nodes that are not over
    std::int64_t communications = 0, since = 0;  ///< under way, and since when at least one is
    AstraRank times;
    std::map<std::pair<NodeKind, std::int32_t>, AstraWork> works;
  };
  struct Parcel {
    std::uint32_t from = 0, node = 0;  ///< the send
    std::size_t box = 0;
  };
  /// Messages of one tag and size from one rank to another: those that are there, or the receives
  /// that wait.
  struct Box {
    std::uint32_t to = 0;
    std::int64_t there = 0;
    std::deque<std::uint32_t> receives;
  };
  struct RemoteMemory {
    bool busy = false;
    std::deque<std::pair<std::uint32_t, std::uint32_t>> waiting;  ///< rank, node
  };

  const Node& node_of(std::uint32_t rank, std::uint32_t node) const {
    return ranks_[rank].what->trace->nodes[node];
  }
  static Resource resource_of(const Node& node);
  static void make_ready(Rank& rank, std::uint32_t node);
  void issue_ready(std::uint32_t rank);
  void issue_pass(std::uint32_t rank);
  void issue(std::uint32_t rank, std::uint32_t node);
  void replay(std::uint32_t rank, std::uint32_t node);
  void compute(std::uint32_t rank, std::uint32_t node);
  void send(std::uint32_t rank, std::uint32_t node);
  void receive(std::uint32_t rank, std::uint32_t node);
  void access_memory(std::uint32_t rank, std::uint32_t node);
  void begin_access(std::size_t memory, std::uint32_t rank, std::uint32_t node);
  std::size_t box_of(std::uint32_t from, std::uint32_t to, const Message& message);
  int peer_of(std::uint32_t rank, const Message& message, bool sender) const;
  static void count_work(Rank& rank, const Node& node, std::int64_t time);
  void release(std::uint32_t rank, std::uint32_t node);
  void free_children(std::uint32_t rank, std::uint32_t node, bool at_once);
  std::string where(std::uint32_t rank, std::uint32_t node) const;

  const Workload& workload_;
  const AstraConfiguration& configuration_;
  Calendar& calendar_;
  Fabric& fabric_;
  Collectives collectives_;
  std::map<const Trace*, Order> orders_;
  std::vector<Rank> ranks_;
  std::size_t unfinished_ = 0;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::int64_t>, std::size_t>
      boxes_of_;
  /// Who a rank sends to or receives from, by family and whether the rank is the first of its pair.
  mutable std::map<std::pair<std::int32_t, bool>, std::unordered_map<int, int>> peers_;
  std::vector<Box> boxes_;
  Pool<Parcel> parcels_;
  std::vector<RemoteMemory> memories_;
};

}  // namespace hemiola::workload::astra
