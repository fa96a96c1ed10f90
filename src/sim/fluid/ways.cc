// Resources and latencies.

#include "sim/fluid/ways.h"

#include <algorithm>
#include <numeric>

#include "program/bind/touched.h"

namespace hemiola::sim {
namespace {

using machine::LinkId;

constexpr std::int64_t kOne = std::int64_t{1} << kWeightBits;

/// a * b / c, rounded up.
std::int64_t scaled(__int128 a, __int128 b, __int128 c) {
  return static_cast<std::int64_t>((a * b + c - 1) / c);
}

Rate times(Rate rate, std::int64_t factor, std::int64_t permille = 1000) {
  return rate.is_ideal() ? rate : Rate{scaled(rate.bytes_per_second, factor * permille, 1000)};
}

}  // namespace

Requests requests_of(const program::Span& span, std::int64_t data, std::int64_t wave,
                     const machine::GpuModel& model, const Slices& slices) {
  const std::int64_t line = model.line_size.count, sector = model.sector_size.count;
  const std::int64_t bytes = program::memory_size(data, span.access);
  Requests made{(bytes + line - 1) / line, bytes};
  if (program::is_packet(span.access) || span.rank < 0 || data <= 0) return made;
  const std::int64_t piece = std::min({data, wave, span.run > 0 ? span.run : data});
  const std::int64_t pieces = (data + piece - 1) / piece;
  const auto one_more = [&](std::int64_t unit) {  // on average
    std::int64_t sum = 0;
    for (std::int64_t slice = 0; slice < slices.count; ++slice) {
      const std::int64_t moved = slices.begin(slice) - slices.begin(slices.own);
      const std::int64_t bytes =
          slices.count == 1 ? data : slices.begin(slice + 1) - slices.begin(slice);
      const std::int64_t step = std::gcd(span.offset + moved, span.run > 0 ? span.pitch : bytes);
      const std::int64_t phases = unit / std::gcd(step, unit);
      sum += pieces * (phases - 1) / phases;
    }
    return sum / slices.count;
  };
  made.count += one_more(line);
  made.bytes += one_more(sector) * sector;
  return made;
}

std::int64_t issue_time(const machine::GpuModel& model, std::int64_t loads, std::int64_t stores,
                        std::int64_t in, std::int64_t out) {
  return std::max({std::max<std::int64_t>(1, model.cu_issue_interval.fs) * (loads + stores),
                   model.noc_cu_rate.time_for(in).fs,
                   model.noc_cu_out_rate.time_for(out + loads * model.noc_control_size.count).fs});
}

void charge(Attribution& spent, const Latency& latency, std::int64_t fs) {
  if (fs <= 0) return;
  std::int64_t left = fs;
  std::size_t largest = index(Reason::issue);
  for (std::size_t r = 0; r < kReasons && latency.fs > 0; ++r) {
    const auto part =
        static_cast<std::int64_t>(static_cast<__int128>(latency.by_reason[r]) * fs / latency.fs);
    spent[r] += part;
    left -= part;
    if (latency.by_reason[r] > latency.by_reason[largest]) largest = r;
  }
  spent[largest] += left;
}

Ways::Ways(const machine::Machine& machine, const program::Bound& program, const Classes& fold,
           Shares& shares, std::int64_t touched)
    : machine_(machine), program_(program), fold_(fold), reverse_(reverse_links(machine)) {
  link_resource_.assign(index(fold.link_classes()), -1);
  port_out_ = port_in_ = link_resource_;
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const std::int32_t number = fold.link_class(static_cast<LinkId>(l));
    if (number < 0 || link_resource_[index(number)] >= 0) continue;
    const machine::Link& link = machine.links[l];
    Rate rate = machine.link_classes[index(link.link_class)].bandwidth;
    for (const machine::NodeId node : {link.from, link.to}) {
      const Rate nic = machine.nodes[index(node)].nic_model.rate;
      if (machine.nodes[index(node)].kind == machine::NodeKind::nic && !nic.is_ideal())
        rate = rate.is_ideal() ? nic : std::min(rate, nic);
    }
    link_resource_[index(number)] = shares.add_resource(rate, Reason::link);
    const auto port = [&](machine::NodeId node) {
      const auto rank = std::ranges::find(machine.gpus, node);
      return rank == machine.gpus.end()
                 ? -1
                 : shares.add_resource(
                       machine.model(static_cast<int>(rank - machine.gpus.begin()))
                           .port_rate(machine.link_classes[index(link.link_class)].bandwidth),
                       Reason::io);
    };
    port_out_[index(number)] = port(link.from);
    port_in_[index(number)] = port(link.to);
  }
  for (std::int32_t c = 0; c < fold.rank_classes(); ++c) {
    const int rank = fold.first_rank(c);
    const machine::GpuModel& model = machine.model(rank);
    const program::Touched all = program::touched_by(program.frame(), rank);
    in_fifos_.push_back(all.under_way());
    if (program.linked() != nullptr) {  // of its launches, one after the other
      in_fifos_.back() = 0;
      for (const program::Frame& frame : program.linked()->frames) {
        const std::int32_t own = frame.own_of(rank);
        if (own < 0) continue;
        in_fifos_.back() = std::max(in_fifos_.back(), program::touched_by(frame, own).under_way());
      }
    }
    footprint_.push_back(std::max(all.data() + in_fifos_.back(), touched));
    l2_.push_back(shares.add_resource(times(model.l2_slice_rate, model.l2_slices), Reason::l2));
    hbm_.push_back(
        shares.add_resource(times(model.hbm_rate, 1, model.hbm_efficiency_permille), Reason::hbm));
    memory_.push_back(model.msc_size.count > 0 ? shares.add_resource(model.msc_rate, Reason::msc)
                                               : hbm_.back());
  }
  for (std::size_t n = 0; n < machine.nodes.size() && !program.groups().empty(); ++n) {
    const machine::Node& node = machine.nodes[n];
    if (node.kind == machine::NodeKind::switch_)
      reduce_[static_cast<machine::NodeId>(n)] =
          shares.add_resource(node.switch_model.reduce_rate, Reason::switch_);
  }
}

Depth Ways::depth_of(int rank, std::int32_t buffer, bool load, int repetition) const {
  const machine::GpuModel& model = machine_.model(rank);
  const program::BufferKind kind = program_.buffers()[index(buffer)].kind;
  if (load && repetition == 0 &&
      (kind == program::BufferKind::input || kind == program::BufferKind::resident))
    return Depth::memory;
  if (model.l2_size.count == 0) return Depth::cache;
  const auto c = index(fold_.rank_class(rank));
  const std::int64_t touched = kind == program::BufferKind::fifo ? in_fifos_[c] : footprint_[c];
  return touched > model.l2_size.count ? Depth::cache : Depth::l2;
}

void Ways::at_memory(int rank, std::int64_t bytes, Depth depth, std::int64_t total,
                     std::int64_t members, std::vector<Demand>& out) const {
  const std::int32_t c = fold_.rank_class(rank);
  const std::int64_t weight =
      scaled(static_cast<__int128>(bytes) * kOne, members, total * fold_.ranks_in(c));
  out.push_back({l2_[index(c)], weight});
  if (depth != Depth::l2) behind_l2(rank, bytes, depth, total, members, out);
}

// What is evicted from the memory-side cache is written back, or has to be loaded again.
void Ways::behind_l2(int rank, std::int64_t bytes, Depth depth, std::int64_t total,
                     std::int64_t members, std::vector<Demand>& out) const {
  const std::size_t c = index(fold_.rank_class(rank));
  const std::int64_t weight = scaled(static_cast<__int128>(bytes) * kOne, members,
                                     total * fold_.ranks_in(static_cast<std::int32_t>(c)));
  out.push_back({memory_[c], weight});
  if (hbm_[c] == memory_[c]) return;
  const std::int64_t further = depth == Depth::memory ? kOne : spilled(rank);
  if (further > 0) out.push_back({hbm_[c], scaled(weight, further, kOne)});
}

void Ways::at_operands(int rank, std::int64_t bytes, Depth depth, std::int64_t total,
                       std::int64_t members, std::vector<Demand>& out) const {
  const machine::GpuModel& model = machine_.model(rank);
  const std::size_t before = out.size();
  at_memory(rank, bytes, depth, total, members, out);
  if (model.gemm_l2_rate.is_ideal() || model.l2_slice_rate.is_ideal()) return;
  out[before].weight =
      scaled(out[before].weight, model.l2_slice_rate.bytes_per_second * model.l2_slices,
             model.gemm_l2_rate.bytes_per_second);
}

// A class of links is entered once: several of them add up.
void Ways::add_shares(LinkId link, std::int64_t share, bool begins, bool ends,
                      std::vector<Share>& out) const {
  const std::int32_t number = fold_.link_class(link);
  const auto add = [&](std::int32_t resource, std::int32_t link_class) {
    if (resource < 0) return;
    for (Share& known : out) {
      if (known.resource != resource) continue;
      known.share += share;
      return;
    }
    out.push_back({resource, share, fold_.links_in(number), link_class});
  };
  add(link_resource_[index(number)], machine_.links[index(link)].link_class);
  if (begins) add(port_out_[index(number)], -1);
  if (ends) add(port_in_[index(number)], -1);
}

Latency Ways::over(int from, int to, std::int64_t payload, std::int64_t packet) const {
  Latency longest;
  const machine::Routes& routes = machine_.routes(from, to);
  if (routes.count == 0) return longest;
  const PathChoice choice = paths_of(machine_, routes, from, to);
  for (std::int32_t p = choice.first; p < choice.first + choice.count; ++p) {
    Latency latency;
    const auto path = routes.path(p);
    for (std::size_t h = 0; h < path.size(); ++h) {
      const machine::LinkClass& c = machine_.class_of(path[h]);
      latency.add(Reason::link,
                  c.latency.fs + c.bandwidth.time_for(c.wire_bytes(payload, packet)).fs);
      const machine::NodeId to_node = machine_.links[index(path[h])].to;
      const machine::Node& node = machine_.nodes[index(to_node)];
      if (node.kind == machine::NodeKind::nic) {
        latency.add(Reason::nic, node.nic_model.latency.fs);
      } else if (node.kind != machine::NodeKind::xpu) {
        latency.add(Reason::switch_, node.switch_model.latency.fs);
      } else if (h + 1 < path.size()) {
        latency.add(Reason::io,
                    2 * machine_.models[index(machine_.gpu_models.front())].noc_io_latency.fs);
      }
    }
    if (latency.fs > longest.fs) longest = latency;
  }
  return longest;
}

Latency Ways::on_chip(int rank, int times) const {
  const machine::GpuModel& model = machine_.model(rank);
  const bool mesh = model.noc_kind == machine::NocKind::mesh;
  const std::int64_t hops = mesh ? (model.noc_mesh_columns + model.noc_mesh_rows) / 2 + 1 : 1;
  // Half of the slices of a device with two partitions are in the other one.
  const std::int64_t far = model.noc_partition_latency.fs * (model.noc_partitions - 1) /
                           std::max<std::int64_t>(1, model.noc_partitions);
  Latency latency;
  latency.add(Reason::noc,
              times * (mesh ? hops * model.noc_hop_latency.fs : model.noc_latency.fs + far));
  return latency;
}

Ways::Way& Ways::way(int from, int to) {
  Way& way = ways_[pair_key(from, to)];
  if (way.made) return way;
  way.made = true;
  way.store = on_chip(from);
  if (from == to) {
    way.acknowledgement = on_chip(from);
    way.acknowledgement.add(Reason::l2, machine_.model(to).l2_latency.fs);
    return way;
  }
  const machine::Routes& routes = machine_.routes(from, to);
  const PathChoice choice = paths_of(machine_, routes, from, to);
  for (std::int32_t p = choice.first; p < choice.first + choice.count; ++p) {
    const auto path = routes.path(p);
    for (std::size_t h = 0; h < path.size(); ++h) {
      const LinkId link = path[h];
      const bool first = h == 0, last = h + 1 == path.size();
      const machine::LinkClass& c = machine_.class_of(link);
      const std::int64_t wire = c.wire_bytes(machine_.model(from).sector_size.count);
      way.flag_time = std::max(way.flag_time, c.bandwidth.time_for(wire).fs);
      add_shares(link, kOne / choice.count, first, last, way.there);
      add_shares(reverse_[index(link)], kOne / choice.count, last, first, way.back);
    }
  }
  way.links = burst(from, to, machine_.model(from).sector_size.count, 0);
  way.store += way.links;
  way.acknowledgement.add(Reason::l2, machine_.model(to).l2_latency.fs);
  way.acknowledgement += over(to, from, 0);
  way.acknowledgement.add(Reason::io, ports(from, to));
  way.acknowledgement += on_chip(from);
  return way;
}

const Latency& Ways::store(int from, int to) {
  return way(from, to).store;
}
const Latency& Ways::acknowledgement(int from, int to) {
  return way(from, to).acknowledgement;
}
const Latency& Ways::links(int from, int to) {
  return way(from, to).links;
}
Latency Ways::burst(int from, int to, std::int64_t bytes, std::int64_t packet) const {
  Latency latency = over(from, to, bytes, packet);
  latency.add(Reason::io, ports(from, to));
  return latency;
}

std::int64_t Ways::spilled(int rank) const {
  const std::int64_t size = machine_.model(rank).msc_size.count;
  const std::int64_t touched = footprint_[index(fold_.rank_class(rank))];
  return touched <= size ? 0 : scaled(static_cast<__int128>(touched - size) * kOne, 1, touched);
}

void Ways::add_memory(int owner, Depth depth, Latency& latency) const {
  if (depth == Depth::l2) return;
  const machine::GpuModel& model = machine_.model(owner);
  // What the cache on the memory's side does not hold is looked for there all the same.
  if (model.msc_size.count > 0) latency.add(Reason::msc, model.msc_latency.fs);
  const std::int64_t further = depth == Depth::memory ? kOne : spilled(owner);
  latency.add(Reason::hbm, scaled(model.hbm_latency.fs, further, kOne));
}

Latency Ways::load(int rank, int owner, Depth depth) {
  Latency latency = store(rank, owner);
  latency += acknowledgement(rank, owner);
  const machine::GpuModel& model = machine_.model(owner);
  add_memory(owner, depth, latency);
  if (rank != owner) {  // the answer has the data
    const Latency empty = over(owner, rank, 0), full = over(owner, rank, model.line_size.count);
    latency.add(Reason::link, std::max<std::int64_t>(0, full.fs - empty.fs));
  }
  return latency;
}

Latency Ways::group(int rank, std::int32_t group, bool load, Depth depth) {
  Latency latency = on_chip(rank, 2);
  const machine::GpuModel& model = machine_.model(rank);
  const MulticastPlane& plane = planes_.of(group, rank).front();
  const machine::Node& node = machine_.nodes[index(plane.node)];
  const machine::LinkClass& c = machine_.class_of(plane.up);
  const std::int64_t wire = c.bandwidth.time_for(c.wire_bytes(load ? model.line_size.count : 0)).fs;
  latency.add(Reason::link, 4 * c.latency.fs + 2 * wire);
  latency.add(Reason::switch_,
              2 * node.switch_model.latency.fs + (load ? node.switch_model.reduce_latency.fs : 0));
  latency.add(Reason::io, 4 * model.noc_io_latency.fs);
  latency.add(Reason::l2, model.l2_latency.fs);
  if (load) add_memory(rank, depth, latency);
  return latency;
}

void Ways::add(const std::vector<Share>& shares, const machine::Machine& machine,
               std::int64_t bytes, std::int64_t requests, std::int64_t packet, std::int64_t total,
               std::int64_t members, std::int64_t control, std::vector<Demand>& out) {
  for (const Share& share : shares) {
    std::int64_t wire = bytes > 0 ? bytes : requests * control;
    if (share.link_class >= 0) {
      const machine::LinkClass& c = machine.link_classes[index(share.link_class)];
      wire = bytes == 0
                 ? requests * c.wire_bytes(0)
                 : bytes + requests * (c.wire_bytes((bytes + requests - 1) / requests, packet) -
                                       (bytes + requests - 1) / requests);
    }
    out.push_back({share.resource, scaled(static_cast<__int128>(wire) * share.share, members,
                                          static_cast<__int128>(total) * share.links)});
  }
}

void Ways::over_links(int from, int to, std::int64_t bytes, std::int64_t requests,
                      std::int64_t packet, bool pulled, std::int64_t total, std::int64_t members,
                      std::vector<Demand>& out) {
  // The answer, or the request, takes the same links the other way.
  const Way& used = pulled ? way(to, from) : way(from, to);
  const std::int64_t control = machine_.model(from).noc_control_size.count;
  const std::size_t data = out.size();
  add(pulled ? used.back : used.there, machine_, bytes, requests, packet, total, members, control,
      out);
  for (std::size_t i = data; pulled && i < out.size(); ++i) out[i].answers = out[i].weight;
  add(pulled ? used.there : used.back, machine_, 0, requests, packet, total, members, control, out);
}

void Ways::over_group(int rank, std::int32_t group, std::int64_t bytes, std::int64_t requests,
                      bool load, Depth depth, std::int64_t total, std::int64_t alike,
                      std::vector<Demand>& out) {
  const std::vector<int>& members = program_.groups()[index(group)];
  const std::vector<MulticastPlane>& planes = planes_.of(group, rank);
  const std::int64_t share = kOne / std::ssize(planes);
  std::vector<Share> there, back;
  for (const MulticastPlane& plane : planes) {
    add_shares(plane.up, share, true, true, there);
    add_shares(reverse_[index(plane.up)], share, true, true, back);
    for (const auto& [member, down] : plane.down) {
      add_shares(down, share, true, true, there);
      add_shares(reverse_[index(down)], share, true, true, back);
    }
    if (load)
      out.push_back({reduce_.at(plane.node), scaled(static_cast<__int128>(bytes) * share,
                                                    std::ssize(members) * alike, total)});
  }
  const std::int64_t control = machine_.model(rank).noc_control_size.count;
  add(there, machine_, load ? 0 : bytes, requests, 0, total, alike, control, out);
  add(back, machine_, load ? bytes : 0, requests, 0, total, alike, control, out);
  for (const int member : members) at_memory(member, bytes, depth, total, alike, out);
}

}  // namespace hemiola::sim
