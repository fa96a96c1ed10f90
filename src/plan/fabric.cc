#include "plan/fabric.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "core/index.h"

namespace hemiola::plan {
namespace {

using machine::NodeId;
using machine::NodeKind;

}  // namespace

Fabric::Fabric(const machine::Machine& machine, const Monitor* monitor)
    : machine_(machine), monitor_(monitor) {
  rank_of_.assign(machine.nodes.size(), -1);
  for (int rank = 0; rank < machine.ranks(); ++rank)
    rank_of_[index(machine.gpus[index(rank)])] = rank;
  find_trunks();
  find_islands();
}

void Fabric::find_trunks() {
  std::map<std::tuple<NodeId, NodeId, std::int32_t>, std::int32_t> known;
  leaving_.resize(machine_.nodes.size());
  for (const machine::Link& link : machine_.links) {
    const auto [entry, is_new] = known.try_emplace({link.from, link.to, link.link_class},
                                                   static_cast<std::int32_t>(trunks_.size()));
    if (is_new) {
      leaving_[index(link.from)].push_back(entry->second);
      trunks_.push_back({link.from, link.to, link.link_class, 0, {}, {}});
    }
    Trunk& trunk = trunks_[index(entry->second)];
    ++trunk.lanes;
    trunk.bandwidth.bytes_per_second +=
        machine_.link_classes[index(link.link_class)].bandwidth.bytes_per_second;
    trunk_of_.push_back(entry->second);
  }
  for (Trunk& trunk : trunks_) {
    for (const NodeId end : {trunk.from, trunk.to}) {
      const machine::Node& node = machine_.nodes[index(end)];
      if (node.kind == NodeKind::nic && !node.nic_model.rate.is_ideal())
        trunk.bandwidth = std::min(trunk.bandwidth, node.nic_model.rate);
      if (rank_of_[index(end)] < 0) continue;
      Rate port = machine_.model(rank_of_[index(end)])
                      .port_rate(machine_.link_classes[index(trunk.link_class)].bandwidth);
      port.bytes_per_second *= trunk.lanes;
      if (!port.is_ideal())
        trunk.ports = trunk.ports.is_ideal() ? port : std::min(trunk.ports, port);
    }
  }
}

/// Ranks that paths without other ranks inside lead to, with their hops.
std::vector<Fabric::Reached> Fabric::reach(int rank, bool through_nics) const {
  std::vector<int> hops(machine_.nodes.size(), -1);
  std::vector<NodeId> queue{machine_.gpus[index(rank)]};
  hops[index(queue.front())] = 0;
  std::vector<Reached> found;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::int32_t trunk : leaving_[index(queue[i])]) {
      const NodeId next = trunks_[index(trunk)].to;
      if (hops[index(next)] >= 0) continue;
      if (machine_.nodes[index(next)].kind == NodeKind::nic && !through_nics) continue;
      hops[index(next)] = hops[index(queue[i])] + 1;
      if (rank_of_[index(next)] >= 0)
        found.push_back({rank_of_[index(next)], hops[index(next)]});
      else if (machine_.nodes[index(next)].kind != NodeKind::xpu)
        queue.push_back(next);
    }
  }
  return found;
}

void Fabric::find_islands() {
  islands_.assign(index(ranks()), -1);
  for (int first = 0; first < ranks(); ++first) {
    if (islands_[index(first)] >= 0) continue;
    std::vector<int> queue{first};
    islands_[index(first)] = first;
    for (std::size_t i = 0; i < queue.size(); ++i) {
      for (const Reached& next : reach(queue[i], false)) {
        if (islands_[index(next.rank)] >= 0) continue;
        islands_[index(next.rank)] = first;
        queue.push_back(next.rank);
      }
    }
  }
}

Time Fabric::latency_of(NodeId id, bool is_end) const {
  const machine::Node& node = machine_.nodes[index(id)];
  if (is_end) return {0};
  if (node.kind == NodeKind::nic) return node.nic_model.message_time + node.nic_model.latency;
  return node.switch_model.latency;
}

/// A link, or a link to a switch and one from it; as machine::routes() would go, without asking it
/// for every pair of a large machine.
bool Fabric::add_short_way(int from, int to) {
  const NodeId a = machine_.gpus[index(from)], b = machine_.gpus[index(to)];
  Way way{.from = from, .to = to, .paths = 0};
  const auto latency = [&](std::int32_t trunk) {
    return machine_.link_classes[index(trunks_[index(trunk)].link_class)].latency;
  };
  for (const std::int32_t first : leaving_[index(a)]) {
    if (trunks_[index(first)].to != b) continue;
    way.uses.push_back({first, trunks_[index(first)].lanes});
    way.paths += trunks_[index(first)].lanes;
    way.latency = std::max(way.latency, latency(first));
  }
  for (const std::int32_t first : leaving_[index(a)]) {
    if (way.paths > 0 && trunks_[index(way.uses.front().trunk)].to == b) break;
    const NodeId middle = trunks_[index(first)].to;
    if (machine_.nodes[index(middle)].kind != NodeKind::switch_) continue;
    for (const std::int32_t second : leaving_[index(middle)]) {
      if (trunks_[index(second)].to != b) continue;
      const std::int32_t lanes =
          std::min(trunks_[index(first)].lanes, trunks_[index(second)].lanes);
      way.uses.push_back({first, lanes});
      way.uses.push_back({second, lanes});
      way.paths += lanes;
      way.latency =
          std::max(way.latency, latency(first) + latency_of(middle, false) + latency(second));
    }
  }
  if (way.paths == 0) return false;
  ways_[{from, to}] = std::move(way);
  return true;
}

void Fabric::add_routes(int from, int to) {
  const machine::Routes& routes = machine_.routes(from, to);
  if (routes.count == 0) {
    throw Failure("machine '" + machine_.name + "': rank " + std::to_string(from) +
                      " has no way to rank " + std::to_string(to),
                  {}, "choose other ranks with --ranks");
  }
  Way way{.from = from, .to = to, .paths = routes.count};
  way.is_network = routes.reach == machine::Reach::network;
  if (monitor_ != nullptr) monitor_->leave_if_stopping();
  paths_.resize(trunks_.size());  // all 0 between calls
  std::vector<std::int32_t> used;
  for (std::int32_t i = 0; i < routes.count; ++i) {
    Time latency{0};
    for (const machine::LinkId link : routes.path(i)) {
      const std::int32_t trunk = trunk_of_[index(link)];
      if (++paths_[index(trunk)] == 1) used.push_back(trunk);
      latency += machine_.class_of(link).latency +
                 latency_of(machine_.links[index(link)].to,
                            rank_of_[index(machine_.links[index(link)].to)] == to);
    }
    way.latency = std::max(way.latency, latency);
  }
  const auto add = [&](std::int32_t trunk) {
    std::int32_t& paths = paths_[index(trunk)];
    if (paths > 0) way.uses.push_back({trunk, std::exchange(paths, 0)});
  };
  // In the order of the first path, so that the first is the trunk that leaves the rank.
  for (const machine::LinkId link : routes.path(0)) add(trunk_of_[index(link)]);
  std::ranges::sort(used);
  for (const std::int32_t trunk : used) add(trunk);
  ways_[{from, to}] = std::move(way);
}

const Way& Fabric::way(int from, int to) {
  const auto found = ways_.find({from, to});
  if (found != ways_.end()) return found->second;
  if (!add_short_way(from, to)) add_routes(from, to);
  return ways_.at({from, to});
}

std::vector<std::pair<int, int>> Fabric::neighbours() {
  std::vector<std::pair<int, int>> pairs;
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::vector<Reached> all = reach(rank, true);
    std::map<std::int32_t, int> fewest;  // hops, by island
    bool has_short_way_in_island = false;
    for (const Reached& next : all) {
      const auto [entry, is_new] = fewest.try_emplace(island(next.rank), next.hops);
      if (!is_new) entry->second = std::min(entry->second, next.hops);
      if (island(next.rank) == island(rank) && next.hops <= 2) has_short_way_in_island = true;
    }
    for (const Reached& next : all) {
      const bool is_own = island(next.rank) == island(rank);
      if (is_own ? has_short_way_in_island && next.hops > 2 : next.hops > fewest[island(next.rank)])
        continue;
      pairs.emplace_back(rank, next.rank);
    }
  }
  std::ranges::sort(pairs);
  return pairs;
}

namespace {

std::int64_t share(const Way& way, const Way::Use& use, std::int64_t bytes) {
  return (bytes * use.paths + way.paths - 1) / way.paths;
}

}  // namespace

Time Fabric::wire(const Way& way, const Way::Use& use, std::int64_t bytes) const {
  const Trunk& trunk = trunks_[index(use.trunk)];
  const machine::LinkClass& kind = machine_.link_classes[index(trunk.link_class)];
  return trunk.bandwidth.time_for(kind.wire_bytes(share(way, use, bytes)));
}

Time Fabric::port(const Way& way, const Way::Use& use, std::int64_t bytes) const {
  const Trunk& trunk = trunks_[index(use.trunk)];
  // GPUs on the way forward between links, past their ports.
  const bool ends =
      trunk.from == machine_.gpus[index(way.from)] || trunk.to == machine_.gpus[index(way.to)];
  return trunk.ports.is_ideal() || !ends ? Time{0} : trunk.ports.time_for(share(way, use, bytes));
}

Time Fabric::busy(const Way& way, const Way::Use& use, std::int64_t bytes) const {
  return std::max(wire(way, use, bytes), port(way, use, bytes));
}

Time Fabric::crossing(const Way& way) const {
  const machine::GpuModel& from = machine_.model(way.from);
  const machine::GpuModel& to = machine_.model(way.to);
  return {way.latency.fs + from.noc_latency.fs + from.noc_partition_latency.fs / 2 +
          from.noc_io_latency.fs + to.noc_io_latency.fs + to.l2_latency.fs};
}

Time Fabric::load(int rank) const {
  const machine::GpuModel& gpu = machine_.model(rank);
  return 2 * gpu.noc_latency + gpu.noc_partition_latency + gpu.l2_latency;
}

Time Fabric::busy(const Way& way, std::int64_t bytes) const {
  Time most{0};
  for (const Way::Use& use : way.uses) most = std::max(most, busy(way, use, bytes));
  return most;
}

Time Fabric::pause(int rank) const {
  const machine::GpuModel& gpu = machine_.model(rank);
  return gpu.sync_fence_latency + 3 * gpu.sync_barrier_latency + 3 * gpu.sync_op_overhead +
         load(rank);
}

Time Fabric::flag(int from, int to) {
  const machine::GpuModel& gpu = machine_.model(from);
  const machine::GpuModel& there = machine_.model(to);
  // Two syncs around the flag, and one after the poll that sees it.
  Time time = gpu.sync_fence_latency + 2 * gpu.sync_barrier_latency + 2 * gpu.sync_op_overhead +
              there.sync_poll_interval + load(to) + there.sync_barrier_latency +
              there.sync_op_overhead;
  if (from != to) time += crossing(way(from, to));
  return time;
}

Time Fabric::handover(const Way& way) {
  if (!way.is_network) return load(way.from) + 2 * crossing(way) + flag(way.from, way.to);
  return machine_.model(way.from).proxy_network_time + flag(way.from, way.to);
}

int node_size(const machine::Machine& machine) {
  int size = 1;
  while (size < machine.ranks() && machine.reach(0, size) == machine::Reach::load_store) ++size;
  return size;
}

}  // namespace hemiola::plan
