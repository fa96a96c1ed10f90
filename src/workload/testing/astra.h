// Workloads and configurations for tests of the ASTRA-sim model.
#pragma once

#include <numeric>
#include <vector>

#include "workload/astra/astra.h"

namespace hemiola::test {

/// One collective of all ranks. Rank `delayed` begins after a time of its CPU, if it is not -1.
inline workload::Workload one_collective(Collective kind, int ranks, std::int64_t bytes,
                                         int delayed = -1, Time delay = {}) {
  using namespace workload;
  WorkloadBuilder builder("one collective", ranks);
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  const std::int32_t family = builder.family("all", {all});
  const std::int32_t call = builder.collective({kind, family, bytes, DataType::float32});
  const std::uint16_t stream = builder.stream("communication", false);
  const std::uint32_t name = builder.name("call");
  Trace plain;
  plain.nodes.push_back(
      {.id = 1, .name = name, .kind = NodeKind::collective, .stream = stream, .work = call});
  if (delayed >= 0) {
    Trace late;
    late.nodes.push_back({.id = 0,
                          .name = builder.name("late"),
                          .kind = NodeKind::host,
                          .stream = stream,
                          .recorded = delay});
    late.nodes.push_back(plain.nodes.front());
    late.dependencies = {0};
    late.nodes.back().dependencies = 1;
    builder.workload().classes.push_back({"late", std::make_shared<const Trace>(late), {delayed}});
    all.erase(all.begin() + delayed);
  }
  builder.workload().classes.push_back({"all", std::make_shared<const Trace>(plain), all});
  return builder.take();
}

/// ASTRA-sim's Ring_4chunks.json on a ring of 50 GB/s and 500 ns.
inline workload::AstraConfiguration astra_ring(int npus) {
  workload::AstraConfiguration ring;
  for (auto& algorithms : ring.system.algorithms) algorithms.resize(1);
  ring.system.local_bandwidth_aware = true;
  ring.system.chunks = 4;
  ring.system.local_memory_bandwidth = 1600;
  ring.system.peak_tflops = 900;
  ring.network.dimensions = {{workload::AstraNetwork::Topology::ring, npus, 50.0, 500.0}};
  return ring;
}

/// ASTRA-sim's HGX-H100-validated.json and .yml, of as many ports.
inline workload::AstraConfiguration astra_switch(int npus) {
  workload::AstraConfiguration one = astra_ring(npus);
  one.system.active_chunks = 2;
  one.system.local_memory_bandwidth = 3350;
  one.network.dimensions = {{workload::AstraNetwork::Topology::switched, npus, 400.0, 936.25}};
  return one;
}

/// Of a message over links of 50 x 2^30 B/s and 500 ns that nobody else uses.
inline std::int64_t astra_link_ns(std::int64_t bytes, int links = 1) {
  return static_cast<std::int64_t>(links * 500 + static_cast<double>(bytes) / 53.6870912);
}

}  // namespace hemiola::test
