// The search over schedules of a block: serial, the best of each operator one behind the other, and
// chains that flow through.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "explore/search/explorer.h"
#include "explore/space/block_schedule.h"
#include "explore/trials/plan_trial.h"
#include "hemiola/explore.h"

namespace hemiola::explore {

/// `op` is not looked at. `fluid` is for the chains, and for each operator a quarter of it; `top`:
/// nothing stands for none.
struct BlockRequest : Request {
  Block block;
};

/// Operators one after the other, on one stream of launches.
using BlockJob = OperatorsTime;

/// Of time - ideal, exactly.
struct BlockLosses {
  double dil_compute = 1, dil_communication = 1;  ///< pieces alone over the whole alone
  double cil_compute = 1;                         ///< overlapped over alone
  Time computes{}, communication{};               ///< the pieces alone
  // Femtoseconds, none below zero.
  std::int64_t decomposition = 0;  ///< the pieces alone, of the longer of both, beyond the bound
  std::int64_t exposed = 0;        ///< what is longer waits: filling, draining, between pieces
  std::int64_t contention = 0;     ///< what is shared

  using Part = std::pair<std::string_view, std::int64_t>;
  /// By name: their sum is the time beyond ideal.
  std::array<Part, 3> parts() const {
    return {Part{"decomposition", decomposition}, Part{"exposed", exposed},
            Part{"contention", contention}};
  }
};

struct BlockCandidate : Measured {
  BlockSchedule schedule;
  study::Settings parameters;  ///< of its template and lowering
  std::optional<Time> confirmed{};
  std::optional<BlockLosses> losses{};
  Time time() const { return confirmed ? *confirmed : fluid; }
};

struct BlockExploration {
  Block block;
  std::string machine;
  sim::Launch launch = sim::Launch::stream;
  BlockJob serial;  ///< the library's: parts as parts_of()
  /// The best schedule of each operator and what is between, one behind the other. Its first and
  /// last parts are these schedules, or "serial".
  BlockJob apart;
  std::string apart_first, apart_last;
  std::vector<BlockCandidate> candidates;  ///< chains that were simulated, the fastest first
  std::vector<BlockCandidate> refused;
  std::int64_t space = 0;  ///< chains in all
  /// No chain takes less: the longer of the tiles of both products over all compute units (or the
  /// power limit) and of the bytes of both collectives over the busiest link.
  Time ideal{};

  Time compute() const;        ///< of serial: products and what is between them, alone
  Time communication() const;  ///< of serial: both collectives, alone
  /// The fastest chain; null where serial or `apart` is as fast.
  const BlockCandidate* winner() const;
  double speedup(const BlockCandidate& candidate) const;  ///< over serial, by the same engine
  /// Positions of the fastest of each number of steps, own rows and mover: what the table shows.
  std::vector<std::size_t> shown() const;
};

/// Deterministic: the same for any number of threads. Failure: as check(), space_of(), explore().
BlockExploration explore_block(study::Laboratory& laboratory, const BlockRequest& request,
                               const ExploreWatch& watch = {});

/// The plan of a chain with the lowering that was simulated, for `run`, `check` and `compile`.
plan::Plan plan_of(study::Laboratory& laboratory, const BlockRequest& request,
                   const BlockSchedule& schedule);

}  // namespace hemiola::explore
