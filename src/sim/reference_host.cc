// The reference engine: streams, kernels, dispatch to CUs, host proxies and copy engines.

#include <algorithm>

#include "sim/reference.h"

namespace hemiola::sim {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Packets a NIC keeps in flight per message: enough for 400 Gb/s x 10 us (assumed).
constexpr std::int64_t kNicOutstanding = 256;

}  // namespace

// --- Streams. A repetition of the program starts all streams of a rank together (a graph launch).

std::int64_t Reference::launch_interval(int rank) const {
  const machine::GpuModel& model = machine_.model(rank);
  return options_.launch == Launch::graph ? model.launch_graph_interval.fs : model.launch_stream_interval.fs;
}

void Reference::make_groups(int rank) {
  RankState& state = ranks_[index(rank)];
  const program::RankCode& code = program_.codes[index(program_.code_of[index(rank)])];
  const std::int64_t wavefront = machine_.model(rank).cu_wavefront_size;
  std::int32_t number = 0;
  state.streams.resize(code.streams.size());
  for (std::size_t s = 0; s < code.streams.size(); ++s) {
    for (const program::StreamItem& item : code.streams[s]) {
      state.streams[s].runs.push_back(-1);
      if (item.kind != program::StreamItem::Kind::kernel) continue;
      const program::Kernel& kernel = program_.kernels[index(item.index)];
      const auto run = static_cast<std::int32_t>(kernels_.size());
      state.streams[s].runs.back() = run;
      kernels_.emplace_back();
      kernels_.back().rank = rank;
      kernels_.back().stream = static_cast<std::int32_t>(s);
      kernels_.back().kernel = item.index;
      for (const std::int32_t body : kernel.bodies) {
        kernels_.back().groups.push_back(static_cast<std::int32_t>(groups_.size()));
        groups_.emplace_back();
        Workgroup& group = groups_.back();
        group.cursor = std::make_unique<program::Cursor>(program_, rank, body);
        group.rank = rank;
        group.kernel = run;
        group.index = number++;
        group.body = body;
        group.threads = kernel.threads;
        group.first_wave = static_cast<std::int32_t>(waves_.size());
        group.waves = static_cast<std::int32_t>((kernel.threads + wavefront - 1) / wavefront);
        for (std::int32_t w = 0; w < group.waves; ++w) {
          waves_.emplace_back();
          waves_.back().workgroup = static_cast<std::int32_t>(groups_.size()) - 1;
          waves_.back().index = w;
        }
      }
    }
  }
}

void Reference::start_repetition(int rank, std::int64_t now, const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  state.started = now;
  state.streams_done = 0;
  if (state.streams.empty()) {
    state.streams_done = -1;
    stream_done(rank, now, spent);
    return;
  }
  for (std::size_t s = 0; s < state.streams.size(); ++s) {
    state.streams[s].item = 0;
    start_item(rank, static_cast<std::int32_t>(s), now, spent);
  }
}

void Reference::start_item(int rank, std::int32_t stream, std::int64_t now, const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  StreamRun& run = state.streams[index(stream)];
  const program::Stream& items = program_.codes[index(program_.code_of[index(rank)])].streams[index(stream)];
  if (run.item == items.size()) {
    stream_done(rank, now, spent);
    return;
  }
  run.started = now;
  const program::StreamItem& item = items[run.item];
  switch (item.kind) {
    case program::StreamItem::Kind::kernel: {
      KernelRun& kernel = kernels_[index(run.runs[run.item])];
      kernel.spent = spent;
      kernel.next = kernel.done = 0;
      start_kernel(run.runs[run.item], now);
      return;
    }
    case program::StreamItem::Kind::host: {
      Attribution later = spent;
      charge(later, Reason::launch, item.duration.fs);
      push(now + item.duration.fs, kStreamNext, rank, keep(later), static_cast<std::uint32_t>(stream));
      return;
    }
    case program::StreamItem::Kind::event_record: {
      state.events.resize(std::max(state.events.size(), index(item.index) + 1), -1);
      state.events[index(item.index)] = state.repetition;
      for (std::size_t s = 0; s < state.streams.size(); ++s) {
        StreamRun& other = state.streams[s];
        const program::Stream& others = program_.codes[index(program_.code_of[index(rank)])].streams[s];
        if (!other.waits || others[other.item].index != item.index) continue;
        other.waits = false;
        item_done(rank, static_cast<std::int32_t>(s), now, spent);
      }
      item_done(rank, stream, now, spent);
      return;
    }
    case program::StreamItem::Kind::event_wait:
      state.events.resize(std::max(state.events.size(), index(item.index) + 1), -1);
      if (state.events[index(item.index)] == state.repetition) {
        item_done(rank, stream, now, spent);
      } else {
        run.waits = true;
      }
      return;
  }
}

void Reference::item_done(int rank, std::int32_t stream, std::int64_t now, const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  StreamRun& run = state.streams[index(stream)];
  const bool kernel = run.runs[run.item] >= 0;
  ++run.item;
  const bool next_is_kernel = run.item < run.runs.size() && run.runs[run.item] >= 0;
  std::int64_t start = now;
  if (kernel && next_is_kernel) start = std::max(now, run.started + launch_interval(rank));
  Attribution later = spent;
  charge(later, Reason::launch, start - now);
  if (start == now) {
    start_item(rank, stream, now, later);
  } else {
    push(start, kKernelStart, rank, keep(later), static_cast<std::uint32_t>(stream));
  }
}

void Reference::stream_done(int rank, std::int64_t now, const Attribution& spent) {
  RankState& state = ranks_[index(rank)];
  if (++state.streams_done < static_cast<std::int32_t>(state.streams.size())) return;
  ++state.repetition;
  if (state.repetition == options_.warmup) state.warm_end = now;
  if (state.repetition == repetitions_) {
    state.end = now;
    state.spent = spent;
    ++ranks_done_;
    return;
  }
  const std::int64_t start = std::max(now + 1, state.started + launch_interval(rank));
  Attribution later = spent;
  charge(later, Reason::launch, start - now);
  push(start, kKernelStart, rank, keep(later), ~0U >> 4);
}

// --- Kernels and dispatch.

void Reference::start_kernel(std::int32_t run, std::int64_t now) {
  for (const std::int32_t id : kernels_[index(run)].groups) {
    Workgroup& group = groups_[index(id)];
    const int repetition = ranks_[index(group.rank)].repetition;
    if (repetition > 0) group.cursor->repeat();
    group.window.clear();
    group.first = 0;
    group.ended = false;
    group.finished = 0;
    group.stores.clear();
    group.first_epoch = 0;
    for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
      Wave& wave = waves_[index(w)];
      wave.position = 0;
      wave.last_op = -1;
      wave.epoch = 0;
      wave.own_stores = 0;
      wave.step = 0;
      wave.waiting = Waiting::running;
    }
  }
  if (kernels_[index(run)].groups.empty()) {
    kernel_maybe_done(run, kernels_[index(run)].spent, now);
    return;
  }
  dispatch(run, now);
}

// Workgroups go to CUs in order, round robin over those with room, one per dispatch interval.
void Reference::dispatch(std::int32_t run, std::int64_t now) {
  KernelRun& kernel = kernels_[index(run)];
  RankState& state = ranks_[index(kernel.rank)];
  const machine::GpuModel& model = machine_.model(kernel.rank);
  const std::int32_t cu = find_cu(state, model, program_.kernels[index(kernel.kernel)].threads);
  if (cu < 0) {
    state.blocked_kernels.push_back(run);
    return;
  }
  state.next_cu = (cu + 1) % static_cast<std::int32_t>(model.cu_count);
  start_workgroup(kernel, kernel.groups[index(kernel.next)], cu, now);
  if (++kernel.next < static_cast<std::int32_t>(kernel.groups.size())) {
    const std::int64_t interval = std::max<std::int64_t>(1, model.dispatch_interval.fs);
    charge(kernel.spent, Reason::dispatch, interval);
    push(now + interval, kDispatch, run);
  }
}

std::int32_t Reference::find_cu(RankState& state, const machine::GpuModel& model, std::int64_t threads) const {
  const auto count = static_cast<std::int32_t>(model.cu_count);
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t cu = (state.next_cu + i) % count;
    const Cu& c = state.cus[index(cu)];
    const bool fits = (c.threads == 0 || c.threads + threads <= model.cu_max_threads) && c.workgroups < model.cu_max_workgroups;
    if (fits) return cu;
  }
  return -1;
}

void Reference::start_workgroup(KernelRun& run, std::int32_t id, std::int32_t cu, std::int64_t now) {
  Workgroup& group = groups_[index(id)];
  group.cu = cu;
  Cu& place = ranks_[index(run.rank)].cus[index(cu)];
  place.threads += group.threads;
  ++place.workgroups;
  const std::int64_t latency = std::max<std::int64_t>(1, machine_.model(run.rank).dispatch_latency.fs);
  Attribution spent = run.spent;
  charge(spent, Reason::dispatch, latency);
  for (std::int32_t w = 0; w < group.waves; ++w) {
    Wave& wave = waves_[index(group.first_wave + w)];
    wave.spent = spent;
    // Relative to the CU: workgroups of a kernel, then wavefronts. After completions (tag 0).
    wave.tag = 1 + static_cast<std::uint32_t>((group.index & 0x3fff) << 6 | (w & 63));
    push(now + latency, kWave, group.first_wave + w, 0, wave.tag);
  }
}

void Reference::workgroup_done(std::int32_t id, const Attribution& spent, std::int64_t now) {
  const Workgroup& group = groups_[index(id)];
  RankState& state = ranks_[index(group.rank)];
  Cu& cu = state.cus[index(group.cu)];
  cu.threads -= group.threads;
  --cu.workgroups;
  ++kernels_[index(group.kernel)].done;
  if (!state.blocked_kernels.empty()) {
    const std::int32_t run = state.blocked_kernels.front();
    state.blocked_kernels.pop_front();
    kernels_[index(run)].spent = spent;  // its next workgroup waited for this one
    dispatch(run, now);
  }
  kernel_maybe_done(group.kernel, spent, now);
}

// The end of a kernel is a release: all its stores are acknowledged.
void Reference::kernel_maybe_done(std::int32_t run, const Attribution& spent, std::int64_t now) {
  const KernelRun& kernel = kernels_[index(run)];
  if (kernel.done < static_cast<std::int32_t>(kernel.groups.size()) || kernel.stores > 0) return;
  const std::int64_t latency = std::max<std::int64_t>(1, machine_.model(kernel.rank).launch_end_latency.fs);
  Attribution later = spent;
  charge(later, Reason::launch, latency);
  push(now + latency, kStreamNext, kernel.rank, keep(later), static_cast<std::uint32_t>(kernel.stream));
}

// --- Host proxy and copy engines.

void Reference::make_engines() {
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const machine::GpuModel& model = machine_.model(rank);
    const GpuLayout& layout = *fabric_.layout[index(rank)];
    first_engine_.push_back(static_cast<std::int32_t>(engines_.size()));
    for (std::int32_t e = 0; e < layout.engines; ++e) {
      Engine engine;
      engine.server = fabric_.gpu_base[index(rank)] + layout.dma + e;
      engine.burst = std::max<std::int64_t>(line_size_, model.dma_burst.count);
      engine.packet = model.dma_max_payload.count;
      engine.outstanding_limit = model.dma_outstanding;
      engine.start_latency = model.dma_control_latency.fs + model.dma_schedule_latency.fs;
      engine.end_latency = std::max<std::int64_t>(1, model.dma_sync_latency.fs);
      engine.name = "DMA engine " + std::to_string(e);
      engines_.push_back(std::move(engine));
    }
  }
  nic_engine_.assign(machine_.nodes.size(), -1);
  for (std::size_t n = 0; n < machine_.nodes.size(); ++n) {
    const machine::Node& node = machine_.nodes[n];
    if (node.kind != machine::NodeKind::nic) continue;
    nic_engine_[n] = static_cast<std::int32_t>(engines_.size());
    Engine engine;
    engine.server = fabric_.nic_base + fabric_.node_index[n];
    engine.burst = std::max<std::int64_t>(1, node.nic_model.mtu.count);
    engine.packet = engine.burst;
    engine.outstanding_limit = kNicOutstanding;
    engine.start_latency = node.nic_model.message_time.fs;
    engine.end_latency = std::max<std::int64_t>(1, node.nic_model.latency.fs);
    engine.reason = Reason::nic;
    engine.name = "NIC " + node.name;
    engines_.push_back(std::move(engine));
  }
}

void Reference::post(std::int32_t wave_id, const program::Primitive& primitive, std::int64_t now) {
  Wave& wave = waves_[index(wave_id)];
  Workgroup& group = groups_[index(wave.workgroup)];
  const std::int32_t id = descriptors_.take();
  Descriptor& descriptor = descriptors_[index(id)];
  descriptor.workgroup = wave.workgroup;
  if (!primitive.src.empty()) descriptor.src = primitive.src.front();
  if (!primitive.dst.empty()) descriptor.dst = primitive.dst.front();
  descriptor.bytes = primitive.bytes;
  // Packets travel as they stand in memory: flags included.
  if (!primitive.src.empty() && primitive.src.front().access != program::Access::plain) descriptor.bytes *= 2;
  descriptor.semaphores = primitive.semaphores;
  descriptor.remote = primitive.remote;
  descriptor.spent = wave.spent;
  const std::int64_t latency = std::max<std::int64_t>(1, machine_.model(group.rank).proxy_fifo_latency.fs);
  charge(descriptor.spent, Reason::proxy, latency);
  ++group.posted;
  push(now + latency, kProxy, id, 0, wave.tag);
}

void Reference::at_proxy(std::int32_t id, std::int64_t now) {
  Descriptor& descriptor = descriptors_[index(id)];
  const int rank = groups_[index(descriptor.workgroup)].rank;
  Server& proxy = fabric_.servers[index(fabric_.gpu_base[index(rank)] + fabric_.layout[index(rank)]->proxy)];
  const std::int64_t start = std::max(now, proxy.free);
  proxy.free = start + fabric_.service(proxy, 0, 0);
  ++hops_;
  charge(descriptor.spent, Reason::proxy, proxy.free - now);
  if (options_.trace != nullptr) options_.trace->engine(rank, "proxy", "request", {start}, {proxy.free});
  push(proxy.free, kEngine, engine_for(descriptor), id, static_cast<std::uint32_t>(rank & 0xffff));
}

// One engine per destination, so that a signal stays behind the data it announces.
std::int32_t Reference::engine_for(const Descriptor& descriptor) const {
  const int rank = groups_[index(descriptor.workgroup)].rank;
  const int target = descriptor.bytes > 0 ? descriptor.dst.rank : descriptor.semaphores.front().rank;
  if (descriptor.remote) {
    for (const machine::LinkId link : machine_.routes(rank, target).path(0)) {
      const std::int32_t engine = nic_engine_[index(machine_.links[index(link)].to)];
      if (engine >= 0) return engine;
    }
  }
  const int relative = (target - rank + program_.ranks) % program_.ranks;
  return first_engine_[index(rank)] + relative % fabric_.layout[index(rank)]->engines;
}

void Reference::engine_start(std::int32_t id, std::int64_t now) {
  Engine& engine = engines_[index(id)];
  const Descriptor& descriptor = descriptors_[index(engine.queue.front())];
  if (!engine.active) engine.spent = descriptor.spent;
  engine.active = true;
  engine.offset = 0;
  engine.began = now;
  charge(engine.spent, engine.reason, engine.start_latency);
  push(now + engine.start_latency, kEngine, id, -1);
}

void Reference::engine_inject(std::int32_t id, std::int64_t now) {
  Engine& engine = engines_[index(id)];
  const Descriptor& descriptor = descriptors_[index(engine.queue.front())];
  const int rank = groups_[index(descriptor.workgroup)].rank;
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  if (descriptor.bytes == 0) {
    engine_done(id, now);
    return;
  }
  while (engine.offset < descriptor.bytes && (engine.outstanding_limit == 0 || engine.in_flight < engine.outstanding_limit)) {
    const std::int32_t request_id = allocate(false);
    Request& request = requests_[index(request_id)];
    request.intent = Intent::burst;
    request.engine = id;
    request.source = rank;
    request.target = descriptor.dst.rank;
    request.bytes = static_cast<std::int32_t>(std::min(engine.burst, descriptor.bytes - engine.offset));
    request.line = (address(descriptor.src) + engine.offset) / line_size_;
    request.value = (address(descriptor.dst) + engine.offset) / line_size_;
    request.slice = slice_of(rank, request.line);
    request.epoch = slice_of(request.target, request.value);
    request.reads_source = true;
    request.spent = engine.spent;
    request.carried = request.bytes;
    if (request.target != rank) {
      counters_.injected += request.bytes;
      const std::int64_t paths = fabric_.paths(rank, request.target);
      // Load/store fabrics spray by address; a network flow stays on one path.
      request.route = static_cast<std::int32_t>(
          descriptor.remote ? (rank + request.target) % paths : machine::select_path(request.value, paths));
    }
    ++counters_.bursts;
    ++engine.in_flight;
    engine.offset += request.bytes;
    const std::int64_t departure = serve(engine.server, request, now);
    request.stage = Stage::in;
    request.leg = {};
    push(departure, kLegEnd, request_id, 0, (1U << 13) + 1 + static_cast<std::uint32_t>(id % std::max(1, layout.engines)));
  }
}

void Reference::burst_done(std::int32_t request_id, std::int64_t now) {
  const Request& request = requests_[index(request_id)];
  const std::int32_t id = request.engine;
  Engine& engine = engines_[index(id)];
  const Descriptor& descriptor = descriptors_[index(engine.queue.front())];
  engine.spent = request.spent;
  release(request_id);
  --engine.in_flight;
  if (engine.offset < descriptor.bytes) {
    engine_inject(id, now);
    return;
  }
  if (engine.in_flight > 0) return;
  charge(engine.spent, engine.reason, engine.end_latency);
  push(now + engine.end_latency, kEngineDone, id);
}

// The transfer is complete: its signal goes out, flushes learn of it, the next descriptor starts.
void Reference::engine_done(std::int32_t id, std::int64_t now) {
  Engine& engine = engines_[index(id)];
  const std::int32_t descriptor_id = engine.queue.front();
  const Descriptor descriptor = descriptors_[index(descriptor_id)];
  for (const program::SemaphoreId semaphore : descriptor.semaphores) engine_flag(id, descriptor, semaphore, now);
  Workgroup& group = groups_[index(descriptor.workgroup)];
  if (options_.trace != nullptr) {
    options_.trace->engine(group.rank, engine.name, descriptor.bytes > 0 ? "copy" : "signal", {engine.began}, {now});
  }
  if (++group.posted_done == group.posted && group.flushing >= 0) {
    const std::int64_t latency = std::max<std::int64_t>(1, machine_.model(group.rank).proxy_return_latency.fs);
    Wave& wave = waves_[index(group.flushing)];
    wave.spent = engine.spent;
    charge(wave.spent, Reason::proxy, latency);
    push(now + latency, kWave, std::exchange(group.flushing, -1), 0, wave.tag);
  }
  descriptors_.give_back(descriptor_id);
  engine.queue.pop_front();
  if (engine.queue.empty()) {
    engine.active = false;
    return;
  }
  // The next one started now if it was here already, which its own attribution then does not show.
  engine_start(id, now);
}

void Reference::engine_flag(std::int32_t id, const Descriptor& descriptor, program::SemaphoreId semaphore, std::int64_t now) {
  ++counters_.flags;
  const int rank = groups_[index(descriptor.workgroup)].rank;
  const std::int32_t request_id = allocate(false);
  Request& request = requests_[index(request_id)];
  request.intent = Intent::flag;
  request.engine = id;
  request.source = rank;
  request.target = semaphore.rank;
  request.line = flag_line(semaphore.index);
  request.slice = slice_of(request.target, request.line);
  request.bytes = static_cast<std::int32_t>(sector_);
  request.semaphore = semaphore.index;
  request.value = 1;
  request.spent = engines_[index(id)].spent;
  if (request.target == rank) {
    request.stage = Stage::in;
    request.leg = {};
    push(now, kLegEnd, request_id, 0, 1U << 13);
    return;
  }
  const std::int64_t paths = fabric_.paths(rank, request.target);
  request.route = static_cast<std::int32_t>(descriptor.remote ? (rank + request.target) % paths
                                                              : machine::select_path(request.line, paths));
  const Path& path = fabric_.path(rank, request.target, request.route);
  begin_leg(request_id, Stage::out, fabric_.layout[index(rank)]->slice_to_port(0, path.source_port),
            fabric_.gpu_base[index(rank)], now, request.bytes);
}

}  // namespace hemiola::sim
