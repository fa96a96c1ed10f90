// What a collective is in the ASTRA-sim model: chunks, each in a row of passes over a dimension,
// and in each pass the messages that a rank sends.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/astra/configuration.h"
#include "workload/workload.h"

namespace hemiola::workload::astra {

/// One chunk over the ranks of one dimension. Ring, direct and halving-doubling share one pattern:
/// a rank prepares `window` messages at once, sends each when it is prepared, and prepares the next
/// one for each that it receives. They differ in to whom, how much, and what is reduced.
struct Pass {
  AstraAlgorithm::Kind algorithm = AstraAlgorithm::Kind::ring;
  std::int32_t dimension = 0;  ///< whose queue it waits in
  std::int32_t ranks = 0;      ///< that take part
  std::int32_t stride = 1;     ///< between neighbours among the members of the group
  bool upwards = true;         ///< to higher places first
  /// Groups of a part of the NPUs: 10 ns take the place of the endpoint delay.
  bool of_part = false;
  std::int64_t sends = 0;   ///< by each rank
  std::int64_t window = 1;  ///< messages of a rank that are prepared at the start
  /// Messages are prepared in cycles. The first `unreduced` of a cycle are not reduced; others are,
  /// in every cycle, or in every other one from the first on.
  std::int64_t cycle = 1, unreduced = 1;
  enum class Reduces : std::uint8_t { never, in_every_cycle, in_every_other_cycle };
  Reduces reduces = Reduces::never;
  /// Of direct all-reduce: before that many have been received the second half does not begin.
  std::int64_t before_second_half = 0;
  std::int64_t bytes = 0;  ///< of each message; of halving-doubling by its number: `sizes`
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> distances;  ///< of halving-doubling: to the partner
  bool highest_root = true;             ///< of trees: the root is the highest place, not the lowest
  std::int32_t sources = 1;             ///< others that a rank receives from
};

struct Plan {
  std::int64_t size = 0;  ///< what ASTRA-sim calls comm_size
  std::int64_t chunks = 0;
  std::vector<Pass> passes;
  /// Passes of every other chunk, where trees take turns; else empty.
  std::vector<Pass> other_passes;

  const std::vector<Pass>& passes_of(std::int64_t chunk, std::int64_t turn) const {
    return other_passes.empty() || (chunk + turn) % 2 == 0 ? passes : other_passes;
  }
};

/// What ASTRA-sim has to be told for the collective among so many ranks: nccl-tests' size, but of
/// an all-gather the part of a rank.
std::int64_t astra_size(const CollectiveCall& call, std::int64_t ranks);

/// Of a group of `ranks`. Failure where ASTRA-sim has no algorithm for it, or stops.
Plan make_plan(const CollectiveCall& call, std::int64_t ranks,
               const AstraConfiguration& configuration);

}  // namespace hemiola::workload::astra
