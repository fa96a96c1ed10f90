// Schedules derived from the links of a machine, greedily in time: whenever a link is free, it
// takes the most useful chunk that its sender has and its receiver lacks (after TACOS, arXiv
// 2304.05301, with bandwidths, latencies, and links shared by several ways). Private to the layer.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/fabric.h"

namespace hemiola::plan {

/// A chunk goes from one rank to another.
struct Move {
  std::int64_t chunk = 0;
  int from = 0, to = 0;
  Time start{0};
  Time end{0};  ///< complete at `to`
};

struct SynthesisOptions {
  std::int64_t parts = 1;        ///< chunks per rank (per pair of ranks for exchanges)
  std::int64_t chunk_bytes = 0;  ///< of each
  std::uint64_t seed = 0;        ///< choice among equals
};

/// Chunk rank * parts + part of every rank comes to all ranks, each once. In order of start.
/// `against`: ways are used from their ends to their starts, for schedules that will be reversed.
/// Failure: ranks without a way to each other.
std::vector<Move> schedule_gather(Fabric& fabric, const SynthesisOptions& options, bool against);

/// Chunk (from * ranks + to) * parts + part comes from its first to its second rank over one of the
/// paths with the fewest steps, so that no link gets much more than others. In order of start.
std::vector<Move> schedule_exchange(Fabric& fabric, const SynthesisOptions& options);

/// How many of them there are for each part.
std::int64_t moves_of_exchange(Fabric& fabric);

/// When the last one ends.
Time end_of(const std::vector<Move>& moves);

}  // namespace hemiola::plan
