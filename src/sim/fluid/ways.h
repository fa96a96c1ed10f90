// Ways between ranks as the fluid engine sees them: resources that a byte takes, and latencies of
// one request that has the machine to itself.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "machine/machine.h"
#include "program/semantics/primitive.h"
#include "program/walk/slices.h"
#include "sim/alike/classes.h"
#include "sim/fluid/shares.h"
#include "sim/model/multicast_planes.h"

namespace hemiola::sim {

/// Femtoseconds of a way, by reason.
struct Latency {
  Attribution by_reason{};
  std::int64_t fs = 0;
  void add(Reason reason, std::int64_t time) {
    by_reason[index(reason)] += time;
    fs += time;
  }
  Latency& operator+=(const Latency& other) {
    for (std::size_t r = 0; r < kReasons; ++r) by_reason[r] += other.by_reason[r];
    fs += other.fs;
    return *this;
  }
};

/// `fs` of a latency's reasons in its proportions, into an attribution.
void charge(Attribution& spent, const Latency& latency, std::int64_t fs);
inline void charge(Attribution& spent, const Latency& latency) {
  for (std::size_t r = 0; r < kReasons; ++r) spent[r] += latency.by_reason[r];
}
inline void charge(Attribution& spent, Reason reason, std::int64_t fs) {
  spent[index(reason)] += fs;
}

/// A time, and what led to it.
struct Moment {
  std::int64_t time = 0;
  Attribution spent{};

  void add(Reason reason, std::int64_t fs) {
    charge(spent, reason, fs);
    time += fs;
  }
  void add(const Latency& latency) {
    charge(spent, latency);
    time += latency.fs;
  }
  /// The latency's reasons in its proportions.
  void add(const Latency& latency, std::int64_t fs) {
    charge(spent, latency, fs);
    time += fs;
  }
  /// The later one of the two.
  void join(std::int64_t other, const Attribution& other_spent) {
    if (other <= time) return;
    time = other;
    spent = other_spent;
  }
  void join(const Moment& other) { join(other.time, other.spent); }
};

/// What a span of a move takes of links and of memory.
struct Requests {
  std::int64_t count = 0;
  std::int64_t bytes = 0;  ///< of memory, in whole sectors
};

/// Slices that differ by a unit, of which a walker has one and stands for all.
struct Slices {
  std::int64_t count = 1, units = 0, unit = 1;  ///< units of all of them
  std::int64_t own = 0;                         ///< which one the walker has
  std::int64_t begin(std::int64_t slice) const {
    return program::slice_begin(units * unit, unit, slice, count);
  }
};

/// Requests for `data` bytes of a span, by instructions of `wave` bytes each: one for each line
/// that an instruction touches. A walker stands for workgroups whose parts follow each other: where
/// these are no multiples of a line (or sector) they begin anywhere in one, and instructions touch
/// one more.
Requests requests_of(const program::Span& span, std::int64_t data, std::int64_t wave,
                     const machine::GpuModel& model, const Slices& slices = {});

/// What a unit takes to issue all requests of a move, alone: by its instructions, or by the slower
/// of its ports. `in`, `out`: bytes of data.
std::int64_t issue_time(const machine::GpuModel& model, std::int64_t loads, std::int64_t stores,
                        std::int64_t in, std::int64_t out);

/// How far behind the L2 an access gets: not at all; to the memory-side cache and, as far as what
/// the program touches does not fit there, to memory; to memory, as no cache has it yet. Where
/// there is no such cache the last two are one.
enum class Depth : std::uint8_t { l2, cache, memory };

class Ways {
 public:
  /// `touched`: as Options::touched.
  Ways(const machine::Machine& machine, const program::Bound& program, const Classes& fold,
       Shares& shares, std::int64_t touched);

  /// What `bytes` of memory cost at the L2 of a rank, and behind it; per byte of a flow of `total`
  /// bytes that `members` agents have at once.
  void at_memory(int rank, std::int64_t bytes, Depth depth, std::int64_t total,
                 std::int64_t members, std::vector<Demand>& out) const;
  /// Operands of a matrix product, which the L2 serves at gemm.l2_rate.
  void at_operands(int rank, std::int64_t bytes, Depth depth, std::int64_t total,
                   std::int64_t members, std::vector<Demand>& out) const;
  /// `bytes` behind the L2 alone.
  void behind_l2(int rank, std::int64_t bytes, Depth depth, std::int64_t total,
                 std::int64_t members, std::vector<Demand>& out) const;
  /// `bytes` in `requests` requests from one rank to another over links and ports, each followed by
  /// an answer without payload, or (`pulled`) asked for by one. `packet`: payload of a packet, 0
  /// the link's own.
  void over_links(int from, int to, std::int64_t bytes, std::int64_t requests, std::int64_t packet,
                  bool pulled, std::int64_t total, std::int64_t members, std::vector<Demand>& out);
  /// The same through the switches of a multicast group, from or (loads) to `rank`; `depth`: of
  /// the members.
  void over_group(int rank, std::int32_t group, std::int64_t bytes, std::int64_t requests,
                  bool load, Depth depth, std::int64_t total, std::int64_t alike,
                  std::vector<Demand>& out);

  /// From the issue of a store to its acceptance at the memory of `to`.
  const Latency& store(int from, int to);
  /// From there until its acknowledgement is back at `from`.
  const Latency& acknowledgement(int from, int to);
  /// From the issue of a load until its data are back.
  Latency load(int rank, int owner, Depth depth);
  /// Over the links and ports alone, without the network on chip of either end.
  const Latency& links(int from, int to);
  /// links() for a burst of so many bytes, in packets of `packet`: it goes on once it is whole.
  Latency burst(int from, int to, std::int64_t bytes, std::int64_t packet) const;
  /// What a flag's bytes take on the slowest link.
  std::int64_t flag_time(int from, int to) { return way(from, to).flag_time; }
  /// Through a multicast group and back; the rest as of load().
  Latency group(int rank, std::int32_t group, bool load, Depth depth = Depth::l2);
  Latency on_chip(int rank, int times = 1) const;

  /// Bytes that the program of a rank touches, by class of ranks.
  const std::vector<std::int64_t>& footprint() const { return footprint_; }
  /// Where a load of the buffer finds it, or how far stores to it get: by the size of what the
  /// rank's program touches (docs/fluid.md). No cache has what the caller put into a buffer before
  /// its first repetition is over.
  Depth depth_of(int rank, std::int32_t buffer, bool load, int repetition) const;

 private:
  /// To a load that finds its line behind the L2 of `owner`.
  void add_memory(int owner, Depth depth, Latency& latency) const;
  struct Share {
    std::int32_t resource;
    std::int64_t share;       ///< of a byte, times 2^20; of all links of the class, by one agent
    std::int64_t links;       ///< in the class
    std::int32_t link_class;  ///< of the machine; -1: a port, which carries no headers
  };
  struct Way {
    std::vector<Share> there, back;
    Latency links;
    Latency store, acknowledgement;
    std::int64_t flag_time = 0;  ///< fs
    bool made = false;
  };
  Way& way(int from, int to);
  /// Of what comes to the memory-side cache, times kOne: what does not stay there.
  std::int64_t spilled(int rank) const;
  /// A link; the ports of GPUs at its ends where the way begins or ends there.
  void add_shares(machine::LinkId link, std::int64_t share, bool begins, bool ends,
                  std::vector<Share>& out) const;
  Latency over(int from, int to, std::int64_t payload, std::int64_t packet = 0) const;
  std::int64_t ports(int from, int to) const {  ///< of both ends, one way: fs
    return machine_.model(from).noc_io_latency.fs + machine_.model(to).noc_io_latency.fs;
  }
  static void add(const std::vector<Share>& shares, const machine::Machine& machine,
                  std::int64_t bytes, std::int64_t requests, std::int64_t packet,
                  std::int64_t total, std::int64_t members, std::int64_t control,
                  std::vector<Demand>& out);

  const machine::Machine& machine_;
  const program::Bound& program_;
  MulticastPlanes planes_{machine_, program_};
  const Classes& fold_;
  std::vector<machine::LinkId> reverse_;
  std::vector<std::int32_t> link_resource_, port_out_, port_in_;  ///< by class of links
  std::vector<std::int32_t> l2_, memory_, hbm_;     ///< by class of ranks; the last two may be one
  std::map<machine::NodeId, std::int32_t> reduce_;  ///< by switch
  std::vector<std::int64_t> footprint_;             ///< by class of ranks: bytes
  std::vector<std::int64_t> in_fifos_;              ///< ... under way in FIFOs at most
  std::unordered_map<std::uint64_t, Way> ways_;
};

}  // namespace hemiola::sim
