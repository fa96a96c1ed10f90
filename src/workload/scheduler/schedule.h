// Runs a workload: a scheduler above the engines, which takes nodes as launches.
//
// A node is launched when what it depends on is over, when its stream is free and when the CPU has
// come to it. A collective or a message begins when all ranks that take part have come to theirs:
// the n-th call of a group meets the n-th call of its other ranks. A send that fits into its
// connection's FIFO does not wait for the receive (meetings.h). The set of launches that are
// under way on a rank, without their phase, is its *situation*; it gives each of them a speed, at
// which the rest goes on until the situation changes.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/monitor.h"
#include "core/time.h"
#include "workload/scheduler/costs.h"
#include "workload/scheduler/places.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// When a node was there. Times are since the start of the iteration.
struct NodeTimes {
  Time ready{};  ///< could be launched: waited for its peers from here on
  Time begin{};
  Time end{};
  /// What `ready` hung on: a node of the same class that ended then, kNoNode where it was the CPU,
  /// or nothing.
  std::uint32_t cause = kNoNode;
  std::uint32_t meeting = kNoNode;  ///< of ScheduleResult::meetings; of computes none
};

/// The ranks that a collective or message brought together, and who came last.
struct Meeting {
  std::int32_t last_class = 0;
  std::uint32_t last_node = 0;
};

/// Of calls of one kind in one family of groups.
struct CallTime {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< of all calls, as CollectiveCall and Message count them
  Time under_way{};        ///< sum over calls
  Time exposed{};          ///< while no kernel was computing; no instant counts twice
  Time waiting{};          ///< for peers, while nothing was under way
};
/// NodeKind::collective with its Collective, or send, receive with send_recv; the family.
struct CallKey {
  NodeKind kind;
  Collective collective;
  std::int32_t family;
  auto operator<=>(const CallKey&) const = default;
};

/// Of a node that is_call().
CallKey call_key(const Workload& workload, NodeKind kind, std::int32_t work);

/// Where the time of the ranks of a class goes. `compute`, `memory`, exposed and waiting of all
/// calls, `host` and `idle` sum to the time of the whole.
struct ClassTime {
  Time end{};      ///< of its last node
  Time compute{};  ///< a kernel is under way
  Time hidden{};   ///< of these, communication is, too
  Time slowed{};   ///< what kernels took longer than alone
  Time memory{};   ///< only copies between memories are
  Time host{};     ///< nothing is: the CPU has not come to what is ready
  Time idle{};     ///< nothing is, and nothing is ready: a bubble, or the end
  std::map<CallKey, CallTime> calls{};
  Time exposed() const;
  Time waiting() const;
};

struct ScheduleResult {
  Time time{};
  std::vector<ClassTime> classes;             ///< as Workload::classes
  std::vector<std::vector<NodeTimes>> nodes;  ///< by class
  std::vector<Meeting> meetings;
  std::int64_t situations = 0;  ///< distinct sets of at least two that were met
  std::int64_t unreceived = 0;  ///< messages that were sent and that nobody has received
};

/// Where the time of kernels comes from.
enum class ComputeSource : std::uint8_t {
  /// The models where shapes, or bytes and flop, are known; else what was recorded. Bytes that were
  /// concluded from arguments (Compute::concluded) come after it.
  automatic,
  recorded,  ///< what was recorded, where it was; else the models
  model      ///< as automatic, but nothing that was recorded is used: such nodes take no time
};

/// What says how long a kernel or copy takes.
enum class TimeFrom : std::uint8_t { nothing, recorded, work };
TimeFrom time_from(const Workload& workload, const Node& node, ComputeSource source);

struct ScheduleOptions {
  ComputeSource compute = ComputeSource::automatic;
  /// Calls take what was recorded, where it was: of the ranks that meet the shortest, who waited
  /// least for the others. Nothing slows them down, and they slow down nothing.
  bool calls_recorded = false;
  /// Nodes that are left out, as if they took no time: by kind of communication.
  std::vector<Collective> without{};
  std::int64_t compute_permille = 1000;  ///< time of computes: 500 is twice as fast
  const Monitor* monitor = nullptr;      ///< `stop` ends it
};

/// The workload passed check(); `places` are its, and costs know them. Failure with exit code 3:
/// calls that meet and are not the same. Failure with exit code 4: nodes that never begin, with who
/// waits for whom. Interrupted.
ScheduleResult schedule(const Workload& workload, Places& places, Costs& costs,
                        const ScheduleOptions& options = {});

/// The chain of nodes that the end hangs on, in order; each began when the one before ended, or
/// when its CPU or a peer came to it.
struct PathStep {
  std::int32_t rank_class = 0;
  std::uint32_t node = 0;
};
std::vector<PathStep> critical_path(const Workload& workload, const ScheduleResult& schedule);

}  // namespace hemiola::workload
