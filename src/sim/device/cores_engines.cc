// Cores: host proxies, copy engines and NICs.
//
// A copy engine does one descriptor after the other and writes its flag when all of it is
// acknowledged. A NIC has many messages under way; per pair of ranks they are delivered in order,
// and the NIC at the destination writes the flag behind the last packet.

#include <algorithm>
#include <utility>

#include "sim/device/cores.h"
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

void Cores::make_engines() {
  for (int rank = 0; rank < fold_.period; ++rank) {
    const machine::GpuModel& model = machine_.model(rank);
    const GpuLayout& layout = *fabric_.layout[index(rank)];
    first_engine_.push_back(static_cast<std::int32_t>(engines_.size()));
    if (!is_simulated(rank)) continue;
    for (std::int32_t e = 0; e < layout.engines; ++e) {
      EngineRun engine;
      engine.server = fabric_.gpu_base[index(rank)] + layout.dma + e;
      engine.burst = std::max<std::int64_t>(line_size_, model.dma_burst.count);
      engine.packet = model.dma_max_payload.count;
      engine.outstanding_limit = model.dma_outstanding;
      engine.start_latency = model.dma_control_latency.fs + model.dma_schedule_latency.fs;
      engine.end_latency = std::max<std::int64_t>(1, model.dma_sync_latency.fs);
      engine.row_time = model.dma_row_time.fs;
      engine.name = "DMA engine " + std::to_string(e);
      engines_.push_back(std::move(engine));
    }
  }
  nic_engine_.assign(machine_.nodes.size(), -1);
  for (std::size_t n = 0; n < machine_.nodes.size(); ++n) {
    const machine::Node& node = machine_.nodes[n];
    if (node.kind != machine::NodeKind::nic) continue;
    nic_engine_[n] = static_cast<std::int32_t>(engines_.size());
    EngineRun engine;
    engine.server = fabric_.nic_base + fabric_.node_index[n];
    engine.burst = std::max<std::int64_t>(1, node.nic_model.mtu.count);
    engine.packet = engine.burst;
    engine.outstanding_limit = kNicOutstanding;
    engine.start_latency = std::max<std::int64_t>(1, node.nic_model.message_time.fs);
    engine.end_latency = std::max<std::int64_t>(1, node.nic_model.latency.fs);
    engine.reason = Reason::nic;
    engine.pipelined = true;
    engine.name = "NIC " + node.name;
    engines_.push_back(std::move(engine));
  }
}

void Cores::post(std::int32_t wave_id, const program::Primitive& primitive, std::int64_t now) {
  Wave& wave = waves_[index(wave_id)];
  Workgroup& group = groups_[index(wave.workgroup)];
  const std::int32_t id = descriptors_.take();
  Descriptor& descriptor = descriptors_[index(id)];
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
  descriptor.flow.released_by = span_of(wave);
  const std::int64_t latency =
      std::max<std::int64_t>(1, machine_.model(group.rank).proxy_fifo_latency.fs);
  descriptor.spent.charge(Reason::proxy, latency);
  ++group.posted;
  push(now + latency, kProxy, id, 0, wave.tag);
}

// The host thread serves requests in order: a call of the copy engine's driver, or a work request
// to a NIC.
void Cores::at_proxy(std::int32_t id, std::int64_t now) {
  Descriptor& descriptor = descriptors_[index(id)];
  const int rank = descriptor.rank;
  const machine::GpuModel& model = machine_.model(rank);
  Server& proxy =
      fabric_.servers[index(fabric_.gpu_base[index(rank)] + fabric_.layout[index(rank)]->proxy)];
  const std::int64_t service = std::max<std::int64_t>(
      1, descriptor.remote ? model.proxy_network_time.fs : model.proxy_request_time.fs);
  const std::int64_t start = std::max(now, proxy.free);
  proxy.free = start + service;
  proxy.busy += service;
  ++proxy.requests;
  ++tally().counters.hops;
  descriptor.spent.charge(Reason::proxy, proxy.free - now);
  if (tracing()) {
    FlowEnds& flow = descriptor.flow;
    flow.span = ++spans_;
    flow.released_at = {start};
    options_.trace->engine(rank, "proxy", "request", {start}, {proxy.free}, flow);
    flow = {.released_by = flow.span};
  }
  const std::int32_t engine = engine_for(descriptor);
  if (tallies_.size() > 1) find_before(descriptor);
  std::int64_t time = proxy.free;
  if (engines_[index(engine)].pipelined) {  // the NIC fetches work requests while it sends others
    time += engines_[index(engine)].start_latency;
    descriptor.spent.charge(Reason::nic, engines_[index(engine)].start_latency);
  }
  push(time, kEngine, engine, id, static_cast<std::uint32_t>(rank & 0xffff));
}

// Paths of a rank are found by the worker that has the rank, so before an engine needs them. What
// else would need others: engines that read at a peer, messages whose flags are not where their
// data are.
void Cores::find_before(const Descriptor& descriptor) {
  const int rank = descriptor.rank;
  if (descriptor.bytes > 0 && descriptor.src.rank != rank) throw NeedsOneWorker{};
  if (descriptor.target != rank) fabric_.paths(rank, descriptor.target);
  for (const program::SemaphoreId semaphore : descriptor.semaphores) {
    if (descriptor.remote && semaphore.rank != descriptor.target) throw NeedsOneWorker{};
    if (semaphore.rank != rank) fabric_.paths(rank, semaphore.rank);
  }
}

// One engine per destination, so that a signal stays behind the data it announces.
std::int32_t Cores::engine_for(const Descriptor& descriptor) const {
  const int rank = descriptor.rank;
  if (descriptor.remote) {
    for (const machine::LinkId link : machine_.routes(rank, descriptor.target).path(0)) {
      const std::int32_t engine = nic_engine_[index(machine_.links[index(link)].to)];
      if (engine >= 0) return engine;
    }
  }
  const bool pulls = descriptor.bytes > 0 && descriptor.src.rank != rank;
  const int peer = pulls ? descriptor.src.rank : descriptor.target;
  const int relative = (peer - rank + program_.ranks()) % program_.ranks();
  return first_engine_[index(rank)] + relative % fabric_.layout[index(rank)]->engines;
}

void Cores::engine_start(std::int32_t id, SendQueue& queue, std::int64_t now) {
  const EngineRun& engine = engines_[index(id)];
  const std::int32_t descriptor_id = queue.descriptors.front();
  Descriptor& descriptor = descriptors_[index(descriptor_id)];
  if (!queue.active) queue.spent = descriptor.spent;
  queue.active = true;
  queue.leg = 0;
  queue.offset = 0;
  descriptor.began = now;
  if (tracing()) descriptor.flow.span = ++spans_;
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
    push(now + latency, kEngine, id, -1);
    return;
  }
  descriptor.spent = queue.spent;
  finish(id, descriptor_id, now + latency);
}

void Cores::engine_inject(std::int32_t id, SendQueue& queue, std::int64_t now) {
  const EngineRun& engine = engines_[index(id)];
  const std::int32_t descriptor_id = queue.descriptors.front();
  Descriptor& descriptor = descriptors_[index(descriptor_id)];
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

void Cores::inject_burst(std::int32_t id, SendQueue& queue, std::int64_t together,
                         std::int64_t now) {
  const EngineRun& engine = engines_[index(id)];
  const std::int32_t descriptor_id = queue.descriptors.front();
  Descriptor& descriptor = descriptors_[index(descriptor_id)];
  const CopyLeg* const leg = descriptor.legs.empty() ? nullptr : &descriptor.legs[queue.leg];
  const program::Span& src = leg != nullptr ? leg->src : descriptor.src;
  const program::Span& dst = leg != nullptr ? leg->dst : descriptor.dst;
  const std::int64_t bytes = leg != nullptr ? leg->bytes : descriptor.bytes;
  const std::int32_t target = leg != nullptr ? dst.rank : descriptor.target;
  // Where the data are: a pull's are at the peer.
  const int rank = bytes > 0 ? src.rank : descriptor.rank;
  const std::int32_t request_id = allocate(false);
  Request& request = requests_[index(request_id)];
  request.intent = Intent::burst;
  request.cu = 0;
  request.source = static_cast<std::int16_t>(rank);
  request.target = static_cast<std::int16_t>(target);
  Detail& burst = add_detail(request);
  burst.engine = id;
  burst.descriptor = descriptor_id;
  const bool empty = bytes == 0;
  const std::int64_t run = src.run;  // a row of both sides
  const std::int64_t in_row = run > 0 ? (src.skip + queue.offset) % run : 0;
  const std::int64_t rest_of_row = run > 0 ? run - in_row : bytes;
  request.bytes = static_cast<std::int32_t>(
      empty ? sector_ : std::min({together * engine.burst, bytes - queue.offset, rest_of_row}));
  request.line = empty ? -1 : line_of(addresses_.of(src, queue.offset));
  burst.destination = empty ? -1 : line_of(addresses_.of(dst, queue.offset));
  request.slice = static_cast<std::int16_t>(empty ? 0 : slice_of(rank, request.line));
  burst.destination_slice =
      static_cast<std::int16_t>(empty ? 0 : slice_of(request.target, burst.destination));
  request.reads_source = true;
  request.spent = queue.spent;
  request.carried = request.bytes;
  if (request.target != rank) {
    if (!empty) tally().counters.injected += request.bytes;
    tally().counters.moved += request.bytes;
    const Fabric::Paths paths = fabric_.paths(rank, request.target);
    // Load/store fabrics spray by address, so that consecutive bursts go round all paths. Over a
    // network messages have a path, or their packets take all in turn.
    std::int64_t path = paths.flow;
    if (!descriptor.remote)
      path = machine::select_path(burst.destination * line_size_ / (together * engine.burst),
                                  paths.count);
    else if (path < 0)
      path = queue.offset / (together * engine.burst) % paths.count;
    request.route = paths.first + static_cast<std::int32_t>(path);
  }
  tally().counters.bursts += together;
  queue.in_flight += together;
  descriptor.unacknowledged += together;
  descriptor.packets += together;
  if (queue.offset + request.bytes >= bytes) burst.packets = descriptor.packets;
  if (run > 0 && in_row == 0 && engine.row_time > 0 && (leg == nullptr || !leg->beside)) {
    Server& server = fabric_.servers[index(engine.server)];
    server.free = std::max(server.free, now) + engine.row_time;
    server.busy += engine.row_time;
  }
  pass_burst(queue, descriptor, request.bytes);
  const std::int64_t departure = begin_train(request, fabric_.servers[index(engine.server)],
                                             together, serve(engine.server, request, now));
  request.stage = Stage::in;
  request.follow({}, 0);
  push(departure, kLegEnd, request_id, 0, tag_of_burst(descriptor, id, rank, target));
}

// The order tag with which an engine's reads come to the slices of a rank: one for each engine, in
// numbers that are equal on ranks that behave alike.
std::uint32_t Cores::tag_of_burst(const Descriptor& descriptor, std::int32_t id, int rank,
                                  int target) const {
  const auto from = [&](int other) {
    return static_cast<std::uint32_t>((other - rank + program_.ranks()) % program_.ranks());
  };
  const auto ranks = static_cast<std::uint32_t>(program_.ranks());
  // Which engine of the rank it is, that of its pair: see engine_for().
  const std::uint32_t peer = descriptor.rank == rank ? from(target) : ranks + from(descriptor.rank);
  const auto engine = static_cast<std::uint32_t>(
      engines_[index(id)].pipelined ? fabric_.layout[index(descriptor.rank)]->engines
                                    : id - first_engine_[index(descriptor.rank)]);
  return kFromEngines + engine * 2 * ranks + peer;
}

// A burst has read its source and goes to its destination.
void Cores::turn_to_destination(Request& request) {
  request.reads_source = false;
  Detail& burst = detail(request);
  std::swap(request.line, burst.destination);
  std::swap(request.slice, burst.destination_slice);
}

// A burst covers several lines; one access to memory fetches those that miss.
void Cores::look_up_burst(std::int32_t id, std::int64_t ready) {
  Request& request = requests_[index(id)];
  if (request.train) return look_up_train(id, ready);
  const int rank = request.place();
  GpuState& gpu = this->gpu(rank);
  std::int64_t missing = gpu.l2.exists() ? 0 : request.bytes;
  BurstLookUps found;
  const std::int64_t lines = (request.bytes + line_size_ - 1) / line_size_;
  for (std::int32_t l = 0; l < lines && gpu.l2.exists(); ++l) {
    const std::int32_t line = request.line + l;
    const Tags::Outcome outcome = gpu.l2.access(line, slice_of(rank, line), !request.reads_source);
    ++(outcome.hit ? tally().counters.l2_hits : tally().counters.l2_misses);
    found.add({1, outcome.hit ? 1 : 0, outcome.evicted_dirty ? 1 : 0});
    if (outcome.evicted_dirty) to_memory(make_write_back(rank, outcome.victim), ready);
    if (!outcome.hit && request.reads_source) missing += line_size_;
  }
  if (sampling_ != nullptr) {
    sampling_->trains().saw(request.reads_source, found);
    sampling_->saw_packet();
  }
  if (missing == 0) {
    answer_at(id, ready);
    return;
  }
  request.carried = static_cast<std::int32_t>(missing);
  to_memory(id, ready);
}

// A message without data has nothing to read or to write, but takes its place in the order. It is
// at its port at once, behind all that comes there at the same time (its order tag at slices is
// a higher one).
void Cores::pass_empty(Request& request, std::int64_t now) {
  request.accepted = ++gpu(request.place()).accepted;
  if (!request.reads_source) delivered(request, now);
}

// A packet of a message has reached the memory of its destination. Flags follow in the order of the
// flow.
void Cores::delivered(const Request& request, std::int64_t now) {
  const Detail& packet = detail(request);
  const Descriptor& descriptor = descriptors_[index(packet.descriptor)];
  if (!descriptor.message) return;
  Flow& flow = gpu(request.target).flows[pair_key(request.source, request.target)];
  Flow::Message& message = flow.messages[descriptor.number];
  if (packet.packets >= 0) {
    message.packets = packet.packets;
    message.semaphores = descriptor.semaphores;
    message.span = descriptor.flow.span;
  }
  message.came += packet.together;
  flow.came = std::max(flow.came, now + packet.lag);
  while (!flow.messages.empty() && flow.messages.begin()->first == flow.next) {
    const Flow::Message& first = flow.messages.begin()->second;
    if (first.came != first.packets) return;
    for (const program::SemaphoreId semaphore : first.semaphores) {
      const std::int32_t flag_id =
          make_flag(semaphore.rank, semaphore, until_accepted(request, now), first.span);
      Request& flag = requests_[index(flag_id)];
      flag.spent.charge(Reason::link, flow.came - now);
      flag.spent.charge(Reason::nic, 1);
      flag.stage = Stage::in;
      push(flow.came + 1, kLegEnd, flag_id, 0, kFlagsOfNics);
    }
    flow.messages.erase(flow.messages.begin());
    ++flow.next;
  }
}

void Cores::burst_done(std::int32_t request_id, std::int64_t now) {
  const Request& request = requests_[index(request_id)];
  const std::int32_t id = detail(request).engine;
  EngineRun& engine = engines_[index(id)];
  const std::int32_t descriptor_id = detail(request).descriptor;
  Descriptor& descriptor = descriptors_[index(descriptor_id)];
  SendQueue& queue = engine.queue_of(descriptor);
  const LatencyBreakdown spent = request.spent;
  const std::int64_t together = detail(request).together;
  release(request_id);
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
void Cores::finish(std::int32_t id, std::int32_t descriptor_id, std::int64_t time) {
  push(time, kEngineDone, id, descriptor_id);
  const Descriptor& descriptor = descriptors_[index(descriptor_id)];
  if (descriptor.workgroup >= 0) push(time, kPosted, descriptor.workgroup, keep(descriptor.spent));
}

// A copy engine's signal goes out and its next descriptor starts.
void Cores::engine_done(std::int32_t id, std::int32_t descriptor_id, std::int64_t now) {
  EngineRun& engine = engines_[index(id)];
  Descriptor descriptor = descriptors_[index(descriptor_id)];
  const LatencyBreakdown& spent = descriptor.spent;
  if (!engine.pipelined)
    for (const program::SemaphoreId semaphore : descriptor.semaphores)
      flag_of_copy(descriptor, spent, semaphore, now);
  if (tracing()) {
    descriptor.flow.released_at = {descriptor.began};
    options_.trace->engine(descriptor.rank, engine.name, descriptor.bytes > 0 ? "copy" : "signal",
                           {descriptor.began}, {now}, descriptor.flow);
  }
  descriptors_.give_back(descriptor_id);
  if (!engine.pipelined) {
    SendQueue& queue = engine.queues[0];
    queue.descriptors.pop_front();
    if (queue.descriptors.empty())
      queue.active = false;
    else
      engine_start(id, queue, now);  // it waited for this one
  }
  if (descriptor.queue < 0) return;
  CopyQueue& queue = queues_[index(descriptor.queue)];
  queue.span = descriptor.flow.span;
  queue.spent = spent;
  next_of_queue(descriptor.queue, now);
}

void Cores::posted_done(std::int32_t id, const LatencyBreakdown& spent, std::int64_t now) {
  Workgroup& group = groups_[index(id)];
  if (++group.posted_done < group.posted || group.flushing < 0) return;
  const std::int64_t latency =
      std::max<std::int64_t>(1, machine_.model(group.rank).proxy_return_latency.fs);
  Wave& wave = waves_[index(group.flushing)];
  wave.spent = spent;
  wave.spent.charge(Reason::proxy, latency);
  push(now + latency, kWave, std::exchange(group.flushing, -1), 0, wave.tag);
}

// A flag that an engine, not a wavefront, writes.
std::int32_t Cores::make_flag(int source, program::SemaphoreId semaphore,
                              const LatencyBreakdown& spent, SpanId by) {
  ++tally().counters.flags;
  const std::int32_t id = allocate(false);
  Request& flag = requests_[index(id)];
  flag.intent = Intent::flag;
  flag.cu = 0;
  flag.source = static_cast<std::int16_t>(source);
  flag.target = static_cast<std::int16_t>(semaphore.rank);
  flag.line = flag_line(semaphore.index);
  flag.slice = static_cast<std::int16_t>(slice_of(flag.target, flag.line));
  flag.bytes = static_cast<std::int32_t>(sector_);
  flag.spent = spent;
  Detail& update = add_detail(flag);
  update.semaphore = semaphore.index;
  update.increment = 1;
  if (tracing()) spans_of(flag).sender = by;
  return id;
}

void Cores::flag_of_copy(const Descriptor& descriptor, const LatencyBreakdown& spent,
                         program::SemaphoreId semaphore, std::int64_t now) {
  const int rank = descriptor.rank;
  const std::int32_t request_id = make_flag(rank, semaphore, spent, descriptor.flow.span);
  Request& request = requests_[index(request_id)];
  if (request.target == rank) {
    request.stage = Stage::in;
    push(now, kLegEnd, request_id, 0, kFlagsOfCopies);
    return;
  }
  const Fabric::Paths paths = fabric_.paths(rank, request.target);
  request.route =
      paths.first + static_cast<std::int32_t>(machine::select_path(request.line, paths.count));
  leave(request_id, now);
}

}  // namespace hemiola::sim
