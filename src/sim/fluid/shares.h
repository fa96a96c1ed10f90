// Max-min fair shares: flows over resources of finite capacity, solved by progressive filling.
//
// All rates of active flows rise together, each by its part; a flow stops at its own limit or when
// one of its resources is full. Changes of one instant are solved together, and only where they can
// matter: a resource that could not be filled even if every flow on it ran at its own limit
// connects nobody. Flows that are alike are solved as one. Integer arithmetic throughout; the
// result depends on the order of calls only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/units.h"
#include "sim/result/result.h"

namespace hemiola::sim {

constexpr std::int64_t kSecond = 1'000'000'000'000'000;  ///< fs

/// What a flow takes of a resource per byte that it moves: units of capacity, times 2^20. With
/// classes of flows and resources: of one resource of the class, by all flows of the class.
struct Demand {
  std::int32_t resource = 0;
  std::int64_t weight = 0;
  std::int64_t answers = 0;  ///< of it, what comes back to loads
};
constexpr int kWeightBits = 20;
/// How fast the rate of a flow rises beside those of others: as fast.
constexpr std::int64_t kEvenPart = 1024;

/// Of loads from other GPUs: bytes whose requests are under way at once, which come back after
/// `latency` fs where nothing queues. Answers come in bursts, so a line waits behind part of all
/// windows of its link (so many eighths), and a flow reaches its link's rate only with several
/// times the product of rate and latency. An exchange is a move that loads from and stores to
/// several GPUs; it waits in so far as a link has only answers, or only stores, of such moves.
struct LoadWindow {
  std::int64_t bytes = 0, latency = 0;
  int eighths = 0;
  bool exchanges = false;
};

class Shares {
 public:
  /// Capacity in units per second; ideal ones limit nobody. Number of the resource.
  std::int32_t add_resource(Rate capacity, Reason reason);

  /// A flow of `bytes` starts at `now`. `limit`: its own, in bytes per second, 0 for none, charged
  /// to `reason`. The demands of one resource are added up. Number of the flow (reused later).
  /// `window`: what it keeps under way over links, if it is only that which its limit allows.
  /// `part`: of what it shares with others, beside their kEvenPart.
  std::int32_t start(const std::vector<Demand>& demands, std::int64_t bytes, std::int64_t limit,
                     Reason reason, std::int64_t now, const LoadWindow& window = {},
                     std::int64_t part = kEvenPart);

  /// Solves what start() and finish() left open; `now` is not before the time of either.
  void settle(std::int64_t now);
  bool settled() const { return dirty_.empty() && fresh_.empty(); }

  /// Time of the next end of a flow, INT64_MAX if there is none. Only when settled.
  std::int64_t next();
  /// Ends the flow that next() spoke of: its number. `charged` gets the time it took, by the reason
  /// that limited it.
  std::int32_t finish(Attribution& charged);

  /// Of a flow under way: bytes that are left, their rate (0: not solved yet), and what limits
  /// that.
  std::int64_t left(std::int32_t flow, std::int64_t now) const;
  std::int64_t rate(std::int32_t flow) const { return kind_of_flow(flow).rate; }
  Reason reason(std::int32_t flow) const { return kind_of_flow(flow).reason; }

  /// How often flows that are alike got a rate.
  std::int64_t updates() const { return updates_; }

 private:
  /// Flows that take the same of the same resources under the same limits have the same rate at all
  /// times: what is solved is solved for all of them.
  struct Kind {
    std::vector<Demand> demands;
    std::int64_t limit = 0;  ///< of its own and of each resource alone
    Reason limit_reason = Reason::issue;
    LoadWindow window;
    std::int64_t part = kEvenPart;
    std::uint64_t hash = 0;  ///< of all these

    std::vector<std::int32_t> flows;  ///< heap, the first to end on top
    std::int64_t rate = 0;            ///< bytes per second; 0: not solved yet
    Reason reason = Reason::issue;
    std::int64_t since = 0;
    __int128 served = 0;    ///< to each flow until `since`: bytes times femtoseconds per second
    Attribution charged{};  ///< time until `since`, by what limited the rate
    std::int64_t end = 0;   ///< of the first flow, at this rate
    std::int32_t at = -1;   ///< in the heap of ends; -1: no rate yet

    std::int64_t present_limit = 0;  ///< while solving: limit, with the queues of its links
    std::int64_t last_level = 0;     ///< while solving: at which it has that
    std::int64_t given = 0;          ///< while solving: its rate ...
    Reason given_reason = Reason::issue;
    bool visited = false, frozen = false;
    __int128 members() const { return static_cast<__int128>(flows.size()); }
  };
  struct Flow {
    std::int32_t kind = 0;
    __int128 target = 0;      ///< ends when its kind has served so much
    std::uint64_t order = 0;  ///< in which flows started: of those that end at once
    Attribution before{};     ///< what its kind was charged before it began
  };
  struct Resource {
    std::int64_t capacity = 0;
    Reason reason = Reason::link;
    bool dirty = false, visited = false, binding = false;
    std::vector<std::int32_t> kinds{};
    __int128 potential = 0;  ///< use if every flow ran at its own limit
    __int128 left = 0;       ///< while solving: capacity not given away, times 2^20
    __int128 active = 0;     ///< while solving: weight of the flows that still rise, by their parts
    __int128 windows = 0;    ///< of links: windows of flows times their weights
    __int128 answers = 0;    ///< of these, of answers
  };
  /// While solving: the level at which a resource is full, as far as that is known; it only rises.
  struct Full {
    __int128 level;
    std::size_t place;  ///< of the resource among those touched
    bool operator>(const Full& other) const {
      return level != other.level ? level > other.level : place > other.place;
    }
  };

  const Kind& kind_of_flow(std::int32_t flow) const {
    return kinds_[static_cast<std::size_t>(flows_[static_cast<std::size_t>(flow)].kind)];
  }
  std::int32_t kind_of(Kind& wanted);
  void leave_resources(std::int32_t kind);
  void mark(std::int32_t resource);
  void visit(std::int32_t kind);
  void collect();
  void fill();
  void freeze(Kind& kind, std::int64_t rate, Reason reason);
  void push_full(std::size_t place);
  void set_rate(std::int32_t kind, std::int64_t now);
  void find_end(std::int32_t kind);
  static void advance(Kind& kind, std::int64_t now);
  bool ends_later(std::int32_t a, std::int32_t b) const;
  bool ends_before(std::int32_t a, std::int32_t b) const;
  void put(std::size_t at, std::int32_t kind);
  void sift(std::size_t at);
  void add_window(const Kind& kind, int sign);
  void limit_by_queues(Kind& kind) const;
  static bool full_possible(const Resource& resource);
  /// Whether a change of one of its flows can be noticed by others.
  static bool connects(const Resource& resource) {
    return resource.windows > 0 || full_possible(resource);
  }

  std::vector<Resource> resources_;
  std::vector<Kind> kinds_;
  std::unordered_multimap<std::uint64_t, std::int32_t> kinds_by_hash_;
  std::vector<Flow> flows_;
  std::vector<std::int32_t> free_kinds_, free_flows_;
  std::vector<std::int32_t> dirty_;                              ///< resources
  std::vector<std::int32_t> fresh_;                              ///< kinds with new flows
  std::vector<std::int32_t> touched_resources_, touched_kinds_;  ///< of what is being solved
  std::vector<std::int32_t> order_;                              ///< touched kinds by their limit
  std::vector<Full> fulls_;                                      ///< heap, the lowest on top
  std::vector<std::int32_t> ends_;                               ///< heap of kinds by their end
  Kind wanted_;  ///< of the flow that starts: kept for its vectors
  std::uint64_t order_of_starts_ = 0;
  std::int64_t updates_ = 0;
};

}  // namespace hemiola::sim
