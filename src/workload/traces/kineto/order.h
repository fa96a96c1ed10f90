// What waits for what in a Kineto trace. The trace says when everything was, and what the host
// called, but not the events that calls wait for: these are concluded from the times.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workload/traces/kineto/events.h"
#include "workload/traces/kineto/launches.h"

namespace hemiola::workload {

/// A node: something the GPU did, or what the host needed since its last node. Without a call too:
/// the time until a launch that is not in the trace.
struct KinetoStep {
  std::int32_t gpu = -1;                 ///< of KinetoEvents::gpu; -1: of the host
  std::int32_t runtime = -1;             ///< the call that launches or waits; -1: no call is known
  std::int64_t begin = 0, duration = 0;  ///< of the host's work, nanoseconds
  /// Of the GPU: from when nothing held it up any more to its begin, where that is short. The GPU
  /// needs a microsecond or two from one kernel to the next.
  std::int64_t dispatch = 0;
  std::vector<std::uint32_t> waits_for;  ///< steps before it, beside those of its stream
};

struct KinetoOrder {
  /// In an order in which each step stands behind those it waits for and behind those before it on
  /// its stream.
  std::vector<KinetoStep> steps;
  std::int64_t without_launch = 0;  ///< things the GPU did that no call launched
  std::int32_t first_without_launch = -1;
  std::int64_t late = 0;          ///< events that began much later than the trace explains
  std::int64_t lateness = 0;      ///< nanoseconds, of all of them
  bool has_stream_waits = false;  ///< the trace has calls of cudaStreamWaitEvent
};

/// `communicates`: by GPU event.
///
/// The host is one thread: what all its threads did, one after the other. Where it waited for the
/// GPU (cudaStreamSynchronize, a copy that ends before its call does), its next step waits for what
/// was over then. A kernel that communicates waits for the last one of its thread's stream; after a
/// cudaStreamWaitEvent the thread's next kernel waits for all that was launched on other streams
/// and was over when it began. What began later than all this explains waits for what was over last
/// before it, and keeps what is left of the gap.
///
/// `start`: when the job began, nanoseconds; the host's first step begins then. Nothing: with the
/// first event.
KinetoOrder order_events(const KinetoEvents& events, const KinetoLaunches& launches,
                         const std::vector<bool>& communicates,
                         std::optional<std::int64_t> start = std::nullopt);

}  // namespace hemiola::workload
