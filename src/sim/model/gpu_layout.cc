// Legs inside a GPU: a crossbar, or a mesh with dimension-ordered (x then y) routing.

#include <utility>

#include "sim/model/fabric.h"

namespace hemiola::sim {
namespace {

constexpr std::uint32_t kMeshRouter =
    1 << 14;                    // x router, so that arrivals at slices of several routers differ
constexpr int kDirections = 4;  // east, west, south, north

}  // namespace

GpuLayout::GpuLayout(const machine::GpuModel& m, std::vector<Rate> rates)
    : model(m),
      port_rates(std::move(rates)),
      cus(static_cast<std::int32_t>(m.cu_count)),
      slices(static_cast<std::int32_t>(m.l2_slices)),
      channels(static_cast<std::int32_t>(m.hbm_channels)),
      ports(static_cast<std::int32_t>(port_rates.size())),
      engines(static_cast<std::int32_t>(m.dma_engines)) {
  std::int32_t next = 0;
  const auto take = [&next](std::int32_t count) { return std::exchange(next, next + count); };
  cu_out = take(cus);
  cu_in = take(cus);
  cu_alu = take(cus);
  io_out = take(ports);
  io_in = take(ports);
  slice = take(slices);
  msc = take(channels);
  hbm = take(channels);
  dma = take(engines);
  proxy = take(1);
  const bool meshed = m.noc_kind == machine::NocKind::mesh;
  mesh = take(meshed ? static_cast<std::int32_t>(m.noc_mesh_columns * m.noc_mesh_rows) * kDirections
                     : 0);
  servers = next;
  slice_of = Modulo(static_cast<std::uint32_t>(slices));
  if (meshed)
    build_mesh();
  else
    build_crossbar();
}

GpuLayout::Stored GpuLayout::store(std::vector<Hop> hops, std::uint32_t end_tag) {
  const Stored stored{static_cast<std::int32_t>(hops_.size()),
                      static_cast<std::int32_t>(hops.size()), end_tag};
  hops_.insert(hops_.end(), hops.begin(), hops.end());
  return stored;
}

// L2 partitions: CUs and slices are dealt round robin, so that near and far slices are equally
// many.
std::int64_t GpuLayout::partition_latency(std::int32_t cu, std::int32_t s) const {
  return cu % model.noc_partitions == s % model.noc_partitions ? 0 : model.noc_partition_latency.fs;
}

std::int64_t GpuLayout::acknowledge_latency(std::int32_t s, std::int32_t cu) const {
  const Leg way = slice_to_cu(s, cu);
  std::int64_t latency = 0;
  for (std::int32_t h = 0; h < way.count; ++h) latency += way.hops[h].latency;
  return latency;
}

void GpuLayout::build_crossbar() {
  const std::int64_t noc = model.noc_latency.fs;
  const std::int64_t io = model.noc_io_latency.fs;
  for (std::int32_t c = 0; c < cus; ++c) {
    const auto from_cu = kFromCu + static_cast<std::uint32_t>(c);
    for (std::int32_t s = 0; s < slices; ++s) {
      const std::int64_t way = noc + partition_latency(c, s);
      cu_slice_.push_back(store({{.server = cu_out + c, .latency = way}}, from_cu));
    }
    cu_near_.push_back(store({{.server = cu_out + c, .latency = noc}}, from_cu));
    near_cu_.push_back(store({{.server = cu_in + c, .tag = kFromSlices, .latency = noc}}, 0));
    for (std::int32_t p = 0; p < ports; ++p) {
      cu_port_.push_back(store(
          {{.server = cu_out + c, .latency = noc},
           {.server = io_out + p, .tag = from_cu, .latency = io, .latency_reason = Reason::io}},
          0));
    }
  }
  for (std::int32_t s = 0; s < slices; ++s) {
    for (std::int32_t c = 0; c < cus; ++c) {
      const std::int64_t way = noc + partition_latency(c, s);
      slice_cu_.push_back(store({{.server = cu_in + c, .tag = kFromSlices, .latency = way}}, 0));
    }
    for (std::int32_t p = 0; p < ports; ++p) {
      slice_port_.push_back(store(
          {{.server = io_out + p, .tag = kFromSlices, .latency = io, .latency_reason = Reason::io}},
          0));
    }
  }
  for (std::int32_t p = 0; p < ports; ++p) {
    const auto from_port = kFromPort + static_cast<std::uint32_t>(p);
    const Hop in{.server = io_in + p, .latency = io, .latency_reason = Reason::io};
    for (std::int32_t c = 0; c < cus; ++c) {
      port_cu_.push_back(store({in, {.server = cu_in + c, .tag = from_port, .latency = noc}}, 0));
      Hop last = in;  // an acknowledgement takes no bandwidth on chip
      last.node_latency = noc;
      last.node_reason = Reason::noc;
      port_cu_ack_.push_back(store({last}, 0));
    }
    for (std::int32_t s = 0; s < slices; ++s) port_slice_.push_back(store({in}, from_port));
  }
}

std::vector<Hop> GpuLayout::mesh_walk(std::int32_t from, std::int32_t to,
                                      std::uint32_t first_tag) const {
  const auto columns = static_cast<std::int32_t>(model.noc_mesh_columns);
  std::vector<Hop> hops;
  std::uint32_t tag = first_tag;
  while (from != to) {
    const std::int32_t dx = to % columns - from % columns;
    const std::int32_t dy = to / columns - from / columns;
    const int direction = dx > 0 ? 0 : dx < 0 ? 1 : dy > 0 ? 2 : 3;
    hops.push_back({.server = mesh + from * kDirections + direction,
                    .tag = tag,
                    .latency = model.noc_hop_latency.fs});
    from += dx > 0 ? 1 : dx < 0 ? -1 : dy > 0 ? columns : -columns;
    tag = static_cast<std::uint32_t>(direction);
  }
  return hops;
}

void GpuLayout::build_mesh() {
  const auto columns = static_cast<std::int32_t>(model.noc_mesh_columns);
  const auto rows = static_cast<std::int32_t>(model.noc_mesh_rows);
  const std::int32_t routers = columns * rows;
  const std::int64_t hop = model.noc_hop_latency.fs;
  const std::int64_t io = model.noc_io_latency.fs;
  const auto cu_router = [&](std::int32_t c) {
    return static_cast<std::int32_t>(static_cast<std::int64_t>(c) * routers / cus);
  };
  // Memory on the top and bottom edge, ports on the left and right edge (ASTRA-sim 3.0's case
  // studies).
  const auto slice_router = [&](std::int32_t s) {
    const auto edge =
        static_cast<std::int32_t>(static_cast<std::int64_t>(s) * 2 * columns / slices);
    return edge < columns ? edge : (rows - 1) * columns + edge - columns;
  };
  const auto port_router = [&](std::int32_t p) {
    const std::int32_t edge = ports >= 2 * rows ? p * 2 * rows / ports : p % (2 * rows);
    return edge < rows ? edge * columns : (edge - rows) * columns + columns - 1;
  };
  constexpr std::uint32_t kInjectCu = 16, kInjectSlice = 1 << 10, kInjectPort = 1 << 12;
  const auto arrival = [&](std::int32_t router, const std::vector<Hop>& walk, std::uint32_t local) {
    const bool moved = walk.size() > 1;  // the first hop is the injection
    const std::uint32_t last =
        moved ? static_cast<std::uint32_t>((walk.back().server - mesh) % kDirections) : local;
    return static_cast<std::uint32_t>(router) * kMeshRouter + last;
  };
  const auto walk_from = [&](Hop first, std::int32_t from, std::int32_t to, std::uint32_t tag) {
    std::vector<Hop> hops{first};
    const std::vector<Hop> walk = mesh_walk(from, to, tag);
    hops.insert(hops.end(), walk.begin(), walk.end());
    return hops;
  };
  for (std::int32_t c = 0; c < cus; ++c) {
    const std::uint32_t tag = kInjectCu + static_cast<std::uint32_t>(c);
    const Hop inject{.server = cu_out + c, .latency = hop};
    for (std::int32_t s = 0; s < slices; ++s) {
      const auto hops = walk_from(inject, cu_router(c), slice_router(s), tag);
      cu_slice_.push_back(store(hops, arrival(slice_router(s), hops, tag)));
    }
    for (std::int32_t p = 0; p < ports; ++p) {
      auto hops = walk_from(inject, cu_router(c), port_router(p), tag);
      hops.push_back({.server = io_out + p,
                      .tag = arrival(0, hops, tag),
                      .latency = io,
                      .latency_reason = Reason::io});
      cu_port_.push_back(store(std::move(hops), 0));
    }
  }
  for (std::int32_t s = 0; s < slices; ++s) {
    const std::uint32_t tag = kInjectSlice + static_cast<std::uint32_t>(s);
    for (std::int32_t c = 0; c < cus; ++c) {
      auto hops = mesh_walk(slice_router(s), cu_router(c), tag);
      const std::uint32_t in =
          hops.empty() ? tag
                       : static_cast<std::uint32_t>((hops.back().server - mesh) % kDirections);
      hops.push_back({.server = cu_in + c, .tag = in, .latency = hop});
      slice_cu_.push_back(store(std::move(hops), 0));
    }
    for (std::int32_t p = 0; p < ports; ++p) {
      auto hops = mesh_walk(slice_router(s), port_router(p), tag);
      const std::uint32_t in =
          hops.empty() ? tag
                       : static_cast<std::uint32_t>((hops.back().server - mesh) % kDirections);
      hops.push_back(
          {.server = io_out + p, .tag = in, .latency = io, .latency_reason = Reason::io});
      slice_port_.push_back(store(std::move(hops), 0));
    }
  }
  for (std::int32_t p = 0; p < ports; ++p) {
    const std::uint32_t tag = kInjectPort + static_cast<std::uint32_t>(p);
    const Hop in{.server = io_in + p, .latency = io, .latency_reason = Reason::io};
    for (std::int32_t c = 0; c < cus; ++c) {
      auto hops = walk_from(in, port_router(p), cu_router(c), tag);
      const std::uint32_t last = arrival(0, hops, tag);
      hops.push_back({.server = cu_in + c, .tag = last, .latency = hop});
      port_cu_.push_back(store(std::move(hops), 0));
      Hop ack = in;
      const std::int64_t distance =
          static_cast<std::int64_t>(mesh_walk(port_router(p), cu_router(c), tag).size());
      ack.node_latency = hop * (distance + 1);
      ack.node_reason = Reason::noc;
      port_cu_ack_.push_back(store({ack}, 0));
    }
    for (std::int32_t s = 0; s < slices; ++s) {
      const auto hops = walk_from(in, port_router(p), slice_router(s), tag);
      port_slice_.push_back(store(hops, arrival(slice_router(s), hops, tag)));
    }
  }
}

namespace {
std::size_t at(std::int32_t row, std::int32_t columns, std::int32_t column) {
  return index(row) * index(columns) + index(column);
}
}  // namespace

Leg GpuLayout::cu_to_slice(std::int32_t cu, std::int32_t s) const {
  return leg(cu_slice_, at(cu, slices, s));
}
Leg GpuLayout::cu_to_near(std::int32_t cu) const {
  return leg(cu_near_, index(cu));
}
Leg GpuLayout::near_to_cu(std::int32_t cu) const {
  return leg(near_cu_, index(cu));
}
Leg GpuLayout::slice_to_cu(std::int32_t s, std::int32_t cu) const {
  return leg(slice_cu_, at(s, cus, cu));
}
Leg GpuLayout::cu_to_port(std::int32_t cu, std::int32_t port) const {
  return leg(cu_port_, at(cu, ports, port));
}
Leg GpuLayout::port_to_cu(std::int32_t port, std::int32_t cu, bool data) const {
  return leg(data ? port_cu_ : port_cu_ack_, at(port, cus, cu));
}
Leg GpuLayout::slice_to_port(std::int32_t s, std::int32_t port) const {
  return leg(slice_port_, at(s, ports, port));
}
Leg GpuLayout::port_to_slice(std::int32_t port, std::int32_t s) const {
  return leg(port_slice_, at(port, slices, s));
}

}  // namespace hemiola::sim
