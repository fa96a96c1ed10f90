// Kernels, streams and ranks under way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "program/semantics/primitive.h"
#include "sim/model/power_budget.h"
#include "sim/model/request.h"
#include "sim/model/streams.h"
#include "sim/result/latency_breakdown.h"

namespace hemiola::sim {

/// A kernel of a rank; it runs once in every repetition of the program.
struct KernelRun {
  std::int32_t rank = 0, stream = 0, kernel = 0, frame = 0;
  std::int32_t next = 0;     ///< next workgroup to dispatch
  std::int32_t done = 0;     ///< workgroups that have ended
  std::int64_t stores = 0;   ///< not acknowledged
  bool ended = false;        ///< the stream has been told
  bool dispatching = false;  ///< its next workgroup goes after the dispatch interval
  std::int64_t launch = 0;   ///< the rank's how-many-th
  std::int64_t began = 0;
  std::vector<std::int32_t> groups;
  LatencyBreakdown spent{};  ///< of the dispatcher: sums to the time of the last dispatch
};
/// A stream of a rank, and what stands for its items.
struct StreamRun : StreamPlace {
  std::vector<std::int32_t> runs;    ///< by item: KernelRun, or -1
  std::vector<std::int32_t> queues;  ///< by item: CopyQueue, or -1
};
/// A rank: its host, its streams, its compute units.
struct RankState {
  std::vector<StreamRun> streams;
  std::vector<Cu> cus;
  std::int32_t next_cu = 0;
  std::int64_t launches = 0;             ///< of kernels
  std::vector<std::int64_t> peer_costs;  ///< fs that a CU's requests to peers keep, by sectors
  std::int64_t code_fetches = 0;         ///< when the unit that fetches code is free
  StreamEvents events;
  PowerBudget power;
  program::Totals totals;  ///< of a job: counts of launches that are over
  std::int32_t streams_done = 0;
  std::int32_t repetition = 0;
  std::int64_t launched = 0;  ///< the present repetition, by the host
  std::int64_t started = 0;   ///< of the present repetition
  std::int64_t end = -1;
  std::int64_t warm_end = 0;
  LatencyBreakdown spent{};                  ///< at `end`
  std::deque<std::int32_t> blocked_kernels;  ///< with workgroups that found no room
  std::deque<std::int32_t> idle;             ///< workgroups that sleep, in their order
  std::deque<std::int32_t> wanted;           ///< workgroups that are out and were woken
  std::int32_t leaving = 0;                  ///< workgroups on their way out
};

}  // namespace hemiola::sim
