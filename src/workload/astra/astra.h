// The analytical model of ASTRA-sim 2.x over our workloads: what ASTRA-sim would say.
//
// A re-implementation from facts (docs/astra.md), of both of its networks. Times are whole
// nanoseconds, as ASTRA-sim counts them in "cycles".
#pragma once

#include <cstdint>
#include <vector>

#include "core/diagnostics.h"
#include "core/monitor.h"
#include "workload/astra/configuration.h"
#include "workload/workload.h"

namespace hemiola::workload {

struct AstraRank {
  std::int64_t finish_ns = 0;   ///< when its last node is over
  std::int64_t compute_ns = 0;  ///< kernels; with `replay` all that is not the CPU's
  std::int64_t host_ns = 0;     ///< the CPU's nodes
  /// As ASTRA-sim defines it: finish without compute.
  std::int64_t exposed_ns = 0;
  std::int64_t communication_ns = 0;  ///< in which a collective, send or receive is under way
};

/// All that a rank does of one work.
struct AstraWork {
  int rank = 0;
  NodeKind kind = NodeKind::collective;  ///< or send, receive
  std::int32_t work = 0;                 ///< of Workload::collectives or messages
  std::int64_t count = 0;
  /// Of each, what ASTRA-sim calls comm_size: of an all-gather the part of a rank.
  std::int64_t bytes = 0;
  std::int64_t time_ns = 0;  ///< of all together, from issue to end
  std::int64_t shortest_ns = 0, longest_ns = 0;
};

struct AstraResult {
  std::int64_t time_ns = 0;  ///< of the rank that finishes last
  std::vector<AstraRank> ranks;
  std::vector<AstraWork> works;  ///< by rank, then kind, then work
  std::int64_t messages = 0;     ///< that ASTRA-sim would send
  std::int64_t events = 0;       ///< that were handled here
  bool folded = false;           ///< one rank stood for all, with the same result
  Diagnostics notices;           ///< what of the workload counts otherwise than it says
};

struct AstraOptions {
  /// One rank may stand for all where all do the same and no message waits for another one.
  bool fold = true;
  Monitor* monitor = nullptr;
};

/// Failure for what ASTRA-sim cannot run: a workload of another number of ranks than the network's,
/// a congestion-aware network of several dimensions, collectives without an algorithm, memory nodes
/// without a memory. With ExitCode::deadlock for ranks that wait for ever, with their nodes.
AstraResult run_astra(const Workload& workload, const AstraConfiguration& configuration,
                      const AstraOptions& options = {});

}  // namespace hemiola::workload
