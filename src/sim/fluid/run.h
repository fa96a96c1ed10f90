// What all parts of the fluid engine see of a run: the program on its machine, the time, events,
// flows and agents.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "sim/alike/classes.h"
#include "sim/fluid/shares.h"
#include "sim/fluid/walker.h"
#include "sim/fluid/ways.h"
#include "sim/result/options.h"
#include "sim/support/pool.h"

namespace hemiola::sim::fluid {

inline constexpr std::size_t kFew = 1 << 10;  ///< of what a run has at once, in a Pool

enum class EventKind : std::uint8_t {
  repeat,    ///< a: class of ranks
  item,      ///< a: class of ranks, b: stream; its next item may start
  finished,  ///< a: class of ranks, b: stream; its present item is over
  wake,      ///< a: agent; b = 1: if it waits for packets
  depart,    ///< a: signal; its flag leaves
  arrive,    ///< a: signal; its flag is there
  proxy,     ///< a: descriptor; its engine may have it
  transfer,  ///< a: engine; the descriptor in front starts to move
  done,      ///< a: descriptor; all of it is acknowledged
  computed,  ///< a: agent; its oldest step
};
struct Event {
  std::int64_t time;
  std::uint64_t sequence;
  EventKind kind;
  std::int32_t a, b;
  std::int32_t kept;  ///< attribution, or -1
  bool operator>(const Event& other) const {
    return time != other.time ? time > other.time : sequence > other.sequence;
  }
};

/// What is to come, in the order of time; of one instant in the order in which it was pushed.
class Events {
 public:
  void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b = 0,
            const Attribution* spent = nullptr);
  std::int64_t next() const { return events_.empty() ? INT64_MAX : events_.top().time; }
  /// `spent`: what was pushed with it.
  Event pop(Attribution& spent);

 private:
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Pool<Attribution, kFew> kept_;
  std::uint64_t sequence_ = 0;
};

enum class FlowKind : std::uint8_t { move, behind, flag, transfer, operand, tile, write_back };
struct FlowUse {
  FlowKind kind = FlowKind::move;
  std::int32_t a = 0, b = 0;
  Attribution spent{};  ///< at its start; when it is over, until then
};

struct Run {
  /// As Agents.
  Run(const machine::Machine& machine, const program::Bound& program, const Options& options,
      AlikeBy by);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const machine::GpuModel& model(const Walker& walker) const {
    return machine.model(walker.agent.rank);
  }
  const program::Op& op_of(const Walker& walker, const program::Primitive& primitive) const {
    return program.bodies()[index(walker.agent.body)].ops[index(primitive.op)];
  }
  /// Of a workgroup: among all of its rank, as the other engines count.
  int number_in_rank(const Agent& agent) const;

  /// The agent is through with its present primitive.
  void pass(Walker& walker) const;
  /// Wakes it at its own time; true if that is now.
  bool is_now(std::int32_t agent);
  void wake(std::int32_t agent);

  /// Of `demands`; the rest as Shares::start().
  std::int32_t start_flow(FlowKind kind, std::int32_t a, std::int32_t b, std::int64_t bytes,
                          std::int64_t limit, Reason reason, const Attribution& spent,
                          const LoadWindow& window = {}, std::int64_t part = kEvenPart);
  /// The flow that is over first, at `now`.
  FlowUse finish_flow();

  const machine::Machine& machine;
  const program::Bound& program;
  const Options& options;
  Classes fold;
  Shares shares;
  Ways ways;
  std::vector<Walker> walkers;
  Events events;
  std::vector<FlowUse> flows;
  std::vector<Demand> demands;    ///< of the flow that starts next
  std::int32_t barrier_base = 0;  ///< number of the first semaphore of a barrier
  std::int64_t now = 0;

 private:
  void make_walkers();
};

}  // namespace hemiola::sim::fluid
