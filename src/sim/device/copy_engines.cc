#include "sim/device/copy_engines.h"

#include <algorithm>
#include <utility>

#include "sim/device/copy_queues.h"
#include "sim/device/memory.h"
#include "sim/device/servers.h"
#include "sim/device/tracing.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
namespace {

/// The bytes of the leg that an engine is at; none: all bursts are under way.
bool has_more(const SendQueue& queue, const Descriptor& descriptor) {
  if (!descriptor.legs.empty()) return queue.leg < descriptor.legs.size();
  return queue.offset < std::max<std::int64_t>(descriptor.bytes, 1);  // an empty message, too
}

/// Behind a burst of `bytes`: the same place of the next leg of the command, or further on.
void pass_burst(SendQueue& queue, const Descriptor& descriptor, std::int64_t bytes) {
  const auto beside = [&](std::size_t leg) {
    return leg < descriptor.legs.size() && descriptor.legs[leg].beside;
  };
  if (beside(queue.leg + 1)) {
    ++queue.leg;
    return;
  }
  queue.offset += bytes;
  if (descriptor.legs.empty()) return;
  const bool over = queue.offset >= descriptor.legs[queue.leg].bytes;
  if (over) {
    ++queue.leg;
    queue.offset = 0;
    return;
  }
  while (beside(queue.leg)) --queue.leg;
}

}  // namespace

void CopyEngines::make_engines() {
  for (int rank = 0; rank < device_.fold.period; ++rank) {
    const machine::GpuModel& model = device_.model(rank);
    const GpuLayout& layout = device_.layout(rank);
    first_engine_.push_back(static_cast<std::int32_t>(device_.engines.size()));
    if (!device_.is_simulated(rank)) continue;
    for (std::int32_t e = 0; e < layout.engines; ++e) {
      EngineRun engine;
      engine.server = device_.fabric.gpu_base[index(rank)] + layout.dma + e;
      engine.burst = std::max<std::int64_t>(device_.lines.size, model.dma_burst.count);
      engine.packet = model.dma_max_payload.count;
      engine.outstanding_limit = model.dma_outstanding;
      engine.start_latency = model.dma_control_latency.fs + model.dma_schedule_latency.fs;
      engine.end_latency = std::max<std::int64_t>(1, model.dma_sync_latency.fs);
      engine.row_time = model.dma_row_time.fs;
      engine.name = "DMA engine " + std::to_string(e);
      device_.engines.push_back(std::move(engine));
    }
  }
  nic_engine_.assign(device_.machine.nodes.size(), -1);
  for (std::size_t n = 0; n < device_.machine.nodes.size(); ++n) {
    const machine::Node& node = device_.machine.nodes[n];
    if (node.kind != machine::NodeKind::nic) continue;
    nic_engine_[n] = static_cast<std::int32_t>(device_.engines.size());
    EngineRun engine;
    engine.server = device_.fabric.nic_base + device_.fabric.node_index[n];
    engine.burst = std::max<std::int64_t>(1, node.nic_model.mtu.count);
    engine.packet = engine.burst;
    engine.outstanding_limit = kNicOutstanding;
    engine.start_latency = std::max<std::int64_t>(1, node.nic_model.message_time.fs);
    engine.end_latency = std::max<std::int64_t>(1, node.nic_model.latency.fs);
    engine.reason = Reason::nic;
    engine.pipelined = true;
    engine.name = "NIC " + node.name;
    device_.engines.push_back(std::move(engine));
  }
}

void CopyEngines::post(std::int32_t wave_id, const program::Primitive& primitive,
                       std::int64_t now) {
  Wave& wave = device_.wave(wave_id);
  Workgroup& group = device_.group(wave.workgroup);
  const std::int32_t id = device_.descriptors.take();
  Descriptor& descriptor = device_.descriptors[index(id)];
  descriptor.rank = group.rank;
  descriptor.workgroup = wave.workgroup;
  if (!primitive.src.empty()) descriptor.src = primitive.src.front();
  if (!primitive.dst.empty()) descriptor.dst = primitive.dst.front();
  descriptor.bytes = primitive.bytes;
  // Packets travel as they stand in memory: flags included.
  if (!primitive.src.empty() && primitive.src.front().access != program::Access::plain)
    descriptor.bytes *= 2;
  descriptor.semaphores = primitive.semaphores;
  descriptor.remote = primitive.remote;
  descriptor.target =
      primitive.bytes > 0 ? primitive.dst.front().rank : primitive.semaphores.front().rank;
  descriptor.spent = wave.spent;
  descriptor.flow.released_by = tracing_.span_of(wave);
  const std::int64_t latency =
      std::max<std::int64_t>(1, device_.model(group.rank).proxy_fifo_latency.fs);
  descriptor.spent.charge(Reason::proxy, latency);
  ++group.posted;
  transport_.push(now + latency, kProxy, id, 0, wave.tag);
}

// The host thread serves requests in order: a call of the copy engine's driver, or a work request
// to a NIC.
void CopyEngines::at_proxy(std::int32_t id, std::int64_t now) {
  Descriptor& descriptor = device_.descriptors[index(id)];
  const int rank = descriptor.rank;
  const machine::GpuModel& model = device_.model(rank);
  Server& proxy = device_.server(device_.fabric.gpu_base[index(rank)] + device_.layout(rank).proxy);
  const std::int64_t service = std::max<std::int64_t>(
      1, descriptor.remote ? model.proxy_network_time.fs : model.proxy_request_time.fs);
  const std::int64_t start = std::max(now, proxy.free);
  proxy.free = start + service;
  proxy.busy += service;
  ++proxy.requests;
  ++device_.counters().hops;
  descriptor.spent.charge(Reason::proxy, proxy.free - now);
  if (device_.tracing()) {
    FlowEnds& flow = descriptor.flow;
    flow.span = tracing_.next_span();
    flow.released_at = {start};
    device_.options.trace->engine(rank, "proxy", "request", {start}, {proxy.free}, flow);
    flow = {.released_by = flow.span};
  }
  const std::int32_t engine = engine_for(descriptor);
  if (device_.tallies.size() > 1) find_before(descriptor);
  std::int64_t time = proxy.free;
  if (device_.engines[index(engine)]
          .pipelined) {  // the NIC fetches work requests while it sends others
    time += device_.engines[index(engine)].start_latency;
    descriptor.spent.charge(Reason::nic, device_.engines[index(engine)].start_latency);
  }
  transport_.push(time, kEngine, engine, id, static_cast<std::uint32_t>(rank & 0xffff));
}

// Paths of a rank are found by the worker that has the rank, so before an engine needs them. What
// else would need others: engines that read at a peer, messages whose flags are not where their
// data are.
void CopyEngines::find_before(const Descriptor& descriptor) {
  const int rank = descriptor.rank;
  if (descriptor.bytes > 0 && descriptor.src.rank != rank) throw NeedsOneWorker{};
  if (descriptor.target != rank) device_.fabric.paths(rank, descriptor.target);
  for (const program::SemaphoreId semaphore : descriptor.semaphores) {
    if (descriptor.remote && semaphore.rank != descriptor.target) throw NeedsOneWorker{};
    if (semaphore.rank != rank) device_.fabric.paths(rank, semaphore.rank);
  }
}

// One engine per destination, so that a signal stays behind the data it announces.
std::int32_t CopyEngines::engine_for(const Descriptor& descriptor) const {
  const int rank = descriptor.rank;
  if (descriptor.remote) {
    for (const machine::LinkId link : device_.machine.routes(rank, descriptor.target).path(0)) {
      const std::int32_t engine = nic_engine_[index(device_.machine.links[index(link)].to)];
      if (engine >= 0) return engine;
    }
  }
  const bool pulls = descriptor.bytes > 0 && descriptor.src.rank != rank;
  const int peer = pulls ? descriptor.src.rank : descriptor.target;
  const int relative = (peer - rank + device_.program.ranks()) % device_.program.ranks();
  return first_engine_[index(rank)] + relative % device_.layout(rank).engines;
}

void CopyEngines::at_engine(std::int32_t id, std::int32_t descriptor, std::int64_t now) {
  EngineRun& engine = device_.engines[index(id)];
  if (descriptor < 0) return engine_inject(id, engine.queues[0], now);
  SendQueue& queue = engine.queue_of(device_.descriptors[index(descriptor)]);
  queue.descriptors.push_back(descriptor);
  if (!queue.active) engine_start(id, queue, now);
}

void CopyEngines::engine_start(std::int32_t id, SendQueue& queue, std::int64_t now) {
  const EngineRun& engine = device_.engines[index(id)];
  const std::int32_t descriptor_id = queue.descriptors.front();
  Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  if (!queue.active) queue.spent = descriptor.spent;
  queue.active = true;
  queue.leg = 0;
  queue.offset = 0;
  descriptor.began = now;
  if (device_.tracing()) descriptor.flow.span = tracing_.next_span();
  descriptor.message = engine.pipelined;
  descriptor.packet = engine.packet;
  if (engine.pipelined) {
    descriptor.number = queue.sent++;
    engine_inject(id, queue, now);
    return;
  }
  const std::int64_t latency =
      descriptor.start_latency < 0 ? engine.start_latency : descriptor.start_latency;
  queue.spent.charge(engine.reason, latency);
  if (descriptor.bytes > 0) {
    transport_.push(now + latency, kEngine, id, -1);
    return;
  }
  descriptor.spent = queue.spent;
  finish(id, descriptor_id, now + latency);
}

void CopyEngines::engine_inject(std::int32_t id, SendQueue& queue, std::int64_t now) {
  const EngineRun& engine = device_.engines[index(id)];
  const std::int32_t descriptor_id = queue.descriptors.front();
  Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  while (has_more(queue, descriptor)) {
    queue.held = engine.outstanding_limit != 0 && queue.in_flight >= engine.outstanding_limit;
    if (queue.held) return;
    inject_burst(id, queue, packets_together(engine, descriptor, queue.offset, now), now);
  }
  if (!engine.pipelined) return;
  descriptor.injected = true;
  queue.descriptors.pop_front();
  if (queue.descriptors.empty()) {
    queue.active = false;
    return;
  }
  engine_start(id, queue, now);
}

void CopyEngines::inject_burst(std::int32_t id, SendQueue& queue, std::int64_t together,
                               std::int64_t now) {
  const EngineRun& engine = device_.engines[index(id)];
  const std::int32_t descriptor_id = queue.descriptors.front();
  Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  const CopyLeg* const leg = descriptor.legs.empty() ? nullptr : &descriptor.legs[queue.leg];
  const program::Span& src = leg != nullptr ? leg->src : descriptor.src;
  const program::Span& dst = leg != nullptr ? leg->dst : descriptor.dst;
  const std::int64_t bytes = leg != nullptr ? leg->bytes : descriptor.bytes;
  const std::int32_t target = leg != nullptr ? dst.rank : descriptor.target;
  // Where the data are: a pull's are at the peer.
  const int rank = bytes > 0 ? src.rank : descriptor.rank;
  const std::int32_t request_id = device_.allocate(false);
  Request& request = device_.request(request_id);
  request.intent = Intent::burst;
  request.cu = 0;
  request.source = static_cast<std::int16_t>(rank);
  request.target = static_cast<std::int16_t>(target);
  Detail& burst = device_.add_detail(request);
  burst.engine = id;
  burst.descriptor = descriptor_id;
  const bool empty = bytes == 0;
  const std::int64_t run = src.run;  // a row of both sides
  const std::int64_t in_row = run > 0 ? (src.skip + queue.offset) % run : 0;
  const std::int64_t rest_of_row = run > 0 ? run - in_row : bytes;
  request.bytes = static_cast<std::int32_t>(
      empty ? device_.lines.sector
            : std::min({together * engine.burst, bytes - queue.offset, rest_of_row}));
  request.line = empty ? -1 : device_.lines.of(device_.addresses.of(src, queue.offset));
  burst.destination = empty ? -1 : device_.lines.of(device_.addresses.of(dst, queue.offset));
  request.slice = static_cast<std::int16_t>(empty ? 0 : device_.slice_of(rank, request.line));
  burst.destination_slice =
      static_cast<std::int16_t>(empty ? 0 : device_.slice_of(request.target, burst.destination));
  request.reads_source = true;
  request.spent = queue.spent;
  request.carried = request.bytes;
  if (request.target != rank) {
    if (!empty) device_.counters().injected += request.bytes;
    device_.counters().moved += request.bytes;
    const Fabric::Paths paths = device_.fabric.paths(rank, request.target);
    // Load/store fabrics spray by address, so that consecutive bursts go round all paths. Over a
    // network messages have a path, or their packets take all in turn.
    std::int64_t path = paths.flow;
    if (!descriptor.remote)
      path = machine::select_path(
          burst.destination * device_.lines.size / (together * engine.burst), paths.count);
    else if (path < 0)
      path = queue.offset / (together * engine.burst) % paths.count;
    request.route = paths.first + static_cast<std::int32_t>(path);
  }
  device_.counters().bursts += together;
  queue.in_flight += together;
  descriptor.unacknowledged += together;
  descriptor.packets += together;
  if (queue.offset + request.bytes >= bytes) burst.packets = descriptor.packets;
  if (run > 0 && in_row == 0 && engine.row_time > 0 && (leg == nullptr || !leg->beside)) {
    Server& server = device_.server(engine.server);
    server.free = std::max(server.free, now) + engine.row_time;
    server.busy += engine.row_time;
  }
  pass_burst(queue, descriptor, request.bytes);
  const std::int64_t departure = begin_train(request, device_.server(engine.server), together,
                                             servers_.serve(engine.server, request, now));
  request.stage = Stage::in;
  request.follow({}, 0);
  transport_.push(departure, kLegEnd, request_id, 0, tag_of_burst(descriptor, id, rank, target));
}

// The order tag with which an engine's reads come to the slices of a rank: one for each engine, in
// numbers that are equal on ranks that behave alike.
std::uint32_t CopyEngines::tag_of_burst(const Descriptor& descriptor, std::int32_t id, int rank,
                                        int target) const {
  const auto from = [&](int other) {
    return static_cast<std::uint32_t>((other - rank + device_.program.ranks()) %
                                      device_.program.ranks());
  };
  const auto ranks = static_cast<std::uint32_t>(device_.program.ranks());
  // Which engine of the rank it is, that of its pair: see engine_for().
  const std::uint32_t peer = descriptor.rank == rank ? from(target) : ranks + from(descriptor.rank);
  const auto engine = static_cast<std::uint32_t>(device_.engines[index(id)].pipelined
                                                     ? device_.layout(descriptor.rank).engines
                                                     : id - first_engine_[index(descriptor.rank)]);
  return kFromEngines + engine * 2 * ranks + peer;
}

void CopyEngines::burst_done(std::int32_t request_id, std::int64_t now) {
  const Request& request = device_.request(request_id);
  const std::int32_t id = device_.detail(request).engine;
  EngineRun& engine = device_.engines[index(id)];
  const std::int32_t descriptor_id = device_.detail(request).descriptor;
  Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  SendQueue& queue = engine.queue_of(descriptor);
  const LatencyBreakdown spent = request.spent;
  const std::int64_t together = device_.detail(request).together;
  device_.release(request_id);
  queue.in_flight -= together;
  descriptor.unacknowledged -= together;
  if (engine.pipelined) {
    descriptor.spent = spent;
    if (descriptor.injected && descriptor.unacknowledged == 0) {
      descriptor.spent.charge(engine.reason, engine.end_latency);
      finish(id, descriptor_id, now + engine.end_latency);
    }
    if (queue.active && std::exchange(queue.held, false)) {
      queue.spent = spent;
      engine_inject(id, queue, now);
    }
    return;
  }
  queue.spent = spent;
  if (has_more(queue, descriptor)) {
    engine_inject(id, queue, now);
    return;
  }
  if (queue.in_flight > 0) return;
  queue.spent.charge(engine.reason, engine.end_latency);
  descriptor.spent = queue.spent;
  finish(id, descriptor_id, now + engine.end_latency);
}

// The transfer is complete at `time`: the engine goes on, and flushes learn of it.
void CopyEngines::finish(std::int32_t id, std::int32_t descriptor_id, std::int64_t time) {
  transport_.push(time, kEngineDone, id, descriptor_id);
  const Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  if (descriptor.workgroup >= 0)
    transport_.push(time, kPosted, descriptor.workgroup, device_.keep(descriptor.spent));
}

// A copy engine's signal goes out and its next descriptor starts.
void CopyEngines::engine_done(std::int32_t id, std::int32_t descriptor_id, std::int64_t now) {
  EngineRun& engine = device_.engines[index(id)];
  Descriptor descriptor = device_.descriptors[index(descriptor_id)];
  const LatencyBreakdown& spent = descriptor.spent;
  if (!engine.pipelined)
    for (const program::SemaphoreId semaphore : descriptor.semaphores)
      flag_of_copy(descriptor, spent, semaphore, now);
  if (device_.tracing()) {
    descriptor.flow.released_at = {descriptor.began};
    device_.options.trace->engine(descriptor.rank, engine.name,
                                  descriptor.bytes > 0 ? "copy" : "signal", {descriptor.began},
                                  {now}, descriptor.flow);
  }
  device_.descriptors.give_back(descriptor_id);
  if (!engine.pipelined) {
    SendQueue& queue = engine.queues[0];
    queue.descriptors.pop_front();
    if (queue.descriptors.empty())
      queue.active = false;
    else
      engine_start(id, queue, now);  // it waited for this one
  }
  if (descriptor.queue < 0) return;
  copy_queues_.copies_done(descriptor.queue, descriptor.flow.span, spent, now);
}

void CopyEngines::posted_done(std::int32_t id, const LatencyBreakdown& spent, std::int64_t now) {
  Workgroup& group = device_.group(id);
  if (++group.posted_done < group.posted || group.flushing < 0) return;
  const std::int64_t latency =
      std::max<std::int64_t>(1, device_.model(group.rank).proxy_return_latency.fs);
  Wave& wave = device_.wave(group.flushing);
  wave.spent = spent;
  wave.spent.charge(Reason::proxy, latency);
  transport_.push(now + latency, kWave, std::exchange(group.flushing, -1), 0, wave.tag);
}

// A flag that an engine, not a wavefront, writes.
std::int32_t CopyEngines::make_flag(int source, program::SemaphoreId semaphore,
                                    const LatencyBreakdown& spent, SpanId by) {
  ++device_.counters().flags;
  const std::int32_t id = device_.allocate(false);
  Request& flag = device_.request(id);
  flag.intent = Intent::flag;
  flag.cu = 0;
  flag.source = static_cast<std::int16_t>(source);
  flag.target = static_cast<std::int16_t>(semaphore.rank);
  flag.line = device_.lines.flag(semaphore.index);
  flag.slice = static_cast<std::int16_t>(device_.slice_of(flag.target, flag.line));
  flag.bytes = static_cast<std::int32_t>(device_.lines.sector);
  flag.spent = spent;
  Detail& update = device_.add_detail(flag);
  update.semaphore = semaphore.index;
  update.increment = 1;
  if (device_.tracing()) device_.spans_of(flag).sender = by;
  return id;
}

void CopyEngines::flag_of_copy(const Descriptor& descriptor, const LatencyBreakdown& spent,
                               program::SemaphoreId semaphore, std::int64_t now) {
  const int rank = descriptor.rank;
  const std::int32_t request_id = make_flag(rank, semaphore, spent, descriptor.flow.span);
  Request& request = device_.request(request_id);
  if (request.target == rank) {
    request.stage = Stage::in;
    transport_.push(now, kLegEnd, request_id, 0, kFlagsOfCopies);
    return;
  }
  const Fabric::Paths paths = device_.fabric.paths(rank, request.target);
  request.route =
      paths.first + static_cast<std::int32_t>(machine::select_path(request.line, paths.count));
  transport_.leave(request_id, now);
}

}  // namespace hemiola::sim
