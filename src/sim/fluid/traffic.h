// What a unit of work moves through its compute unit, and what it takes of links and memory.
#pragma once

#include <cstdint>

#include "sim/fluid/streams.h"

namespace hemiola::sim::fluid {

/// What a unit of work moves through its compute unit: bytes of the flow, and of memory in and out;
/// requests.
struct Moved {
  std::int64_t bytes = 0, in = 0, out = 0, from_peers = 0, to_peers = 0, loads = 0, stores = 0;
  std::int64_t sources = 1;  ///< that are reduced
  DataType type = DataType::float32;
};
/// Of the loads of a batch or step: the longest is waited for, for the mean they keep their slots.
struct LoadLatency {
  Latency longest;
  std::int64_t mean_fs = 0;
};

/// The lower of two limits, of which 0 is none.
void limit(std::int64_t& least, __int128 other);

class Traffic {
 public:
  Traffic(Run& run, const Streams& streams) : run_(run), streams_(streams) {}

  Moved moved_by(const Walker& walker, const program::Primitive& primitive) const;
  /// What a primitive takes of all resources, into Run::demands.
  LoadLatency demands_of(const Walker& walker, const program::Primitive& primitive, bool operands);
  /// What the compute unit lets through, shared with the workgroups that are on it: bytes per
  /// second, 0 for no limit. `load_fs`: for how long a load keeps its slot.
  std::int64_t limit_of(const Walker& walker, const Moved& moved, std::int64_t load_fs) const;
  /// Of a move that has begun.
  LoadWindow window_of(const Walker& walker) const;

  /// Data bytes of an instruction of a wavefront.
  std::int64_t wave_of(const Walker& walker, const program::Primitive& primitive) const;
  /// Of all members of its class.
  Slices slices_of(const Walker& walker, const program::Primitive& primitive) const;

 private:
  Run& run_;
  const Streams& streams_;
};

}  // namespace hemiola::sim::fluid
