// The line engine: rounds.

#include "sim/line/line.h"

#include <algorithm>
#include <bit>

#include "sim/line/arrivals.h"

namespace hemiola::sim {
std::string Line::refuses(const machine::Machine& machine, const program::Bound& program,
                          const Options& options) {
  const bool watched = options.record != nullptr || options.replay != nullptr;
  if (WayTable::multicasts(program)) {
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
    : Cores(machine, program, options) {
  make_tables();
  engine_stages_.make();
  ways_.make_groups();
  choose_rounds();
  if (options.engine == Engine::sampled) {
    const machine::GpuModel& model = machine.model(0);
    device_.sampling = std::make_unique<Sampling>(index(device_.fold.period), device_.groups.size(),
                                                  device_.waves.size());
    device_.sampling->windows.set_caches((model.l2_size + model.msc_size).count /
                                         device_.lines.size);
  }
  if (options.record != nullptr) recorder_.start_recording();
  if (options.replay != nullptr) replayer_.start_replay();
}

// What depends on a machine's parameters only, worked out once: times by size, latencies, tags.
void Line::make_tables() {
  const auto sizes = device_.lines.size >> device_.lines.sector_shift;
  const auto costs = [&](Rate rate, const auto& bytes_of) {
    SizeCosts table{};
    for (std::int64_t s = 0; s <= sizes; ++s)
      table[index(s)] = rate.time_for(bytes_of(s << device_.lines.sector_shift)).fs;
    return table;
  };
  for (const int rank : stages_.simulated) {
    GpuStages& gpu = stages_.of(rank);
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
    stages_.link_costs.push_back(
        costs(c.bandwidth, [&](std::int64_t bytes) { return c.wire_bytes(bytes, 0); }));
  for (std::size_t l = 0; l < stages_.links.size(); ++l)
    stages_.links[l].costs = &stages_.link_costs[index(device_.machine.links[l].link_class)];
}

// What links carried, for the result.
void Line::count_links() {
  for (std::size_t l = 0; l < stages_.links.size(); ++l) {
    const LinkState& link = stages_.links[l];
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
      auto& requests = stages_.links[index(hop->link)].requests;
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
    const auto planes =
        static_cast<std::int32_t>(multicast_.planes(passage.group, passage.rank).size());
    for (std::int32_t p = 0; p < planes; ++p) {
      const WayTable::Replication& made = ways_.replication(passage.group, passage.rank, p);
      add_way(made.way, p, planes);
      for (const WayTable::Replica& replica : made.replicas)
        add_way(ways_.replica(replica.way), p, planes);
    }
    return;
  }
  const Fabric::Paths paths = device_.fabric.paths(passage.rank, passage.target);
  for (std::int32_t p = 0; p < paths.count; ++p) add_way(ways_.of(paths.first + p), p, paths.count);
}

// In round k a stage is at [k W + o, (k + 1) W + o): rounds last W, and stages have offsets o. From
// a stage u to a stage v it takes at least L, 1 fs of it for every server. If v comes behind u in
// the round, all that arrives in its window is there if o_v <= o_u + L; if v comes before u, W <= L
// + o_u - o_v.
void Line::choose_rounds() {
  // Engines are between CUs and slices: what they send is there at once.
  const EngineStages::Latencies engines = engine_stages_.latencies();
  stages_.engine_offset = 0;
  for (int rank = 0; rank < device_.fold.period; ++rank)
    stages_.engine_offset = std::max(stages_.engine_offset, device_.model(rank).noc_latency.fs);
  stages_.engine_offset = std::clamp<std::int64_t>(stages_.engine_offset, 1, engines.from_host);
  const auto after_cus = [&](const machine::GpuModel& model) {
    return stages_.has_engines() ? std::min(model.noc_latency.fs, stages_.engine_offset)
                                 : model.noc_latency.fs;
  };
  std::int64_t out = INT64_MAX;  // from a CU, at 0, to a link
  for (int rank = 0; rank < device_.fold.period; ++rank) {
    const machine::GpuModel& model = device_.model(rank);
    out = std::min(out, after_cus(model) + 1 + model.noc_io_latency.fs);
  }
  const LinkOrder links = place_links(out);
  std::int64_t most = links.window;
  if (stages_.has_engines()) most = std::min(most, engines.to_host + stages_.engine_offset);
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
    if (stages_.has_engines()) most = std::min(most, arrive + noc - stages_.engine_offset);
    if (stages_.copies)
      most = std::min(most, slices + 1 + l2 - stages_.engine_offset);  // inside the GPU
    if (stages_.gpu_of[index(rank)] < 0) continue;
    GpuStages& gpu = stages_.of(rank);
    gpu.done.set(0, 0);
    gpu.ingress.set(0, links.at_gpu);
    gpu.slices.set(0, slices);
    gpu.memory.set(0, memory);
    gpu.cu_in.set(0, cu_in);
    gpu.io_out.set(0, io_out);
  }
  stages_.shift = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most))) - 1;
  for (GpuStages& gpu : stages_.gpus) {
    for (Calendar* stage : gpu.calendars()) {
      stage->set(stages_.shift, stage->begin_of(0));
      stage->use(stages_.workers[index(gpu.worker)].spare);
    }
  }
  stages_.latest_offset = links.at_gpu;
  for (std::size_t m = 0; m < stages_.merges.size(); ++m) {
    Calendar& merge = stages_.merges[m];
    merge.set(stages_.shift, merge.begin_of(0));
    merge.use(stages_.workers[index(stages_.worker_of_word[m / 64])].spare);
    stages_.latest_offset = std::max(stages_.latest_offset, merge.begin_of(0));
  }
  links_.place_switches();
  stages_.last_round = (-stages_.latest_offset >> stages_.shift) - 1;
}

LinkOrder Line::place_links(std::int64_t out) {
  LinkOrderRequest request{.machine = device_.machine,
                           .fabric = device_.fabric,
                           .out = out,
                           .nics = stages_.nics,
                           .own = {},
                           .answers = device_.options.replay != nullptr};
  // A GPU's own link has one input, that of its port, unless links of others lead on to it. What
  // others of a replay send is put in there. Where requests wait in queues it has rounds of its
  // own.
  for (std::int32_t l = 0; l < static_cast<std::int32_t>(device_.machine.links.size()); ++l) {
    const int rank = device_.fabric.rank_of(device_.machine.links[index(l)].from);
    request.own.push_back(rank >= 0 && !device_.model(rank).forwards &&
                          (rank >= device_.program.ranks() || device_.is_simulated(rank)) &&
                          stages_.link_queue(l) == nullptr);
  }
  LinkOrder order = order_links(request);
  // Switches of multicast groups are next to GPUs, whose own links come before them.
  if (order.begins_at_gpus) switches_at_ = 1;
  divide(order.levels);
  for (const std::vector<std::int32_t>& level : order.levels)
    for (const std::int32_t l : level)
      stages_.merges[index(stages_.links[index(l)].calendar)].set(0, order.offset[index(l)]);
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
      return sampled::Moves::rank_of(a);
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
    if (recorder_.carries_some()) recorder_.refuse_pull(device_.request(a));
    engine_stages_.to_slices(a, time, tag);
    return;
  }
  if (is_progress(kind, b)) ++device_.tally().active;
  if (kind == kEngine || kind == kEngineDone) {
    if (kind == kEngine && b >= 0 && device_.options.record != nullptr)
      recorder_.note_engine(a, device_.descriptors[index(b)].rank);
    engine_stages_.push_engine(engine_stages_.stage_of(a), {time, 0, tag, kind, a, b});
    return;
  }
  if (kind == kPosted) {
    stages_.mine().posted.push_back({stages_.mine().engine_at, time, a, b});
    return;
  }
  stages_.of(rank_of(kind, a)).push(time, kind, a, b, tag);
}

// The first of a heap.
void Line::happen(std::vector<CoreEvent>& events) {
  std::pop_heap(events.begin(), events.end(), CoreEvent::Later{});
  const CoreEvent now = events.back();
  events.pop_back();
  if (is_progress(now.kind, now.b)) --device_.tally().active;
  if (now.kind == kComplete)
    issue_.complete(now.a, now.time);
  else
    handle_core(now.kind, now.time, now.a, now.b, now.tag);
}

// A request leaves its CU.
void Line::depart(std::int32_t id, Request& request, std::int64_t departure) {
  GpuStages& gpu = stages_.of(request.source);
  request.stage = Stage::out;
  if (request.takes && request.is_multicast()) [[unlikely]]
    ways_.prepare_multicast(request);
  ++device_.counters().hops;
  const std::int64_t out =
      serve_at(gpu.cu_out_free[index(request.cu)], gpu.cu_out_costs[carried(request)], departure);
  const std::uint32_t tag = kFromCu + static_cast<std::uint32_t>(request.cu);
  const std::int64_t time = out + (request.local ? gpu.way(request) : gpu.noc);
  request.spent.charge(Reason::noc, time - departure);
  if (device_.options.trace != nullptr) tracing_.show_request(request, Reason::noc, departure, out);
  (request.local ? gpu.slices : gpu.io_out).push({time, tag, id});
}

// A flag of a copy engine goes out.
void Line::leave(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  engine_stages_.set_size(request);
  request.stage = Stage::out;
  stages_.of(request.source).io_out.push({now, kFromSlices, id});
}

void Line::to_memory(std::int32_t id, std::int64_t time) {
  Request& request = device_.request(id);
  request.local = request.target == request.source;
  stages_.of(device_.home(request.place())).memory.push({time, 0, id});
}

std::string Line::why_not(program::SemaphoreId id) const {
  const std::string why = replayer_.why_not(id);
  return why.empty() ? Cores::why_not(id) : why;
}

std::string Line::why_not(std::int32_t wave) const {
  const std::string why = replayer_.why_not(wave);
  return why.empty() ? Cores::why_not(wave) : why;
}

}  // namespace hemiola::sim
