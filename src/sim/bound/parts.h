// Times of single requests, and what the walk of a bound keeps of signals, packets and workgroups.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "program/walk/cursor.h"
#include "sim/bound/traffic.h"
#include "sim/result/result.h"
#include "sim/support/index.h"
#include "sim/support/line_map.h"

namespace hemiola::sim {

/// Unloaded times of single requests.
class Latencies {
 public:
  /// `period`: a pair of ranks stands for those a number of periods further, and takes the time of
  /// the nearest of them; the number of ranks: each for itself.
  Latencies(const machine::Machine& machine, const program::Bound& program, int period)
      : machine_(machine), program_(program), period_(period) {}

  // One request of `payload` bytes over the links.
  std::int64_t links(int from, int to, std::int64_t payload) {
    if (from == to) return 0;
    const int ranks = program_.ranks(), first = from % period_;
    const int other = (to - from + first + ranks) % ranks;
    std::vector<Known>& known = known_[pair_number(first, other)];
    for (const Known& one : known)
      if (one.payload == payload) return one.time;
    std::int64_t best = INT64_MAX;
    for (int by = 0; by < ranks; by += period_)
      best = std::min(best, shortest((first + by) % ranks, (other + by) % ranks, payload));
    known.push_back({payload, best});
    return best;
  }

  std::int64_t on_chip(int rank) const {
    const machine::GpuModel& m = machine_.model(rank);
    return m.noc_kind == machine::NocKind::mesh ? m.noc_hop_latency.fs : m.noc_latency.fs;
  }
  std::int64_t io(int rank) const { return machine_.model(rank).noc_io_latency.fs; }

  // Arrival at the memory of `to`, after issue.
  std::int64_t store_arrival(int from, int to, std::int64_t payload) {
    return on_chip(from) + (from == to ? 0 : io(from) + links(from, to, payload) + io(to));
  }
  std::int64_t acknowledgement(int from, int to) {
    const std::int64_t memory = machine_.model(to).l2_latency.fs;
    return memory + on_chip(from) + (from == to ? 0 : io(to) + links(to, from, 0) + io(from));
  }
  std::int64_t load(int rank, const program::Span& span, std::int64_t bytes) {
    if (span.rank < 0) return multicast(rank, span, bytes, true);
    const machine::GpuModel& m = machine_.model(rank);
    if (span.rank == rank && m.l1_size.count > 0 && span.access == program::Access::plain)
      return std::min(m.l1_latency.fs, 2 * on_chip(rank) + m.l2_latency.fs);  // a hit, or a miss
    return store_arrival(rank, span.rank, 0) + machine_.model(span.rank).l2_latency.fs +
           on_chip(rank) +
           (span.rank == rank ? 0 : io(span.rank) + links(span.rank, rank, bytes) + io(rank));
  }
  std::int64_t multicast(int rank, const program::Span& span, std::int64_t bytes, bool load) {
    const auto [entry, is_new] = groups_.try_emplace({span.group, rank});
    if (is_new) entry->second = through_switch(rank, span.group);
    const ThroughSwitch& way = entry->second;
    if (way.link == nullptr) return 0;
    return way.fixed + (load ? way.link->bandwidth.time_for(way.link->wire_bytes(bytes)).fs : 0);
  }

 private:
  struct ThroughSwitch {
    const machine::LinkClass* link = nullptr;  ///< null: nothing is known
    std::int64_t fixed = 0;                    ///< there and back
  };
  ThroughSwitch through_switch(int rank, std::int32_t group) const {
    const auto switches = machine_.multicast_switches(program_.groups()[index(group)]);
    if (switches.empty()) return {};
    const auto lanes = machine_.lanes(machine_.gpus[index(rank)], switches.front());
    if (lanes.empty()) return {};
    const machine::LinkClass& link = machine_.class_of(lanes.front());
    const machine::Node& node = machine_.nodes[index(switches.front())];
    return {&link,
            2 * (on_chip(rank) + io(rank)) + 4 * link.latency.fs + node.switch_model.latency.fs};
  }

  std::int64_t shortest(int from, int to, std::int64_t payload) const {
    const machine::Routes& routes = machine_.routes(from, to);
    std::int64_t best = -1;
    for (std::int32_t p = 0; p < routes.count; ++p) {
      std::int64_t sum = 0;
      const auto path = routes.path(p);
      for (std::size_t h = 0; h < path.size(); ++h) {
        const machine::LinkClass& c = machine_.class_of(path[h]);
        sum += c.latency.fs + c.bandwidth.time_for(c.wire_bytes(payload)).fs;
        const machine::Node& node = machine_.nodes[index(machine_.links[index(path[h])].to)];
        if (node.kind == machine::NodeKind::nic)
          sum += node.nic_model.latency.fs;
        else if (node.kind != machine::NodeKind::xpu)
          sum += node.switch_model.latency.fs;
      }
      best = best < 0 ? sum : std::min(best, sum);
    }
    return std::max<std::int64_t>(0, best);
  }

  const machine::Machine& machine_;
  const program::Bound& program_;
  const int period_;
  struct Known {
    std::int64_t payload = 0, time = 0;
  };
  LineMap<std::vector<Known>> known_;  ///< by pair_number(): few payloads
  std::map<std::pair<std::int32_t, int>, ThroughSwitch> groups_;  ///< by group and rank
};

/// A semaphore's signals, in the order in which the walk came to them.
class Signals {
 public:
  /// `from`: the rank that sends them, as seen from the semaphore's own.
  void add(int from, std::int64_t count, std::int64_t arrival) {
    if (count <= 0) return;
    several_ = several_ || (this->count() > 0 && from != from_);
    from_ = from;
    earliest_ = this->count() > 0 ? std::min(earliest_, arrival) : arrival;
    arrivals_.insert(arrivals_.end(), index(count), arrival);
  }
  std::int64_t count() const { return forgotten_ + static_cast<std::int64_t>(arrivals_.size()); }
  /// When the n-th (from 1) can have arrived. Of several signallers nobody knows here whose signal
  /// comes when, and the n-th may be forgotten: the first is a bound.
  std::int64_t arrival(std::int64_t n) const {
    return several_ || n <= forgotten_ ? earliest_ : arrivals_[index(n - 1 - forgotten_)];
  }
  /// Of one signaller and one who waits: those before the n-th take no more memory.
  void forget_before(std::int64_t n) {
    const std::int64_t old = n - 1 - forgotten_;
    if (old < kKept || 2 * old < std::ssize(arrivals_)) return;
    arrivals_.erase(arrivals_.begin(), arrivals_.begin() + old);
    forgotten_ += old;
  }

  std::int64_t consumed = 0;
  std::int64_t needed = 0;  ///< highest number waited for

 private:
  static constexpr std::int64_t kKept = 64;
  std::vector<std::int64_t> arrivals_;  ///< but those forgotten
  std::int64_t forgotten_ = 0;
  std::int64_t earliest_ = 0;
  int from_ = 0;
  bool several_ = false;
};

/// A descriptor that a workgroup posted.
struct Post {
  int from = 0, to = 0;
  std::size_t agent = 0;  ///< that posted it
  std::int64_t bytes = 0;
  bool flushed = false;
  /// Its signals, and how many of each semaphore came before.
  std::vector<std::pair<program::SemaphoreId, std::int64_t>> signals{};
};

/// Data that LL readers wait for: when the first byte of each written range can have arrived.
class PacketArrivals {
 public:
  void add(std::int64_t begin, std::int64_t end, std::int64_t arrival) {
    ranges_[begin] = {end, arrival};
  }
  /// Whether all of [begin, end) is written, and then when the first of it can be there.
  bool covered(std::int64_t begin, std::int64_t end, std::int64_t& arrival) const {
    arrival = INT64_MAX;
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin()) --at;
    std::int64_t reached = begin;
    for (; at != ranges_.end() && at->first <= reached && reached < end; ++at) {
      if (at->second.first <= reached) continue;
      arrival = std::min(arrival, at->second.second);
      reached = at->second.first;
    }
    return reached >= end;
  }

 private:
  std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> ranges_;  ///< begin -> (end, time)
};

/// A workgroup (the wavefront that synchronises, and the others) or a copy queue that is walked.
struct WalkedAgent {
  int rank = 0;
  const AgentClass* stands_for = nullptr;  ///< all of it; null: itself
  std::int64_t members() const { return stands_for == nullptr ? 1 : stands_for->members; }
  std::unique_ptr<program::Cursor> cursor;
  program::Primitive primitive;
  bool loaded = false, done = false;
  struct Copies {
    bool prelaunched = false;    ///< commands are there before it is the queue's turn
    bool in_batch = false;       ///< in the middle of a submission
    std::int64_t batch_way = 0;  ///< the longest way of its copies so far
  };
  std::optional<Copies> copies{};  ///< of a copy queue
  bool bare = false;               ///< Kernel::bare
  std::int64_t waves = 1, grain = 16, unroll = 1;
  std::int32_t last_op = -1;
  std::int64_t lead = 0, rest = 0;  ///< time of the lead wavefront, of the others
  bool posts_apart = false;
  std::int64_t poster = 0;                   ///< ... and of the one that only signals
  std::int64_t stores_lead = 0, stores = 0;  ///< acknowledgement of their latest stores
  std::int64_t stores_joined = 0;            ///< ... of those before the last sync
  std::int64_t compute_end = 0;              ///< of a compute that overlaps
  std::int64_t accepted = 0;                 ///< the access that ended the latest wait
  std::int64_t posted = 0;                   ///< completion of the latest descriptor
  std::vector<std::size_t> posts;            ///< its descriptors
  std::int64_t end = 0;

  /// The times that go on with what it does.
  auto clock() const {
    return std::array{lead, rest, poster, stores_lead, stores, stores_joined, compute_end};
  }
  void shift(std::int64_t by) {
    for (std::int64_t* time :
         {&lead, &rest, &poster, &stores_lead, &stores, &stores_joined, &compute_end})
      *time += by;
  }
  /// When it began the latest tile of a table: with how many left.
  struct TileBegan {
    std::int64_t left = 0, moved_bytes = 0;
    std::array<std::int64_t, 7> clock{};
  } tile_began{};
};

/// Arrivals at a barrier among workgroups, of all its rounds.
class BarrierRounds {
 public:
  /// The last arrival of its round releases the agent, which stands for so many of its rank; false:
  /// it has not come yet.
  bool join(WalkedAgent& agent, std::int64_t of_rank, std::int32_t workgroups) {
    const auto [place, fresh] = places_.try_emplace(&agent, arrivals_.size());
    if (fresh) {
      agent.lead = std::max(agent.lead, agent.rest);
      arrivals_.insert(arrivals_.end(), index(of_rank), agent.lead);
    }
    const auto width = index(workgroups);
    const std::size_t first = place->second / width * width;
    if (arrivals_.size() < first + width) return false;
    const auto begin = arrivals_.begin() + static_cast<std::ptrdiff_t>(first);
    agent.lead = agent.rest = *std::max_element(begin, begin + workgroups);
    places_.erase(place);
    return true;
  }

 private:
  std::vector<std::int64_t> arrivals_;
  std::map<const WalkedAgent*, std::size_t> places_;
};

}  // namespace hemiola::sim
