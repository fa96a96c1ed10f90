// Configurations of ASTRA-sim 2.x: system.json, network.yml, memory.json, communicator groups.
//
// Units are those of the files, which docs/astra.md explains: "GB/s" of a network is 2^30 bytes per
// second, "GB/s" of a memory 10^9. Keys, defaults and units are from astra-sim/astra-sim@518bd51
// and astra-sim/astra-network-analytical@599a047.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/diagnostics.h"

namespace hemiola::workload {

/// How a collective is done along one dimension of the network.
struct AstraAlgorithm {
  enum class Kind : std::uint8_t { ring, direct, double_binary_tree, halving_doubling };
  Kind kind = Kind::ring;
  /// oneRing, oneDirect, oneHalvingDoubling: over all NPUs at once, whatever the dimensions.
  bool over_all = false;
  /// Of direct: messages of a rank that are under way at once; 0: one to every other rank.
  std::int32_t window = 0;
};

struct AstraSystem {
  /// Of chunks that wait for a dimension: the collective that was issued last goes first, or the
  /// one that was issued first. `given` goes by comm_priority, which a workload does not have: all
  /// are equal.
  enum class Order : std::uint8_t { last_first, first_first, given };
  Order order = Order::last_first;
  /// By dimension, of all-reduce, all-gather, reduce-scatter and all-to-all, in the order of
  /// `Collective`. None: the collective cannot be run.
  std::array<std::vector<AstraAlgorithm>, 4> algorithms{};
  /// localBWAware: an all-reduce over several dimensions is reduce-scatters, one all-reduce and
  /// all-gathers. Otherwise it is one all-reduce after the other.
  bool local_bandwidth_aware = false;
  std::int64_t chunks = 1;              ///< of a collective, one after the other
  std::int64_t active_chunks = 1;       ///< of them at once in a dimension
  std::int64_t endpoint_delay_ns = 10;  ///< of each message, at both ends
  double local_memory_bandwidth = 0;    ///< 10^9 B/s; 0: not known
  double peak_tflops = 0;               ///< 0: not known
  bool roofline = false;                ///< kernels take what their flop and bytes say
  bool replay = false;                  ///< all nodes take what was recorded
};

struct AstraNetwork {
  enum class Topology : std::uint8_t { ring, fully_connected, switched };
  struct Dimension {
    Topology topology = Topology::ring;
    std::int32_t npus = 0;
    double bandwidth = 0;   ///< of a link, 2^30 B/s
    double latency_ns = 0;  ///< of a link
  };
  /// NPU i is at place i mod n0 of the first, (i / n0) mod n1 of the second, ...
  std::vector<Dimension> dimensions;

  std::int64_t npus() const;
};

struct AstraMemory {
  enum class Kind : std::uint8_t { none, per_node, per_npu, pool };
  Kind kind = Kind::none;
  std::int64_t nodes = 0;          ///< of per_node
  std::int64_t npus_per_node = 0;  ///< of per_node
  std::int64_t latency_ns = 0;
  double bandwidth = 0;  ///< 10^9 B/s
};

struct AstraConfiguration {
  AstraSystem system;
  AstraNetwork network;
  AstraMemory memory;
  /// Congestion-aware: links carry one message at a time, and each node a message whole. Otherwise
  /// messages do not hinder each other.
  bool aware = false;
};

// Readers. Failure with a place for what is no file of the kind, for unknown keys, and for values
// that ASTRA-sim stops at or reads as something else than they say. `notices` gets a warning for
// every key that changes nothing: those that ASTRA-sim ignores too, and those that have no
// counterpart here.
AstraSystem read_astra_system(std::string_view text, const std::string& file, Diagnostics& notices);
AstraNetwork read_astra_network(std::string_view text, const std::string& file);
AstraMemory read_astra_memory(std::string_view text, const std::string& file, Diagnostics& notices);

}  // namespace hemiola::workload
