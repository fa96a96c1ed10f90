// What engines of GPUs and NICs have to do, and how far they are: descriptors, messages, queues.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "program/walk/cursor.h"
#include "sim/result/latency_breakdown.h"
#include "sim/result/trace.h"
#include "sim/support/index.h"

namespace hemiola::sim {

/// Packets that a queue pair of a NIC keeps in flight: enough for 400 Gb/s x 20 us (assumed). Each
/// pair of ranks has a queue pair, and one whose window is full holds up no other.
constexpr std::int64_t kNicOutstanding = 256;

/// A part of what an engine is given at once: `bytes` from one place to another.
struct CopyLeg {
  program::Span src, dst;
  std::int64_t bytes = 0;
  /// Of the same command as the leg before: their bursts take turns (the two destinations of a
  /// broadcast, the two ways of a swap).
  bool beside = false;
};

struct Descriptor {
  std::int32_t rank = 0;                    ///< that posted it,
  std::int32_t workgroup = -1, queue = -1;  ///< by one of these
  program::Span src, dst;
  std::int64_t bytes = 0;
  /// Several commands, or one that is not from one place to one other: all of it, the first of
  /// which is `src`, `dst`, `bytes` as well. The engine begins one command when all bursts of that
  /// before are under way, and ends when all are acknowledged.
  std::vector<CopyLeg> legs{};
  std::int64_t start_latency = -1;  ///< before the first burst; -1: the engine's own
  std::vector<program::SemaphoreId> semaphores;
  bool remote = false;
  bool injected = false;     ///< all of it is under way
  std::int32_t target = 0;   ///< rank
  bool message = false;      ///< through a NIC: its packets are counted where they come
  std::int64_t packet = 0;   ///< bytes of a packet on links
  std::int64_t number = 0;   ///< messages: the how-manieth from rank to target
  std::int64_t packets = 0;  ///< bursts that are under way, or were
  std::int64_t unacknowledged = 0;
  std::int64_t began = 0;
  FlowEnds flow{};  ///< of a trace
  LatencyBreakdown spent{};
};

/// What an engine does one after the other: all that a copy engine has, or what a NIC has to send
/// from one rank to another (a queue pair).
struct SendQueue {
  std::deque<std::int32_t> descriptors;
  bool active = false;
  std::size_t leg = 0;      ///< of the descriptor in front
  std::int64_t offset = 0;  ///< in the leg
  std::int64_t in_flight = 0;
  bool held = false;      ///< by what may be in flight
  std::int64_t sent = 0;  ///< messages of a NIC
  LatencyBreakdown spent{};
};

/// A copy engine of a GPU, or a NIC.
struct EngineRun {
  std::int32_t server = 0;
  std::int64_t burst = 0, packet = 0, outstanding_limit = 0;
  std::int64_t start_latency = 0, end_latency = 0;
  std::int64_t row_time = 0;  ///< for each row of a strided copy
  Reason reason = Reason::dma;
  std::string name;
  bool pipelined = false;  ///< a NIC
  /// By (from, to), that of a NIC; the one of a copy engine is 0.
  std::unordered_map<std::uint64_t, SendQueue> queues{};

  SendQueue& queue_of(const Descriptor& descriptor) {
    return queues[pipelined ? pair_key(descriptor.rank, descriptor.target) : 0];
  }
};

/// Whether some rank gives copies to its engines itself, by a host stream.
bool has_queues(const program::Bound& program);
/// Appends what a copy of a queue moves: a leg for each destination.
void add_legs(std::vector<CopyLeg>& legs, const program::Primitive& copy);

/// Messages from one rank to another, where they come: their flags are written in their order.
struct Flow {
  struct Message {
    std::int64_t came = 0, packets = -1;  ///< packets; -1: the last one has not come
    std::vector<program::SemaphoreId> semaphores{};
    SpanId span = 0;  ///< of a trace: of its descriptor
  };
  std::int64_t next = 0;                       ///< the first whose flags are not written
  std::int64_t came = 0;                       ///< fs: when the last packet was there
  std::map<std::int64_t, Message> messages{};  ///< by number, from that one on
};

/// Copies that a host stream gives to the copy engines of its rank.
struct CopyQueue {
  std::int32_t rank = 0, stream = 0, body = 0, frame = 0;
  bool prelaunched = false;  ///< program::StreamItem
  bool copied = false;       ///< something, in this turn
  std::unique_ptr<program::Cursor> cursor;
  program::Primitive primitive;
  bool held = false;                 ///< the primitive has still to be done: it ended a submission
  std::vector<CopyLeg> legs{};       ///< of the present submission, so far
  SpanId span = 0, released_by = 0;  ///< of a trace: its last copy; the flag before its next one
  LatencyBreakdown spent{};
};

}  // namespace hemiola::sim
