// The line engine: rounds.

#include "sim/line/line.h"

#include <algorithm>
#include <bit>

namespace hemiola::sim {
std::string Line::refuses(const machine::Machine& machine, const program::Bound& program,
                          const Options& options) {
  const bool watched = options.record != nullptr || options.replay != nullptr;
  if (multicasts(program)) {
    const auto forwards = [](const machine::GpuModel& model) { return model.forwards; };
    if (std::ranges::any_of(machine.models, forwards)) return "multicast";
  }
  if (has_queues(program)) return "queues of copy engines";
  for (const machine::Node& node : machine.nodes)
    if (watched && node.switch_model.queue > 0) return "finite queues";
  for (const machine::LinkClass& c : machine.link_classes) {
    if (watched && c.credits > 0) return "credits";
    if (watched && c.arbitration != machine::Arbitration::fifo) return "arbitration";
  }
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const machine::GpuModel& model = machine.model(rank);
    if (watched && model.noc_arbitration != machine::Arbitration::fifo) return "arbitration";
    if (model.noc_kind == machine::NocKind::mesh) return "networks on chip that are meshes";
    const std::int64_t line = machine.model(0).line_size.count;
    const std::int64_t sector = std::min(machine.model(0).sector_size.count, line);
    if (!std::has_single_bit(static_cast<std::uint64_t>(sector)) || line % sector != 0 ||
        line / sector > static_cast<std::int64_t>(kMostSectors))
      return "such sectors";
  }
  return {};
}

Line::Line(const machine::Machine& machine, const program::Bound& program, const Options& options)
    : Cores(machine, program, options),
      stage_of_(index(program.ranks()), -1),
      stage_of_engine_(device_.engines.size(), -1),
      links_(machine.links.size()) {
  for (int rank = 0; rank < device_.fold.period; ++rank) {
    if (!device_.is_simulated(rank)) continue;
    stage_of_[index(rank)] = static_cast<std::int32_t>(simulated_.size());
    simulated_.push_back(rank);
  }
  stages_.resize(simulated_.size());
  make_tables();
  make_engine_stages();
  make_groups_of_switches();
  choose_rounds();
  if (options.engine == Engine::sampled) {
    const machine::GpuModel& model = machine.model(0);
    device_.sampling = std::make_unique<Sampling>(index(device_.fold.period), device_.groups.size(),
                                                  device_.waves.size());
    device_.sampling->set_caches((model.l2_size + model.msc_size).count / device_.lines.size);
  }
  if (options.record != nullptr) start_recording();
  if (options.replay != nullptr) start_replay();
}

// What depends on a machine's parameters only, worked out once: times by size, latencies, tags.
void Line::make_tables() {
  const auto sizes = device_.lines.size >> device_.lines.sector_shift;
  const auto costs = [&](Rate rate, const auto& bytes_of) {
    Costs table{};
    for (std::int64_t s = 0; s <= sizes; ++s)
      table[index(s)] = rate.time_for(bytes_of(s << device_.lines.sector_shift)).fs;
    return table;
  };
  for (const int rank : simulated_) {
    Gpu& gpu = stage(rank);
    const GpuLayout& layout = device_.layout(rank);
    const machine::GpuModel& model = layout.model;
    const auto on_chip = [&](std::int64_t bytes) {
      return bytes > 0 ? bytes : model.noc_control_size.count;
    };
    gpu.cu_out_costs = costs(model.noc_cu_out_rate, on_chip);
    gpu.cu_in_costs = costs(model.noc_cu_rate, on_chip);
    gpu.io.resize(index(layout.ports));
    for (std::int32_t p = 0; p < layout.ports; ++p)
      gpu.io[index(p)] = costs(layout.port_rates[index(p)], on_chip);
    gpu.slice = costs(model.l2_slice_rate, on_chip);
    gpu.flag_cost = memory_.flag_time(rank);
    for (std::int64_t s = 0; s <= sizes; ++s)
      gpu.operand[index(s)] = memory_.operand_time(rank, s << device_.lines.sector_shift);
    gpu.noc = model.noc_latency.fs;
    gpu.io_latency = model.noc_io_latency.fs;
    gpu.l2 = model.l2_latency.fs;
    gpu.partition = model.noc_partition_latency.fs;
    gpu.cu_out_free.resize(index(layout.cus));
    gpu.cu_in_free.resize(index(layout.cus));
    gpu.slice_free.resize(index(layout.slices));
    gpu.io_out_free.resize(index(layout.ports));
    gpu.io_in_free.resize(index(layout.ports));
    for (std::int32_t c = 0; c < layout.cus; ++c)
      gpu.partition_of_cu.push_back(static_cast<std::uint8_t>(c % model.noc_partitions));
    for (std::int32_t s = 0; s < layout.slices; ++s)
      gpu.partition_of_slice.push_back(static_cast<std::uint8_t>(s % model.noc_partitions));
    gpu.home_cu_in = servers_.complete_tag(rank, Servers::Return::cu_in, 0);
    gpu.home_slices = servers_.complete_tag(rank, Servers::Return::slices, 0);
    gpu.home_port = servers_.complete_tag(rank, Servers::Return::port, 0);
  }
  for (const machine::LinkClass& c : device_.machine.link_classes)
    link_costs_.push_back(
        costs(c.bandwidth, [&](std::int64_t bytes) { return c.wire_bytes(bytes, 0); }));
  for (std::size_t l = 0; l < links_.size(); ++l)
    links_[l].costs = &link_costs_[index(device_.machine.links[l].link_class)];
}

void Line::add_ways(std::int32_t route) {
  const std::lock_guard lock(making_ways_);
  for (std::int32_t r = ways_made_.load(std::memory_order_relaxed); r <= route; ++r) {
    const Path& path = device_.fabric.path(r);
    const auto end = [&](machine::NodeId node) {
      const int rank = device_.fabric.rank_of(node);
      return device_.options.replay == nullptr ? device_.home(rank) : rank;
    };
    ways_.reserve(index(r));
    Way& way = ways_[index(r)] = make_way(path.forward, path.reverse);
    way.forward.out_port = way.back.in_port = static_cast<std::int16_t>(path.source_port);
    way.forward.in_port = way.back.out_port = static_cast<std::int16_t>(path.destination_port);
    way.back.to = end(device_.machine.links[index(path.links.front())].from);
    way.forward.to = end(device_.machine.links[index(path.links.back())].to);
    ways_made_.store(r + 1, std::memory_order_release);
  }
}

Way Line::make_way(const Leg& forward, const Leg& back) const {
  Way way;
  way.hops = std::make_unique<LinkHop[]>(index(forward.count + back.count));
  LinkHop* hops = way.hops.get();
  for (auto [leg, made] : {std::pair(&forward, &way.forward), std::pair(&back, &way.back)}) {
    made->hops = hops;
    made->count = static_cast<std::int16_t>(leg->count);
    for (std::int32_t h = 0; h < leg->count; ++h) {
      const Hop& hop = leg->hops[h];
      *hops++ = {.link = hop.server - device_.fabric.link_base,
                 .tag = hop.tag,
                 .reason = hop.node_reason,
                 .latency = hop.latency,
                 .node_latency = hop.node_latency};
    }
  }
  return way;
}

// What links carried, for the result.
void Line::count_links() {
  for (std::size_t l = 0; l < links_.size(); ++l) {
    const LinkState& link = links_[l];
    Server& server = device_.fabric.servers[index(device_.fabric.link_base) + l];
    server.max_wait = link.max_wait;
    for (std::size_t s = 0; s < link.requests.size(); ++s) {
      const std::int64_t count = link.requests[s];
      const auto payload = static_cast<std::int64_t>(s << device_.lines.sector_shift);
      if (count == 0) continue;
      server.requests += static_cast<std::int32_t>(count);
      server.payload += count * payload;
      server.wire +=
          count * device_.machine.class_of(static_cast<machine::LinkId>(l)).wire_bytes(payload, 0);
      server.busy += count * (*link.costs)[s];
    }
  }
}

// What is passed over in a sampled run goes over all paths alike.
void Line::carry(const Passage& passage) {
  const LeftOut& all = passage.requests;
  const std::int64_t count = all.count();
  carried_ += count;  // which of the paths has one more goes round
  // The part-th of so many paths.
  const auto add = [&](const WayLeg& leg, bool data, std::int64_t part, std::int64_t parts) {
    const std::int64_t place = (part + carried_) % parts;
    const auto share = [&](std::int64_t of) {
      return static_cast<std::uint32_t>(of * (place + 1) / parts - of * place / parts);
    };
    for (const LinkHop* hop = leg.hops; hop != leg.hops + leg.count; ++hop) {
      auto& requests = links_[index(hop->link)].requests;
      if (!data) requests[0] += share(count);
      for (std::size_t s = 0; s < requests.size() && data; ++s)
        requests[s] += share(all.by_sectors[s]);
    }
  };
  const auto add_way = [&](const Way& way, std::int64_t part, std::int64_t parts) {
    add(way.forward, passage.write, part, parts);
    add(way.back, !passage.write, part, parts);
  };
  if (passage.group >= 0) {
    const auto planes = std::ssize(multicast_.planes(passage.group, passage.rank));
    const std::int32_t first = first_replication_.at(pair_key(passage.group, passage.rank));
    for (std::int32_t p = 0; p < planes; ++p) {
      const Replication& replication = replications_[index(first + p)];
      add_way(replication.way, p, planes);
      for (const Replica& replica : replication.replicas)
        add_way(replica_ways_[index(replica.way)], p, planes);
    }
    return;
  }
  const Fabric::Paths paths = device_.fabric.paths(passage.rank, passage.target);
  for (std::int32_t p = 0; p < paths.count; ++p) {
    if (paths.first + p >= ways_made_.load(std::memory_order_relaxed)) add_ways(paths.first + p);
    add_way(ways_[index(paths.first + p)], p, paths.count);
  }
}

// In round k a stage is at [k W + o, (k + 1) W + o): rounds last W, and stages have offsets o. From
// a stage u to a stage v it takes at least L, 1 fs of it for every server. If v comes behind u in
// the round, all that arrives in its window is there if o_v <= o_u + L; if v comes before u, W <= L
// + o_u - o_v.
void Line::choose_rounds() {
  // Engines are between CUs and slices: what they send is there at once.
  const EngineLatencies engines = engine_latencies();
  engine_offset_ = 0;
  for (int rank = 0; rank < device_.fold.period; ++rank)
    engine_offset_ = std::max(engine_offset_, device_.model(rank).noc_latency.fs);
  engine_offset_ = std::clamp<std::int64_t>(engine_offset_, 1, engines.from_host);
  const auto after_cus = [&](const machine::GpuModel& model) {
    return has_engines() ? std::min(model.noc_latency.fs, engine_offset_) : model.noc_latency.fs;
  };
  std::int64_t out = INT64_MAX;  // from a CU, at 0, to a link
  for (int rank = 0; rank < device_.fold.period; ++rank) {
    const machine::GpuModel& model = device_.model(rank);
    out = std::min(out, after_cus(model) + 1 + model.noc_io_latency.fs);
  }
  const LinkOrder links = place_links(out);
  std::int64_t most = links.window;
  if (has_engines()) most = std::min(most, engines.to_host + engine_offset_);
  for (int rank = 0; rank < device_.fold.period; ++rank) {
    const machine::GpuModel& model = device_.model(rank);
    const std::int64_t noc = model.noc_latency.fs, l2 = model.l2_latency.fs;
    const std::int64_t fill =
        model.msc_size.count > 0 ? model.msc_latency.fs : model.hbm_latency.fs;
    // From ports of others by links.
    const std::int64_t arrive = links.at_gpu + 1 + model.noc_io_latency.fs;
    const std::int64_t slices = after_cus(model), memory = slices + l2, io_out = slices;
    const std::int64_t cu_in =
        std::min(memory, (arrive - 1) / 2);  // between what fills and empties it
    // Back to the CUs: loads by cu_in, acknowledgements from slices.
    most = std::min({most, cu_in + 1 + noc, slices + 1 + l2 + noc});
    // A fill meets the requests that wait for it.
    most = std::min(most, memory + 1 + fill - slices);
    most = std::min({most, arrive - slices, arrive + noc, arrive - cu_in});
    if (has_engines()) most = std::min(most, arrive + noc - engine_offset_);
    if (copies_) most = std::min(most, slices + 1 + l2 - engine_offset_);  // inside the GPU
    if (stage_of_[index(rank)] < 0) continue;
    Gpu& gpu = stage(rank);
    gpu.done.set(0, 0);
    gpu.ingress.set(0, links.at_gpu);
    gpu.slices.set(0, slices);
    gpu.memory.set(0, memory);
    gpu.cu_in.set(0, cu_in);
    gpu.io_out.set(0, io_out);
  }
  shift_ = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most))) - 1;
  for (Gpu& gpu : stages_) {
    for (Calendar* stage : gpu.calendars()) {
      stage->set(shift_, stage->begin_of(0));
      stage->use(workers_[index(gpu.worker)].spare);
    }
  }
  latest_offset_ = links.at_gpu;
  for (std::size_t m = 0; m < merges_.size(); ++m) {
    Calendar& merge = merges_[m];
    merge.set(shift_, merge.begin_of(0));
    merge.use(workers_[index(worker_of_word_[m / 64])].spare);
    latest_offset_ = std::max(latest_offset_, merge.begin_of(0));
  }
  place_switches();
  last_round_ = (-latest_offset_ >> shift_) - 1;
}

LinkOrder Line::place_links(std::int64_t out) {
  LinkOrderRequest request{.machine = device_.machine,
                           .fabric = device_.fabric,
                           .out = out,
                           .nics = nics_,
                           .own = {},
                           .answers = device_.options.replay != nullptr};
  // A GPU's own link has one input, that of its port, unless links of others lead on to it. What
  // others of a replay send is put in there. Where requests wait in queues it has rounds of its
  // own.
  for (std::int32_t l = 0; l < static_cast<std::int32_t>(device_.machine.links.size()); ++l) {
    const int rank = device_.fabric.rank_of(device_.machine.links[index(l)].from);
    request.own.push_back(rank >= 0 && !device_.model(rank).forwards &&
                          (rank >= device_.program.ranks() || device_.is_simulated(rank)) &&
                          link_queue(l) == nullptr);
  }
  LinkOrder order = order_links(request);
  // Switches of multicast groups are next to GPUs, whose own links come before them.
  if (order.begins_at_gpus) switches_at_ = 1;
  divide(order.levels);
  for (const std::vector<std::int32_t>& level : order.levels)
    for (const std::int32_t l : level)
      merges_[index(links_[index(l)].calendar)].set(0, order.offset[index(l)]);
  return order;
}

// Events of ranks. What this engine does not take never comes here (see refuses()).
int Line::rank_of(EventKind kind, std::int32_t a) const {
  switch (kind) {
    case kWave:
    case kWaves:
      return device_.group(device_.wave(a).workgroup).rank;
    case kDispatch:
      return device_.kernel(a).rank;
    case kComputed:
    case kPosted:
      return device_.group(a).rank;
    case kNap:
      return Sampling::rank_of(a);
    case kProxy:
      return device_.descriptors[index(a)].rank;
    case kRetry:
    case kComplete:
      return device_.request(a).source;
    default:
      return a;
  }
}

void Line::push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b,
                std::uint32_t tag) {
  if (kind == kLegEnd) {
    if (!asked_.empty()) refuse_pull(device_.request(a));
    to_slices(a, time, tag);
    return;
  }
  if (is_progress(kind, b)) ++device_.tally().active;
  if (kind == kEngine || kind == kEngineDone) {
    if (kind == kEngine && b >= 0 && device_.options.record != nullptr)
      note_engine(a, device_.descriptors[index(b)].rank);
    push_engine(engine_stage_of(a), {time, 0, tag, kind, a, b});
    return;
  }
  if (kind == kPosted) {
    mine().posted.push_back({mine().engine_at, time, a, b});
    return;
  }
  push_event(stage(rank_of(kind, a)), time, kind, a, b, tag);
}

void Line::push_event(Gpu& gpu, std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b,
                      std::uint32_t tag) {
  gpu.events.push_back({time, gpu.next_sequence++, tag, kind, a, b});
  std::push_heap(gpu.events.begin(), gpu.events.end(), Later{});
}

// The first of a heap.
void Line::happen(std::vector<CoreEvent>& events) {
  std::pop_heap(events.begin(), events.end(), Later{});
  const CoreEvent now = events.back();
  events.pop_back();
  if (is_progress(now.kind, now.b)) --device_.tally().active;
  if (now.kind == kComplete)
    issue_.complete(now.a, now.time);
  else
    handle_core(now.kind, now.time, now.a, now.b, now.tag);
}

}  // namespace hemiola::sim
