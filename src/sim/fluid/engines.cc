// Host proxies, copy engines and NICs. As in copy_engines.cc with a flow for each descriptor: an
// engine moves one after the other; a copy engine writes its flag when all is acknowledged, the NIC
// at the destination behind the last packet.

#include "sim/fluid/engines.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "machine/network_routing.h"

namespace hemiola::sim::fluid {

Engines::Engines(Run& run, Streams& streams, Flags& flags)
    : run_(run),
      streams_(streams),
      flags_(flags),
      posted_(run.walkers.size()),
      proxy_free_(index(run.fold.rank_classes())) {}

std::int32_t Engines::make_descriptor(Walker& walker, bool queue) {
  const program::Primitive& primitive = walker.place.present;
  const std::int32_t id = descriptors_.take();
  Descriptor& descriptor = descriptors_[index(id)];
  descriptor.agent = walker.number;
  descriptor.rank = walker.agent.rank;
  descriptor.members = walker.members;
  descriptor.legs = std::exchange(walker.legs, {});
  descriptor.leg = 0;
  descriptor.start = -1;
  descriptor.per_nic = walker.per_rank;
  descriptor.injected = descriptor.arrived = 0;
  if (!descriptor.legs.empty()) {
    const CopyLeg& first = descriptor.legs.front();
    descriptor.bytes = first.bytes;
    descriptor.run = first.src.run;
    descriptor.remote = false;
    descriptor.queue = true;
    descriptor.from = first.src.rank;
    descriptor.to = first.dst.rank;
    descriptor.semaphores.clear();
    descriptor.spent = walker.at.spent;
    return id;
  }
  descriptor.bytes = primitive.bytes;
  descriptor.run = primitive.src.empty() ? 0 : primitive.src.front().run;
  if (!queue && !primitive.src.empty() && primitive.src.front().access != program::Access::plain)
    descriptor.bytes *= 2;
  descriptor.remote = primitive.remote;
  descriptor.queue = queue;
  descriptor.from = primitive.bytes > 0 ? primitive.src.front().rank : walker.agent.rank;
  descriptor.to =
      primitive.bytes > 0 ? primitive.dst.front().rank : primitive.semaphores.front().rank;
  descriptor.semaphores = primitive.semaphores;
  descriptor.spent = walker.at.spent;
  return id;
}

// The proxy serves requests one after the other. Those of a class come apart from each other: each
// waits for what came before the class, and all of them keep the proxy busy.
void Engines::post(Walker& walker) {
  const std::int32_t id = make_descriptor(walker, false);
  Descriptor& descriptor = descriptors_[index(id)];
  const machine::GpuModel& model = run_.model(walker);
  ++posted_[index(walker.number)].all;
  const std::int64_t latency = std::max<std::int64_t>(1, model.proxy_fifo_latency.fs);
  const std::int64_t service = std::max<std::int64_t>(
      1, descriptor.remote ? model.proxy_network_time.fs : model.proxy_request_time.fs);
  std::int64_t& free = proxy_free_[index(walker.rank_class)];
  const std::int64_t begin = std::max(walker.at.time + latency, free);
  free = begin + service * walker.per_rank;
  charge(descriptor.spent, Reason::proxy, begin + service - walker.at.time);
  run_.events.push(begin + service, EventKind::proxy, id);
}

bool Engines::flush(Walker& walker) const {
  const Posted& posted = posted_[index(walker.number)];
  if (posted.done >= posted.all) return true;
  walker.blocked = Blocked::flush;
  return false;
}

void Engines::queue_copy(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const std::int32_t id = make_descriptor(walker, true);
  Descriptor& descriptor = descriptors_[index(id)];
  if (descriptor.legs.empty()) {  // beyond a NIC
    charge(descriptor.spent, Reason::dma, 1);
    return run_.events.push(walker.at.time + 1, EventKind::proxy, id);
  }
  walker.copied = true;
  const machine::GpuModel& model = run_.model(walker);
  const auto& streams = run_.program.code(walker.agent.rank).streams;
  const bool prelaunched =
      streams[index(walker.agent.stream)][index(walker.agent.item)].prelaunched;
  descriptor.start = prelaunched ? 0 : model.dma_schedule_latency.fs;
  std::int64_t handed_over = walker.at.time + 1;
  if (!prelaunched && run_.options.one_host) {
    const std::int64_t each = std::max<std::int64_t>(1, model.dma_control_latency.fs);
    handed_over = streams_.by_host(walker.at.time, each * walker.members, descriptor.spent);
  } else {
    charge(descriptor.spent, Reason::dma, 1);
    if (!prelaunched) descriptor.start += model.dma_control_latency.fs;
  }
  run_.events.push(handed_over, EventKind::proxy, id);
}

// One copy engine per destination, so that a signal stays behind the data it announces; one NIC of
// each rank, which is shared by those that share it as its links are.
std::int32_t Engines::engine_for(const Descriptor& descriptor) {
  const machine::GpuModel& model = run_.machine.model(descriptor.rank);
  std::int32_t number = -1;
  const machine::Node* nic = nullptr;
  if (descriptor.remote) {
    const machine::Routes& routes = run_.machine.routes(descriptor.rank, descriptor.to);
    if (const auto node = machine::first_nic(run_.machine, routes.path(0))) {
      nic = &run_.machine.nodes[index(*node)];
      number = -1 - *node;
    }
  }
  if (nic == nullptr) {
    const bool pulls = descriptor.bytes > 0 && descriptor.from != descriptor.rank;
    const int peer = pulls ? descriptor.from : descriptor.to;
    const int relative = (peer - descriptor.rank + run_.program.ranks()) % run_.program.ranks();
    number = static_cast<std::int32_t>(relative % std::max<std::int64_t>(1, model.dma_engines));
  }
  const std::int32_t rank_class = run_.fold.rank_class(descriptor.rank);
  const auto [found, fresh] =
      engine_of_.try_emplace({rank_class, number}, static_cast<std::int32_t>(engines_.size()));
  if (!fresh) return found->second;
  Engine& engine = engines_.emplace_back();
  engine.rank_class = rank_class;
  engine.nic = nic != nullptr;
  if (engine.nic) {
    engine.burst = engine.packet = std::max<std::int64_t>(1, nic->nic_model.mtu.count);
    engine.outstanding = kNicOutstanding;
    engine.start = std::max<std::int64_t>(1, nic->nic_model.message_time.fs);
    engine.end = std::max<std::int64_t>(1, nic->nic_model.latency.fs);
    engine.rate = nic->nic_model.rate;
    engine.reason = Reason::nic;
  } else {
    engine.burst = std::max(model.line_size.count, model.dma_burst.count);
    engine.packet = model.dma_max_payload.count;
    engine.outstanding = model.dma_outstanding;
    engine.start = model.dma_control_latency.fs + model.dma_schedule_latency.fs;
    engine.end = std::max<std::int64_t>(1, model.dma_sync_latency.fs);
    engine.row = model.dma_row_time.fs;
    engine.rate = model.dma_rate;
  }
  return found->second;
}

void Engines::to_engine(std::int32_t id, std::int64_t now) {
  const std::int32_t number = engine_for(descriptors_[index(id)]);
  Engine& engine = engines_[index(number)];
  engine.queue.push_back(id);
  if (engine.nic) {
    Descriptor& message = descriptors_[index(id)];
    const auto pair = std::ranges::find(engine.pairs, message.to, &QueuePair::to);
    message.pair = index(pair - engine.pairs.begin());
    if (pair == engine.pairs.end()) engine.pairs.push_back({.to = message.to});
    if (engine.pairs[message.pair].waits) return;
  }
  if (engine.active) return;
  engine.active = true;
  engine.spent = descriptors_[index(id)].spent;
  start_transfer(number, now);
}

void Engines::start_transfer(std::int32_t number, std::int64_t now) {
  Engine& engine = engines_[index(number)];
  Descriptor& descriptor = descriptors_[index(engine.queue.front())];
  descriptor.began = now;
  const std::int64_t start = descriptor.start < 0 ? engine.start : descriptor.start;
  charge(engine.spent, engine.reason, start);
  run_.events.push(now + start, EventKind::transfer, number);
}

void Engines::begin_transfer(std::int32_t number, std::int64_t now) {
  const Engine& engine = engines_[index(number)];
  if (engine.nic) return send_messages(number, now);
  const std::int32_t id = engine.queue.front();
  if (descriptors_[index(id)].bytes == 0) return transferred(number, id, engine.spent, now);
  start_transfer_flow(number, id, engine.spent);
}

/// Bytes that a message without data takes on its way, too.
std::int64_t Engines::bytes_of(const Descriptor& message) const {
  return message.bytes > 0 ? message.bytes : run_.machine.model(message.rank).sector_size.count;
}

// What fits the window of the NIC goes in eighths of it, so that the next message follows as this
// one arrives; of a longer one all before that goes at once.
std::int64_t Engines::next_part(const Engine& nic, const Descriptor& message) const {
  const std::int64_t window = std::max(nic.burst, nic.outstanding * nic.burst / message.per_nic);
  const std::int64_t left = bytes_of(message) - message.injected;
  return left > window ? left - window : std::min(left, std::max(nic.burst, window / 8));
}

/// The first message whose queue pair has room in its window; those before it wait.
std::deque<std::int32_t>::iterator Engines::next_message(Engine& nic) const {
  const std::int64_t window = nic.outstanding * nic.burst;
  return std::ranges::find_if(nic.queue, [&](std::int32_t id) {
    const Descriptor& message = descriptors_[index(id)];
    QueuePair& pair = nic.pairs[message.pair];
    if (pair.waits) return false;
    const std::int64_t least = std::min(next_part(nic, message) * message.per_nic, window / 8);
    pair.waits = pair.in_flight > 0 && pair.in_flight + least > window;
    return !pair.waits;
  });
}

// A NIC goes on once a part of a message has left it, whatever holds that up further on, as long as
// the window of the queue pair is not full; then others may go. Parts to one rank arrive one after
// the other. Of what is longer than a window the rest leaves as acknowledgements come, between
// messages to others.
void Engines::send_messages(std::int32_t number, std::int64_t now) {
  while (true) {
    Engine& engine = engines_[index(number)];
    engine.active = now < engine.free && !engine.queue.empty();
    if (engine.active) return run_.events.push(engine.free, EventKind::transfer, number);
    const auto next = next_message(engine);
    if (next == engine.queue.end()) return;
    const std::int32_t id = *next;
    Descriptor& message = descriptors_[index(id)];
    QueuePair& pair = engine.pairs[message.pair];
    const std::int64_t part = next_part(engine, message);
    const std::int64_t window = engine.outstanding * engine.burst;
    pair.in_flight += part * message.per_nic;
    engine.free = now + engine.rate.time_for(std::min(part * message.per_nic, window)).fs;
    message.injected += part;
    if (message.injected == bytes_of(message)) engine.queue.erase(next);
    if (std::exchange(pair.under_way, true)) {
      pair.behind.push_back({id, part});
      continue;
    }
    message.part = part;
    Attribution spent = message.spent;
    const std::int64_t known = std::accumulate(spent.begin(), spent.end(), std::int64_t{0});
    charge(spent, engine.reason, now - known);
    start_transfer_flow(number, id, spent);
  }
}

// The next part to the same rank follows, and what the window holds back.
void Engines::part_arrived(std::int32_t number, const Descriptor& message, const Attribution& spent,
                           std::int64_t now) {
  Engine& engine = engines_[index(number)];
  QueuePair& pair = engine.pairs[message.pair];
  pair.in_flight -= message.part * message.per_nic;
  pair.under_way = !pair.behind.empty();
  if (pair.under_way) {
    const Part part = pair.behind.front();
    pair.behind.pop_front();
    descriptors_[index(part.descriptor)].part = part.bytes;
    start_transfer_flow(number, part.descriptor, spent);
  }
  if (std::exchange(pair.waits, false) && !engine.active) send_messages(number, now);
}

/// What an engine moves at most, of rows of `run` bytes (0: no rows), with acknowledgements back
/// after `back`; 0: no limit.
std::int64_t Engines::rate_limit(const Engine& engine, std::int64_t run, std::int64_t back) const {
  std::int64_t limit = engine.rate.bytes_per_second;
  const auto at_most = [&](std::int64_t bytes, std::int64_t fs) {
    const __int128 most = static_cast<__int128>(bytes) * kSecond / fs;
    if (limit == 0 || most < limit) limit = static_cast<std::int64_t>(most);
  };
  if (engine.outstanding > 0) at_most(engine.outstanding * engine.burst, back);
  if (run > 0 && engine.row > 0) at_most(run, engine.rate.time_for(run).fs + engine.row);
  return limit;
}

// What queues in front of the L2 passes it in the order in which it came, so whoever has more under
// way gets more of it: an engine has bursts, a compute unit lines.
std::int64_t Engines::part_of_engine(const Engine& engine) const {
  const machine::GpuModel& model = run_.machine.model(run_.fold.first_rank(engine.rank_class));
  const std::int64_t lines = model.cu_max_outstanding * model.line_size.count;
  const std::int64_t bursts = engine.outstanding * engine.burst;
  return lines > 0 && bursts > lines ? kEvenPart * (bursts / lines) : kEvenPart;
}

/// The present command of a descriptor.
void Engines::start_transfer_flow(std::int32_t number, std::int32_t id, const Attribution& spent) {
  const Engine& engine = engines_[index(number)];
  Descriptor& descriptor = descriptors_[index(id)];
  run_.demands.clear();
  std::int64_t back = 1;
  const auto add = [&](int from, int to, std::int64_t bytes, std::int64_t total) {
    const std::int64_t bursts = (bytes + engine.burst - 1) / engine.burst;
    if (descriptor.bytes > 0) {
      run_.ways.at_memory(from, bytes, Depth::l2, total, descriptor.members, run_.demands);
      run_.ways.at_memory(to, bytes, Depth::l2, total, descriptor.members, run_.demands);
    }
    if (from == to) {
      back = std::max(back, run_.ways.acknowledgement(from, to).fs);
      return;
    }
    run_.ways.over_links(from, to, bytes, bursts, engine.packet, false, total, descriptor.members,
                         run_.demands);
    back = std::max(back, run_.ways.links(from, to).fs + run_.ways.acknowledgement(from, to).fs);
  };
  std::int64_t total = engine.nic ? descriptor.part : bytes_of(descriptor);
  if (descriptor.legs.empty()) {
    add(descriptor.from, descriptor.to, total, total);
  } else {
    std::size_t end = descriptor.leg + 1;
    while (end < descriptor.legs.size() && descriptor.legs[end].beside) ++end;
    const std::span<const CopyLeg> command(descriptor.legs.data() + descriptor.leg,
                                           end - descriptor.leg);
    total = command.front().bytes * std::ssize(command);
    for (const CopyLeg& leg : command) add(leg.src.rank, leg.dst.rank, leg.bytes, total);
    descriptor.leg = end;
  }
  run_.start_flow(FlowKind::transfer, number, id, total, rate_limit(engine, descriptor.run, back),
                  engine.reason, spent, {}, engine.nic ? kEvenPart : part_of_engine(engine));
}

// The last burst has left.
void Engines::transferred(std::int32_t number, std::int32_t id, const Attribution& spent,
                          std::int64_t now) {
  Engine& engine = engines_[index(number)];
  Descriptor& descriptor = descriptors_[index(id)];
  descriptor.spent = spent;
  if (descriptor.leg < descriptor.legs.size()) return start_transfer_flow(number, id, spent);
  if (engine.nic) {
    descriptor.arrived += descriptor.part;
    part_arrived(number, descriptor, spent, now);
    if (descriptor.arrived < bytes_of(descriptor)) return;
  }
  int from = descriptor.from, to = descriptor.to;
  for (const CopyLeg& leg : descriptor.legs) {  // the farthest is acknowledged last
    if (leg.src.rank == leg.dst.rank ||
        (from != to &&
         run_.ways.links(leg.src.rank, leg.dst.rank).fs <= run_.ways.links(from, to).fs))
      continue;
    from = leg.src.rank;
    to = leg.dst.rank;
  }
  Moment there{now, spent};
  if (descriptor.bytes > 0 || engine.nic) {
    Latency way = run_.ways.on_chip(from, 0);
    way.add(Reason::l2, run_.machine.model(from).l2_latency.fs);
    if (from != to) {
      const std::int64_t bytes =
          descriptor.legs.empty() ? descriptor.bytes : descriptor.legs.back().bytes;
      const std::int64_t last =
          std::clamp<std::int64_t>(bytes, run_.machine.model(from).sector_size.count, engine.burst);
      way += run_.ways.burst(from, to, last, engine.packet);
    }
    there.add(way);
  }
  Moment done = there;
  if (descriptor.bytes > 0 || engine.nic) done.add(run_.ways.acknowledgement(from, to));
  done.add(engine.reason, engine.end);
  descriptor.spent = done.spent;
  run_.events.push(done.time, EventKind::done, id);
  if (!engine.nic) return;  // it waits for the end
  for (const program::SemaphoreId semaphore : descriptor.semaphores)
    flags_.write(semaphore, descriptor.members, there);
}

std::int32_t Engines::descriptor_done(std::int32_t id, std::int64_t now) {
  const Descriptor descriptor = descriptors_[index(id)];
  descriptors_.give_back(id);
  const std::int32_t number = engine_for(descriptor);
  Engine& engine = engines_[index(number)];
  if (run_.options.trace != nullptr) {
    run_.options.trace->engine(descriptor.rank, engine.nic ? "NIC" : "DMA engine",
                               descriptor.bytes > 0 ? "copy" : "signal", {descriptor.began}, {now},
                               {});
  }
  if (!engine.nic) {
    for (const program::SemaphoreId semaphore : descriptor.semaphores)
      flags_.send(-1, descriptor.rank, semaphore, 1, descriptor.members, {now, descriptor.spent});
    engine.queue.pop_front();
    engine.active = !engine.queue.empty();
    if (engine.active) {
      engine.spent = descriptor.spent;
      start_transfer(number, now);
    }
  }
  Walker& walker = run_.walkers[index(descriptor.agent)];
  if (descriptor.queue) {
    walker.at = {now, descriptor.spent};
    return descriptor.agent;
  }
  Posted& posted = posted_[index(descriptor.agent)];
  ++posted.done;
  if (walker.blocked != Blocked::flush || posted.done < posted.all) return -1;
  const std::int64_t latency =
      std::max<std::int64_t>(1, run_.machine.model(descriptor.rank).proxy_return_latency.fs);
  Moment told{now, descriptor.spent};
  told.add(Reason::proxy, latency);
  walker.at.join(told);
  return descriptor.agent;
}

}  // namespace hemiola::sim::fluid
