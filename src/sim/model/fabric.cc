#include "sim/model/fabric.h"

#include <algorithm>

#include "machine/network_routing.h"

namespace hemiola::sim {
namespace {

using machine::LinkId;
using machine::NodeKind;

}  // namespace

Fabric::Fabric(const machine::Machine& m) : machine(m) {
  number_ports();
  paths_between_.resize(index(m.ranks()));
  add_links();
}

void Fabric::add_gpus(int ranks, int period, const std::vector<LinkId>& link_of,
                      const std::function<bool(int)>& simulated) {
  for (int rank = 0; rank < period; ++rank) add_gpu_servers(rank, simulated(rank));
  for (int rank = period; rank < ranks; ++rank) {
    gpu_base.push_back(gpu_base[index(rank - period)]);
    layout.push_back(layout[index(rank - period)]);
  }
  if (link_of.empty()) return;
  link_of_ = link_of;
  path_count_ = 0;  // those were of their own links
  leg_pool_.clear();
  for (std::vector<Paths>& row : paths_between_) row = {};
}

std::int32_t Fabric::add_kind(ServerKind kind) {
  kinds.push_back(kind);
  return static_cast<std::int32_t>(kinds.size()) - 1;
}

// The other direction of every link, GPUs by node, and I/O ports: the ports of a GPU are numbered
// by the relative rank of the neighbour (then lane), so that numbers are equal on all ranks of a
// symmetric machine.
void Fabric::number_ports() {
  const auto links = machine.links.size();
  reverse.assign(links, -1);
  std::map<std::tuple<machine::NodeId, machine::NodeId, std::int32_t>, LinkId> by_ends;
  for (std::size_t l = 0; l < links; ++l) {
    const machine::Link& link = machine.links[l];
    by_ends[{link.from, link.to, link.lane}] = static_cast<LinkId>(l);
  }
  std::vector<std::int32_t> into(machine.nodes.size(), 0);
  in_index_.resize(links);
  for (std::size_t l = 0; l < links; ++l) {
    const machine::Link& link = machine.links[l];
    const auto found = by_ends.find({link.to, link.from, link.lane});
    reverse[l] = found == by_ends.end() ? static_cast<LinkId>(l) : found->second;
    in_index_[l] = into[index(link.to)]++;
  }
  rank_of_.assign(machine.nodes.size(), -1);
  for (int rank = 0; rank < machine.ranks(); ++rank)
    rank_of_[index(machine.gpus[index(rank)])] = rank;
  port_.assign(links, -1);
  std::vector<std::vector<LinkId>> out(machine.nodes.size());
  for (std::size_t l = 0; l < links; ++l)
    out[index(machine.links[l].from)].push_back(static_cast<LinkId>(l));
  find_nics(out);
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    std::vector<LinkId>& own = out[index(machine.gpus[index(rank)])];
    const auto key = [&](LinkId l) {
      const machine::Link& link = machine.links[index(l)];
      const int peer = rank_of(link.to);
      const int relative =
          peer < 0 ? machine.ranks() + link.to : (peer - rank + machine.ranks()) % machine.ranks();
      return std::tuple(relative, link.lane, l);
    };
    std::ranges::sort(own, [&](LinkId a, LinkId b) { return key(a) < key(b); });
    std::vector<Rate>& ports = ports_of_.emplace_back();
    for (std::size_t p = 0; p < own.size(); ++p) {
      port_[index(own[p])] = static_cast<std::int32_t>(p);
      const machine::Link& link = machine.links[index(own[p])];
      ports.push_back(
          machine.model(rank).port_rate(machine.link_classes[index(link.link_class)].bandwidth));
    }
  }
}

// A NIC stands for the GPU that it is nearest to (of several the first), if no other does.
void Fabric::find_nics(const std::vector<std::vector<LinkId>>& out) {
  std::vector<int> nearest = rank_of_;
  std::vector<machine::NodeId> reached(machine.gpus.begin(), machine.gpus.end());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const LinkId l : out[index(reached[i])]) {
      const machine::NodeId next = machine.links[index(l)].to;
      if (nearest[index(next)] >= 0) continue;
      nearest[index(next)] = nearest[index(reached[i])];
      reached.push_back(next);
    }
  }
  rank_at_ = rank_of_;
  std::vector<int> nics(index(machine.ranks()));
  const auto is_nic = [&](std::size_t n) {
    return machine.nodes[n].kind == NodeKind::nic && nearest[n] >= 0;
  };
  for (std::size_t n = 0; n < nearest.size(); ++n)
    if (is_nic(n)) ++nics[index(nearest[n])];
  for (std::size_t n = 0; n < nearest.size(); ++n)
    if (is_nic(n) && nics[index(nearest[n])] == 1) rank_at_[n] = nearest[n];
}

void Fabric::add_gpu_servers(int rank, bool simulated) {
  const std::vector<Rate>& port_rates = ports_of_[index(rank)];
  const auto ports = static_cast<std::int32_t>(port_rates.size());
  std::vector<std::int64_t> alike;
  for (const Rate rate : port_rates) alike.push_back(rate.bytes_per_second);
  const std::int32_t model_index = machine.gpu_models[index(rank)];
  const auto [found, fresh] = layout_of_.try_emplace({model_index, std::move(alike)},
                                                     static_cast<std::int32_t>(layouts_.size()));
  const machine::GpuModel& model = machine.models[index(model_index)];
  if (fresh) {
    layouts_.push_back(std::make_unique<GpuLayout>(model, port_rates));
    const GpuLayout& l = *layouts_.back();
    const auto share = [](Rate rate, std::int64_t parts, std::int64_t permille = 1000) {
      return rate.is_ideal()
                 ? rate
                 : Rate{std::max<std::int64_t>(1, rate.bytes_per_second / parts * permille / 1000)};
    };
    std::vector<std::int32_t> kind_of(index(l.servers));
    const auto fill = [&](std::int32_t first, std::int32_t count, ServerKind kind) {
      if (count == 0) return;
      std::fill_n(kind_of.begin() + first, count, add_kind(kind));
    };
    fill(l.cu_out, l.cus, {.rate = model.noc_cu_out_rate, .reason = Reason::noc, .merges = false});
    fill(l.cu_in, l.cus, {.rate = model.noc_cu_rate, .reason = Reason::noc});
    fill(l.cu_alu, l.cus, {.reason = Reason::compute});
    for (std::int32_t p = 0; p < ports; ++p) {
      const Rate rate = port_rates[index(p)];
      fill(l.io_out + p, 1, {.rate = rate, .reason = Reason::io});
      fill(l.io_in + p, 1, {.rate = rate, .reason = Reason::io, .merges = false});
    }
    fill(l.slice, l.slices, {.rate = model.l2_slice_rate, .reason = Reason::l2});
    fill(l.msc, l.channels, {.rate = share(model.msc_rate, l.channels), .reason = Reason::msc});
    fill(l.hbm, l.channels,
         {.rate = share(model.hbm_rate, l.channels, model.hbm_efficiency_permille),
          .reason = Reason::hbm});
    fill(l.dma, l.engines, {.rate = model.dma_rate, .reason = Reason::dma});
    fill(l.proxy, 1, {.reason = Reason::proxy});
    fill(l.mesh, l.servers - l.mesh, {.rate = model.noc_link_rate, .reason = Reason::noc});
    gpu_kinds_.push_back(std::move(kind_of));
  }
  const GpuLayout& l = *layouts_[index(found->second)];
  const auto base = static_cast<std::int32_t>(servers.size());
  gpu_base.push_back(base);
  layout.push_back(&l);
  if (!simulated) return;
  servers.resize(servers.size() + index(l.servers));
  for (std::int32_t s = 0; s < l.servers; ++s) {
    Server& server = servers[index(base + s)];
    server.kind = static_cast<std::int16_t>(gpu_kinds_[index(found->second)][index(s)]);
    const bool arbitrated = s >= l.mesh || (s >= l.io_out && s < l.io_out + ports);
    if (arbitrated && model.noc_arbitration != machine::Arbitration::fifo) {
      server.arbiter = static_cast<std::int32_t>(arbiters.size());
      arbiters.push_back({.policy = model.noc_arbitration});
    }
  }
}

void Fabric::add_links() {
  link_base = static_cast<std::int32_t>(servers.size());
  std::vector<std::int32_t> kind_of;
  for (std::size_t c = 0; c < machine.link_classes.size(); ++c) {
    kind_of.push_back(add_kind({.rate = machine.link_classes[c].bandwidth,
                                .reason = Reason::link,
                                .merges = true,
                                .counts_wire = true,
                                .link_class = static_cast<std::int32_t>(c)}));
  }
  const bool finite = std::ranges::any_of(
      machine.nodes, [](const machine::Node& n) { return n.switch_model.queue > 0; });
  for (const machine::Link& link : machine.links) {
    const machine::LinkClass& c = machine.link_classes[index(link.link_class)];
    Server server;
    server.kind = static_cast<std::int16_t>(kind_of[index(link.link_class)]);
    if (finite || c.credits > 0 || c.arbitration != machine::Arbitration::fifo) {
      server.arbiter = static_cast<std::int32_t>(arbiters.size());
      arbiters.push_back({.policy = c.arbitration,
                          .limit = machine.nodes[index(link.from)].switch_model.queue,
                          .credits = c.credits,
                          .has_credits = c.credits > 0,
                          .credit_latency = c.latency.fs});
    }
    servers.push_back(server);
  }
  nic_base = static_cast<std::int32_t>(servers.size());
  node_index.assign(machine.nodes.size(), -1);
  std::int32_t nics = 0, switches = 0;
  for (std::size_t n = 0; n < machine.nodes.size(); ++n) {
    const machine::Node& node = machine.nodes[n];
    if (node.kind != NodeKind::nic) continue;
    node_index[n] = nics++;
    servers.push_back({.kind = static_cast<std::int16_t>(
                           add_kind({.rate = node.nic_model.rate, .reason = Reason::nic}))});
  }
  reduce_base = static_cast<std::int32_t>(servers.size());
  for (std::size_t n = 0; n < machine.nodes.size(); ++n) {
    const machine::Node& node = machine.nodes[n];
    if (node.kind != NodeKind::switch_) continue;
    node_index[n] = switches++;
    servers.push_back({.kind = static_cast<std::int16_t>(add_kind(
                           {.rate = node.switch_model.reduce_rate, .reason = Reason::switch_}))});
  }
}

// Tags at a link: from the node itself 0; from a GPU, or its NIC, that feeds a switch output
// towards a GPU or a NIC the relative rank, lanes apart; else the place of the upstream link among
// those into the node.
Hop Fabric::link_hop(LinkId l, LinkId upstream) const {
  const machine::Link& link = machine.links[index(l)];
  const machine::LinkClass& c = machine.link_classes[index(link.link_class)];
  const machine::Node& to = machine.nodes[index(link.to)];
  Hop hop{.server = link_base + (link_of_.empty() ? l : link_of_[index(l)]),
          .latency = c.latency.fs,
          .latency_reason = Reason::link};
  if (to.kind == NodeKind::nic) {
    hop.node_latency = to.nic_model.latency.fs;
    hop.node_reason = Reason::nic;
  } else if (to.kind != NodeKind::xpu) {
    hop.node_latency = to.switch_model.latency.fs;
  }
  if (upstream >= 0) {
    const machine::Link& up = machine.links[index(upstream)];
    const int source = rank_at_[index(up.from)];
    const int target = rank_at_[index(link.to)];
    const int ranks = machine.ranks();
    const bool from_nic = machine.nodes[index(up.from)].kind == NodeKind::nic;
    const int first = source < 0 || target < 0 ? 4 << 20 : from_nic ? 2 << 20 : 0;
    const int place = source < 0 || target < 0 ? in_index_[index(upstream)]
                                               : (source - target + ranks) % ranks * 64 + up.lane;
    hop.tag = static_cast<std::uint32_t>(1 + first + place);
  }
  return hop;
}

Leg Fabric::link_leg(LinkId link, LinkId upstream) {
  const std::uint64_t key = pair_key(link, upstream + 1);
  const auto found = link_legs_.find(key);
  if (found != link_legs_.end()) return found->second;
  leg_pool_.push_back({link_hop(link, upstream)});
  const Leg leg{leg_pool_.back().data(), 1, 0, 0};
  link_legs_.emplace(key, leg);
  return leg;
}

Fabric::Paths Fabric::find_paths(int from, int to) {
  const std::lock_guard lock(finding_);
  std::vector<Paths>& row = paths_between_[index(from)];
  if (row.empty()) row.resize(index(machine.ranks()));
  Paths& found = row[index(to)];
  if (found.count == 0) {
    const machine::Routes& routes = machine.routes(from, to);
    found = {path_count_, routes.count, machine::path_of_messages(machine, routes, from, to)};
    for (std::int32_t i = 0; i < routes.count; ++i) {
      Path path;
      path.links = routes.path(i);
      std::vector<Hop> forward, back;
      for (std::size_t h = 0; h < path.links.size(); ++h) {
        forward.push_back(link_hop(path.links[h], h == 0 ? -1 : path.links[h - 1]));
        const std::size_t r = path.links.size() - 1 - h;
        back.push_back(link_hop(reverse[index(path.links[r])],
                                h == 0 ? -1 : reverse[index(path.links[r + 1])]));
      }
      // Passing through a GPU costs its on-chip way in and out.
      for (std::vector<Hop>* hops : {&forward, &back}) {
        for (std::size_t h = 0; h + 1 < hops->size(); ++h) {
          const int rank = rank_of(machine.links[index((*hops)[h].server - link_base)].to);
          if (rank < 0) continue;
          (*hops)[h].node_latency = 2 * machine.model(rank).noc_io_latency.fs;
          (*hops)[h].node_reason = Reason::io;
        }
      }
      path.source_port = port_of(path.links.front());
      path.destination_port = port_of(reverse[index(path.links.back())]);
      leg_pool_.push_back(std::move(forward));
      path.forward = {leg_pool_.back().data(), static_cast<std::int32_t>(leg_pool_.back().size()),
                      0, 0};
      leg_pool_.push_back(std::move(back));
      path.reverse = {leg_pool_.back().data(), static_cast<std::int32_t>(leg_pool_.back().size()),
                      0, 0};
      paths_.reserve(index(path_count_));
      paths_[index(path_count_++)] = path;
    }
  }
  return found;
}

}  // namespace hemiola::sim
