// For tests of generated workloads: requests, sums over traces, and a tiny simulation of streams,
// in which kernels and communication take what the test says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "workload/models/generate.h"

namespace hemiola::workload::generated {

/// Small enough for simulations of every rank; no size equals another.
inline Model tiny_gpt(std::int64_t layers = 8) {
  return complete({.name = "tiny",
                   .layers = layers,
                   .hidden = 64,
                   .heads = 8,
                   .vocabulary = 1000,
                   .tied_embeddings = false,
                   .sequence = 32});
}

inline std::int64_t nodes_named(const Workload& workload, int stage, std::string_view name) {
  std::int64_t count = 0;
  for (const Node& node : workload.classes[static_cast<std::size_t>(stage)].trace->nodes)
    count += workload.names[node.name] == name ? 1 : 0;
  return count;
}

/// What one rank of a stage calls in the family of that name, in bytes by kind.
inline std::map<Collective, std::int64_t> bytes_called(const Workload& workload, int stage,
                                                       std::string_view family) {
  std::map<Collective, std::int64_t> bytes;
  for (const Node& node : workload.classes[static_cast<std::size_t>(stage)].trace->nodes) {
    if (node.kind != NodeKind::collective) continue;
    const CollectiveCall& call = workload.collectives[static_cast<std::size_t>(node.work)];
    if (workload.families[static_cast<std::size_t>(call.family)].name == family)
      bytes[call.kind] += call.bytes;
  }
  return bytes;
}

/// Bytes that one rank of a stage sends to other stages.
inline std::int64_t bytes_sent(const Workload& workload, int stage) {
  std::int64_t bytes = 0;
  for (const Node& node : workload.classes[static_cast<std::size_t>(stage)].trace->nodes) {
    if (node.kind == NodeKind::send)
      bytes += workload.messages[static_cast<std::size_t>(node.work)].bytes;
  }
  return bytes;
}

/// Flop of all ranks' kernels that `counts` says yes to.
inline double flop_of(const Workload& workload,
                      const std::function<bool(const Node&, const Compute&)>& counts) {
  double sum = 0;
  for (const RankClass& one : workload.classes) {
    double of_rank = 0;
    for (const Node& node : one.trace->nodes) {
      if (node.kind != NodeKind::compute) continue;
      const Compute& compute = workload.computes[static_cast<std::size_t>(node.work)];
      if (counts(node, compute)) of_rank += static_cast<double>(compute.flop);
    }
    sum += of_rank * static_cast<double>(one.ranks.size());
  }
  return sum;
}

using Duration = std::function<std::int64_t(const std::string& name)>;

/// Streams in their order; the n-th call of a group on a stream meets the n-th of its other ranks,
/// the n-th send of a pair, direction and tag the n-th receive: a send is over when it is received.
class Simulation {
 public:
  Simulation(const Workload& workload, const Duration& duration)
      : workload_(workload), duration_(duration) {
    ranks_.resize(static_cast<std::size_t>(workload.ranks));
    for (const RankClass& one : workload.classes) {
      for (const int rank : one.ranks) prepare(ranks_[static_cast<std::size_t>(rank)], one);
    }
    place_members();
    run();
  }

  /// Empty: everything was done. Otherwise the first node that was not.
  std::string stuck() const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (std::size_t n = 0; n < ranks_[r].end.size(); ++n) {
        if (ranks_[r].end[n] < 0)
          return "rank " + std::to_string(r) + " node " + std::to_string(n) + " '" +
                 workload_.names[ranks_[r].trace->nodes[n].name] + "'";
      }
    }
    return {};
  }
  std::int64_t time() const {
    std::int64_t latest = 0;
    for (const Rank& rank : ranks_) {
      for (const std::int64_t end : rank.end) latest = std::max(latest, end);
    }
    return latest;
  }
  std::int64_t end_of(int rank, std::size_t node) const {
    return ranks_[static_cast<std::size_t>(rank)].end[node];
  }
  std::int64_t busy(int rank) const { return ranks_[static_cast<std::size_t>(rank)].busy; }

 private:
  struct Rank {
    const Trace* trace = nullptr;
    std::vector<std::vector<std::uint32_t>> streams;
    std::vector<std::size_t> next;   ///< of each stream
    std::vector<std::int64_t> free;  ///< of each stream: when
    std::vector<bool> has_arrived;   ///< of each stream: its head waits for peers
    std::vector<std::int64_t> end;   ///< of each node; -1: not over
    std::int64_t busy = 0;
    std::map<std::tuple<int, int, int, int>, int> calls;  ///< made so far
  };
  struct Arrival {
    std::size_t rank;
    std::size_t stream;
    std::int64_t ready;
  };

  void prepare(Rank& rank, const RankClass& one) const {
    rank.trace = one.trace.get();
    rank.streams.resize(workload_.streams.size());
    for (std::uint32_t n = 0; n < one.trace->nodes.size(); ++n)
      rank.streams[one.trace->nodes[n].stream].push_back(n);
    rank.next.resize(rank.streams.size());
    rank.free.resize(rank.streams.size());
    rank.has_arrived.resize(rank.streams.size());
    rank.end.assign(one.trace->nodes.size(), -1);
  }

  void place_members() {
    group_of_.resize(workload_.families.size());
    begun_by_.resize(workload_.families.size());
    for (std::size_t f = 0; f < workload_.families.size(); ++f) {
      group_of_[f].assign(ranks_.size(), -1);
      begun_by_[f] = group_of_[f];
      for (std::size_t g = 0; g < workload_.families[f].groups.size(); ++g) {
        const std::vector<int>& group = workload_.families[f].groups[g];
        for (const int rank : group) {
          auto& groups = rank == group.front() ? begun_by_ : group_of_;
          groups[f][static_cast<std::size_t>(rank)] = static_cast<int>(g);
        }
      }
    }
  }

  void run() {
    bool goes_on = true;
    while (goes_on) {
      goes_on = false;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        for (std::size_t s = 0; s < ranks_[r].streams.size(); ++s) {
          while (advance(r, s)) goes_on = true;
        }
      }
    }
  }

  /// Whether the head of the stream was over, or came to meet its peers.
  bool advance(std::size_t r, std::size_t s) {
    Rank& rank = ranks_[r];
    if (rank.next[s] == rank.streams[s].size() || rank.has_arrived[s]) return false;
    const std::uint32_t n = rank.streams[s][rank.next[s]];
    const Node& node = rank.trace->nodes[n];
    std::int64_t ready = rank.free[s];
    for (std::uint32_t d = 0; d < node.dependencies; ++d) {
      const std::int64_t end = rank.end[rank.trace->dependencies[node.first_dependency + d]];
      if (end < 0) return false;
      ready = std::max(ready, end);
    }
    if (node.kind == NodeKind::collective || node.kind == NodeKind::send ||
        node.kind == NodeKind::receive) {
      meet(r, s, node, ready);
      return true;
    }
    const std::int64_t time = duration_(workload_.names[node.name]);
    rank.busy += time;
    finish({.rank = r, .stream = s, .ready = ready}, ready + time);
    return true;
  }

  void finish(const Arrival& arrival, std::int64_t end) {
    Rank& rank = ranks_[arrival.rank];
    rank.end[rank.streams[arrival.stream][rank.next[arrival.stream]]] = end;
    rank.free[arrival.stream] = end;
    rank.has_arrived[arrival.stream] = false;
    ++rank.next[arrival.stream];
  }

  void meet(std::size_t r, std::size_t s, const Node& node, std::int64_t ready) {
    const bool is_collective = node.kind == NodeKind::collective;
    const auto work = static_cast<std::size_t>(node.work);
    const int family =
        is_collective ? workload_.collectives[work].family : workload_.messages[work].family;
    // Of collectives the stream, of messages direction and tag.
    const int which = is_collective ? node.stream : workload_.messages[work].tag;
    const int direction = is_collective ? 0 : 1 + (workload_.messages[work].from_first ? 1 : 0);
    const bool sends = node.kind == NodeKind::send;
    const bool is_first = is_collective ? begun_by_[static_cast<std::size_t>(family)][r] >= 0
                                        : sends == workload_.messages[work].from_first;
    const int group = (is_first ? begun_by_ : group_of_)[static_cast<std::size_t>(family)][r];
    const auto& members = workload_.families[static_cast<std::size_t>(family)]
                              .groups[static_cast<std::size_t>(group)];
    if (!is_collective) {
      EXPECT_EQ(is_first, members.front() == static_cast<int>(r))
          << "rank " << r << " is on the other end of the message";
    }
    const int number = ranks_[r].calls[{family, which, direction, is_collective || sends}]++;
    Meeting& meeting = meetings_[{family, group, which, direction, number}];
    if (!meeting.arrivals.empty()) {
      EXPECT_EQ(meeting.work, node.work) << "calls that meet differ";
    }
    meeting.work = node.work;
    meeting.arrivals.push_back({.rank = r, .stream = s, .ready = ready});
    ranks_[r].has_arrived[s] = true;
    if (meeting.arrivals.size() < members.size()) return;
    std::int64_t begin = 0;
    for (const Arrival& one : meeting.arrivals) begin = std::max(begin, one.ready);
    const std::int64_t end = begin + duration_(workload_.names[node.name]);
    for (const Arrival& one : meeting.arrivals) finish(one, end);
  }

  struct Meeting {
    std::int32_t work = -1;
    std::vector<Arrival> arrivals;
  };

  const Workload& workload_;
  const Duration& duration_;
  std::vector<Rank> ranks_;
  /// By family and rank: the group in which it comes first, and that in which it comes later.
  std::vector<std::vector<int>> begun_by_, group_of_;
  std::map<std::tuple<int, int, int, int, int>, Meeting> meetings_;
};

}  // namespace hemiola::workload::generated
