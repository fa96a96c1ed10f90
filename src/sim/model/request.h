// A request: what a wavefront's instruction asks of one line, on its way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/modulo.h"
#include "program/semantics/occupancy.h"
#include "program/semantics/primitive.h"
#include "sim/model/fabric.h"
#include "sim/model/l2.h"
#include "sim/model/tags.h"
#include "sim/result/latency_breakdown.h"

namespace hemiola::sim {

/// What a request wants. Stores are posted: they complete when acknowledged.
enum class Intent : std::uint8_t {
  load,
  posted_load,  ///< of an operand into shared memory (cp.async, TMA): no wavefront waits for it
  store,
  flag,
  poll,
  burst,
  multicast_load,
  multicast_store,
  member_load,
  member_store,
  write_back,
  wake,         ///< of a slice, to a wavefront that sleeps
  state_store,  ///< of a workgroup that is switched out,
  state_load    ///< and in again
};

/// Of a poll.
enum class Look : std::uint8_t {
  first,
  again,
  arm,     ///< not at the flag: the slice is to monitor its line
  recheck  ///< after that
};

constexpr bool is_load(Intent intent) {
  return intent == Intent::load || intent == Intent::posted_load || intent == Intent::poll ||
         intent == Intent::multicast_load || intent == Intent::member_load ||
         intent == Intent::state_load;
}

constexpr bool is_multicast(Intent intent) {
  return intent == Intent::multicast_load || intent == Intent::multicast_store;
}

/// Where a request is on its way; the names follow a remote load.
enum class Stage : std::uint8_t {
  out,       ///< CU to slice (local) or to an I/O port
  forward,   ///< links
  in,        ///< I/O port to slice
  memory,    ///< slice, memory-side cache, HBM
  back_out,  ///< slice to I/O port (data or acknowledgement), or to the CU (local)
  back,      ///< links
  home,      ///< I/O port to CU
  done
};

/// What a request is, but for what it has spent.
struct RequestData {
  std::int32_t line = 0;       ///< rank-relative address / line size, at `target`
  std::int32_t route = 0;      ///< path number, or multicast plane, or the link to a member
  std::uint32_t accepted = 0;  ///< the how-manieth that the slices of its GPU accepted
  std::int16_t cu = 0;
  std::int16_t slice = 0;
  Intent intent = Intent::load;
  Stage stage = Stage::out;
  std::uint8_t size = 0;          ///< `bytes` in sectors, where it is of one line
  std::uint8_t link = 0;          ///< line engine: the how-manieth of its leg comes next
  bool volatile_ : 1 = false;     ///< bypasses L1
  bool last_store : 1 = false;    ///< the wavefront goes on once this one is issued
  bool ready : 1 = true;          ///< packet load: all flags seen
  bool packet : 1 = false;        ///< its data carry flags, see Detail
  bool polling : 1 = false;       ///< repeats until something else happens: no progress by itself
  bool reads_source : 1 = false;  ///< burst: the memory access is the read at the source
  bool local : 1 = true;          ///< line engine: to the memory of its own GPU
  bool takes : 1 = false;         ///< has a Detail: a flag, poll or packet, see take_effect()
  bool group : 1 = false;         ///< line engine: for a multicast group, or for a member of it
  Look look = Look::first;        ///< polls
  bool uncached : 1 = false;      ///< a flag or poll that goes past the L2
  bool logged : 1 = false;        ///< an access to a monitor's log: less than a line
  bool near : 1 = false;   ///< looks for a copy in the L2 partition of its CU, or has found it
  bool train : 1 = false;  ///< burst: several packets together, see Detail

  const Hop* hops = nullptr;   ///< of the present leg
  std::int64_t queued_at = 0;  ///< entered an explicit queue
  std::int32_t base = 0;       ///< first server that they count from; line engine: a way of `group`
  std::uint32_t end_tag = 0;   ///< order tag with which it arrives behind them
  std::int16_t hop_count = 0;
  std::int16_t hop = 0;
  std::int16_t source = 0;    ///< rank that issued it
  std::int16_t target = 0;    ///< rank whose memory it touches; -1: a multicast group's
  std::int32_t carried = 0;   ///< payload of the present leg
  std::int32_t bytes = 0;     ///< of memory: whole sectors of one line; a burst: any number
  std::int32_t in_link = -1;  ///< holds a receive buffer slot of this link's server
  std::int32_t wave = -1;     ///< issuing wavefront
  std::int32_t detail = -1;   ///< its Detail, where it has one
  std::int32_t epoch = 0;     ///< stores: syncs the wavefront had passed; posted loads: step; polls
                           ///< and wake-ups: the first flag of the line that its wavefront watches
  std::int32_t next_pending = -1;  ///< next request that waits for the same line

  void follow(const Leg& leg, std::int32_t first_server) {
    hops = leg.hops;
    base = first_server;
    end_tag = leg.end_tag;
    hop_count = static_cast<std::int16_t>(leg.count);
    hop = 0;
  }
  bool is_multicast() const { return sim::is_multicast(intent); }
  /// The rank whose memory it comes to next.
  int place() const { return reads_source ? source : target; }
  /// A replica that a switch made for one member of a multicast group.
  bool is_member() const { return intent == Intent::member_load || intent == Intent::member_store; }
};
struct SpentOf {
  LatencyBreakdown spent;
};
/// Two cache lines: there are hundreds of thousands of them, visited in the order of time. The line
/// engine needs the first one only between a request's issue and its completion.
struct alignas(64) Request : SpentOf, RequestData {
  RequestData& data() { return *this; }
};
static_assert(sizeof(Request) == 128 && sizeof(SpentOf) + offsetof(RequestData, hops) == 64);
constexpr int kMostRanks = INT16_MAX;  ///< that a Request can name

/// A cause that lies with somebody else: its attribution and when it took effect.
struct Cause {
  std::int64_t time = -1;
  LatencyBreakdown spent{};
};

/// What only some requests need.
struct alignas(64) Detail {
  std::int64_t accepted_at = 0;        ///< by the slice (polls, packet loads)
  Cause cause;                         ///< packet loads: the store that they waited for
  std::int64_t packet_flag = 0;        ///< packets: flag value
  std::uint64_t packet_mask = 0;       ///< ... and the 8 B granules of the line that it covers
  std::int64_t increment = 0;          ///< flags
  std::int32_t semaphore = -1;         ///< flags
  std::int32_t group = -1;             ///< multicast: group
  std::int32_t children = 0;           ///< ... and how many members have not answered
  std::int32_t parent = -1;            ///< member: the request that was replicated
  std::int32_t destination = 0;        ///< bursts: line at the destination
  std::int32_t descriptor = -1;        ///< bursts
  std::int64_t packets = -1;           ///< last burst of a descriptor: how many it has
  std::int32_t engine = -1;            ///< bursts, flags of engines: the issuing engine
  std::int32_t together = 1;           ///< bursts: packets
  std::int64_t lag = 0;                ///< ... by how much the last one is behind the first, fs
  std::int16_t destination_slice = 0;  ///< bursts
  std::int32_t wait = 0;               ///< polls, wake-ups: the how-manieth of the wavefront
};

/// What waits for a slot of its CU: a request, or the rest of an instruction.
struct Queued {
  std::int32_t request = -1;
  std::int32_t wave = 0;
  std::int32_t rank = 0;  ///< whose memory; -1: of a multicast group
  std::int32_t group = -1;
  std::int64_t from = 0, to = 0;  ///< addresses that are left
  std::int64_t packet_flag = 0;
  std::int32_t first_path = 0, paths = 0;  ///< to another rank, see Fabric::paths()
  std::int32_t again = 0;                  ///< further instructions that touch the same lines
  std::int32_t epoch = 0;                  ///< see Request
  Intent intent = Intent::load;
  bool last = false;
  bool bypass_l1 = false;
};

/// What a request has to pass at its CU: the same for all of an instruction.
struct Gate {
  std::int64_t* room = nullptr;         ///< free slots
  const std::int64_t* costs = nullptr;  ///< fs that it keeps the way to peers, by sectors
  std::int64_t* free = nullptr;         ///< when that is free
  Tags* l1 = nullptr;                   ///< to be looked up
  const L2* l2 = nullptr;               ///< where a partition may hold a copy
};

/// What the requests of an instruction have in common, made once for all of them.
struct Issuing {
  RequestData like;  ///< each is a copy of it, but for its line, bytes and path
  Modulo paths;      ///< that lines take turns on
  Modulo slices;
  Gate gate;
};

/// Issue slots of a compute unit, and what is on it.
struct Cu {
  std::int64_t issue_free = 0;
  std::int64_t load_room = 0, store_room = 0;  ///< free slots
  std::int64_t load_slots = 0;                 ///< all of them
  std::int64_t issue_interval = 1;             ///< fs
  std::int64_t peer_in = 0, peer_out = 0;      ///< when the next load, store to a peer may leave
  std::deque<Queued> queue;
  Issuing head;             ///< of the first in the queue
  bool head_made = false;   ///< it is that
  program::Occupancy used;  ///< by resident workgroups
  Tags l1;
  std::int64_t launch = 0;  ///< of the workgroup that came last
  std::int16_t rank = 0, number = 0;
};

}  // namespace hemiola::sim
