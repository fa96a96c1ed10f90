// The reference engine: L2 slices, memory-side cache, HBM; flags and packets.

#include <algorithm>
#include <utility>

#include "sim/reference.h"

namespace hemiola::sim {
namespace {

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Spreads consecutive numbers over `count` places and keeps strides of powers of two apart. Works
// on rank-relative addresses, so that all GPUs map alike.
std::int32_t spread(std::int64_t number, std::int64_t count) {
  const auto x = static_cast<std::uint64_t>(number);
  return static_cast<std::int32_t>((x ^ (x >> 7) ^ (x >> 14) ^ (x >> 21)) %
                                   static_cast<std::uint64_t>(count));
}

// A channel changes between reads and writes.
void turn_bus(Server& hbm, bool read, const machine::GpuModel& model, std::int64_t now) {
  if (hbm.requests > 0 && hbm.last_write == read) {
    const std::int64_t turn = model.hbm_turnaround.fs;
    hbm.free = std::max(now, hbm.free) + turn;
    hbm.busy += turn;
  }
  hbm.last_write = !read;
}

}  // namespace

std::int32_t Reference::slice_of(int rank, std::int64_t line) const {
  return spread(line, fabric_.layout[index(rank)]->slices);
}

std::int32_t Reference::channel_of(int rank, std::int64_t line) const {
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  // A GPU without L2 whose slices are its memory channels (a mesh with memory on its edges).
  if (layout.model.l2_size.count == 0 && layout.slices == layout.channels)
    return slice_of(rank, line);
  return spread(line * line_size_ / std::max<std::int64_t>(1, layout.model.hbm_interleave.count),
                layout.channels);
}

// A slice accepts a request: its tags change here, in the order of acceptance.
void Reference::at_slice(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  if (request.intent == Intent::burst && request.line < 0) {  // nor to write
    delivered(request, now);
    reply(id, now);
    return;
  }
  const int rank = request.reads_source ? request.source : request.target;
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  request.stage = Stage::memory;
  if (request.detail >= 0) detail(request).accepted_at = now;
  const std::int32_t number = fabric_.gpu_base[index(rank)] + layout.slice + request.slice;
  std::int64_t departure;
  if (request.intent == Intent::flag) {
    Server& server = fabric_.servers[index(number)];
    departure =
        std::max(now, server.free) + std::max<std::int64_t>(1, layout.model.l2_atomic_time.fs);
    server.busy += layout.model.l2_atomic_time.fs;
    server.free = departure;
    ++server.requests;
    ++hops_;
    request.spent.charge(Reason::l2, departure - now);
  } else if (request.intent == Intent::posted_load && request.target == request.source) {
    departure = serve_operand(number, request, now);
  } else {
    request.carried = request.bytes;
    departure = serve(number, request, now);
  }
  const std::int64_t ready = departure + layout.model.l2_latency.fs;
  request.spent.charge(Reason::l2, layout.model.l2_latency.fs);
  const bool store = request.intent == Intent::store || request.intent == Intent::member_store;
  if (request.target != request.source &&
      (store || (request.intent == Intent::burst && !request.reads_source))) {
    counters_.delivered += request.bytes;
  }
  if (request.intent == Intent::burst && !request.reads_source) delivered(request, now);
  if (request.intent == Intent::flag) apply_flag(request, now);
  if (request.intent == Intent::poll) sample_poll(request, now);
  if (request.packet) {
    if (store) {
      store_packet(request, now);
    } else {
      request.ready = load_packet(request);
    }
  }
  if (request.intent == Intent::burst) {
    look_up_burst(id, ready);
  } else {
    look_up(id, ready);
  }
}

// Clusters share operands, and requests for a line are coalesced in front of the L2: what a slice
// takes for one is that of all it serves together (gemm.l2_rate, as in the model of products).
std::int64_t Reference::serve_operand(std::int32_t number, Request& request, std::int64_t now) {
  Server& server = fabric_.servers[index(number)];
  const machine::GpuModel& model = machine_.model(request.target);
  const std::int64_t service = model.gemm_l2_rate.time_for(request.bytes * model.l2_slices).fs;
  const std::int64_t departure = std::max(now, server.free) + service;
  server.busy += service;
  server.free = departure;
  ++server.requests;
  ++hops_;
  request.spent.charge(Reason::l2, departure - now);
  return departure;
}

void Reference::look_up(std::int32_t id, std::int64_t ready) {
  Request& request = requests_[index(id)];
  GpuState& gpu = gpus_[index(request.target)];
  const bool writes = request.intent == Intent::store || request.intent == Intent::member_store ||
                      request.intent == Intent::flag;
  if (!gpu.l2.exists()) {
    push(ready, kMemory, id);
    return;
  }
  if (!writes) {
    if (Pending* pending =
            gpu.pending.find(request.line)) {  // a hit on a line that is on its way waits
      ++counters_.l2_hits;
      const Tags::Outcome again = gpu.l2.access(request.line, false);  // now the most recent one
      if (again.evicted_dirty) write_back(request.target, again.victim, ready);
      request.queued_at = ready;
      requests_[index(pending->last)].next_pending = id;
      pending->last = id;
      return;
    }
  }
  const Tags::Outcome outcome = gpu.l2.access(request.line, writes);
  if (outcome.evicted_dirty) write_back(request.target, outcome.victim, ready);
  if (outcome.hit || writes) {
    // Stores of whole sectors fetch nothing, and are acknowledged by the slice.
    ++(outcome.hit ? counters_.l2_hits : counters_.l2_misses);
    reply(id, ready);
    return;
  }
  ++counters_.l2_misses;
  gpu.pending[request.line] = {id, id};
  request.queued_at = ready;
  push(ready, kMemory, id);
}

// A copy engine's burst covers several lines; one access to memory fetches those that miss.
void Reference::look_up_burst(std::int32_t id, std::int64_t ready) {
  Request& request = requests_[index(id)];
  const int rank = request.reads_source ? request.source : request.target;
  GpuState& gpu = gpus_[index(rank)];
  std::int64_t missing = gpu.l2.exists() ? 0 : request.bytes;
  const std::int64_t lines = (request.bytes + line_size_ - 1) / line_size_;
  for (std::int64_t l = 0; l < lines && gpu.l2.exists(); ++l) {
    const Tags::Outcome outcome = gpu.l2.access(request.line + l, !request.reads_source);
    ++(outcome.hit ? counters_.l2_hits : counters_.l2_misses);
    if (outcome.evicted_dirty) write_back(rank, outcome.victim, ready);
    if (!outcome.hit && request.reads_source) missing += line_size_;
  }
  if (missing == 0) {
    reply(id, ready);
    return;
  }
  request.carried = static_cast<std::int32_t>(missing);
  push(ready, kMemory, id);
}

void Reference::write_back(int rank, std::int64_t line, std::int64_t now) {
  ++counters_.l2_write_backs;
  const std::int32_t id = allocate(false);
  Request& request = requests_[index(id)];
  request.intent = Intent::write_back;
  request.source = request.target = static_cast<std::int16_t>(rank);
  request.line = line;
  request.bytes = static_cast<std::int32_t>(line_size_);
  request.carried = request.bytes;
  push(now, kMemory, id);
}

// Behind the L2: the memory-side cache of the channel where there is one, then the channel itself.
void Reference::at_memory(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  const int rank = request.reads_source ? request.source : request.target;
  if (request.intent == Intent::burst &&
      request.line < 0) {  // a message without data has nothing to read
    reply(id, now);
    return;
  }
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  GpuState& gpu = gpus_[index(rank)];
  const std::int32_t channel = channel_of(rank, request.line);
  const std::int32_t base = fabric_.gpu_base[index(rank)];
  const bool read = is_load(request.intent) || request.reads_source;
  if (request.intent != Intent::burst) {
    // The L2 fetches whole lines; without an L2 only the sectors that were asked for.
    request.carried = gpu.l2.exists() ? static_cast<std::int32_t>(line_size_) : request.bytes;
  }
  std::int64_t time = now;
  bool hit = false;
  if (gpu.msc.exists()) {
    time = serve(base + layout.msc + channel, request, time) + layout.model.msc_latency.fs;
    request.spent.charge(Reason::msc, layout.model.msc_latency.fs);
    const Tags::Outcome outcome = gpu.msc.access(request.line, !read);
    ++(outcome.hit ? counters_.msc_hits : counters_.msc_misses);
    hit = outcome.hit || !read;  // it takes written lines without fetching them
    if (outcome.evicted_dirty) {
      counters_.hbm_written += line_size_;
      Server& hbm = fabric_.servers[index(base + layout.hbm + channel)];
      turn_bus(hbm, false, layout.model, time);
      hbm.free = std::max(time, hbm.free) + fabric_.service(hbm, line_size_, 0);
      ++hops_;
    }
  }
  if (!hit) {
    Server& hbm = fabric_.servers[index(base + layout.hbm + channel)];
    turn_bus(hbm, read, layout.model, time);
    (read ? counters_.hbm_read : counters_.hbm_written) += request.carried;
    time = serve(base + layout.hbm + channel, request, time);
    if (read) {
      time += layout.model.hbm_latency.fs;
      request.spent.charge(Reason::hbm, layout.model.hbm_latency.fs);
    }
  }
  if (request.intent == Intent::write_back) {
    release(id);
  } else if (read && request.intent != Intent::burst && gpu.l2.exists()) {
    push(time, kFill, id);
  } else {
    reply(id, time);
  }
}

// The line is in the L2: everybody who waited for it goes on, in the order of acceptance.
void Reference::filled(std::int32_t id, std::int64_t now) {
  GpuState& gpu = gpus_[index(requests_[index(id)].target)];
  const std::int64_t line = requests_[index(id)].line;
  std::int32_t other = gpu.pending.find(line)->first;
  gpu.pending.erase(line);
  while (other >= 0) {
    Request& request = requests_[index(other)];
    const std::int32_t next = std::exchange(request.next_pending, -1);
    std::int64_t time = now;
    if (other != id) {
      time = std::max(now, request.queued_at);
      request.spent.charge(Reason::hbm, time - request.queued_at);
    }
    reply(other, time);
    other = next;
  }
}

// Memory has done its part at `now`: data or an acknowledgement goes back.
void Reference::reply(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  if (request.reads_source) {  // a burst has read its source and goes to its destination
    request.reads_source = false;
    Detail& burst = detail(request);
    std::swap(request.line, burst.destination);
    const std::int32_t source_slice = std::exchange(request.slice, burst.destination_slice);
    const std::int32_t bytes = request.bytes;
    if (request.target == request.source) {
      request.stage = Stage::in;
      request.follow({}, 0);
      push(now, kLegEnd, id, 0, 1U << 13);
      return;
    }
    const Path& path = fabric_.path(request.route);
    begin_leg(id, Stage::out,
              fabric_.layout[index(request.source)]->slice_to_port(source_slice, path.source_port),
              fabric_.gpu_base[index(request.source)], now, bytes);
    return;
  }
  const GpuLayout& layout = *fabric_.layout[index(request.target)];
  const bool load = is_load(request.intent);
  const std::int32_t base = fabric_.gpu_base[index(request.target)];
  if (request.is_member()) {
    const std::int32_t port = fabric_.port_of(fabric_.reverse[index(request.route)]);
    begin_leg(id, Stage::back_out, layout.slice_to_port(request.slice, port), base, now,
              load ? request.bytes : 0);
    return;
  }
  if (request.target != request.source) {
    const Path& path = fabric_.path(request.route);
    begin_leg(id, Stage::back_out, layout.slice_to_port(request.slice, path.destination_port), base,
              now, load ? request.bytes : 0);
    return;
  }
  if (load) {
    begin_leg(id, Stage::back_out, layout.slice_to_cu(request.slice, request.cu), base, now,
              request.bytes);
    return;
  }
  const std::int64_t latency =
      request.wave >= 0 ? layout.acknowledge_latency(request.slice, request.cu) : 0;
  request.spent.charge(Reason::noc, latency);
  request.stage = Stage::back_out;
  push(now + latency, kComplete, id, 0, 0);
}

// --- Flags. Values change when the slice accepts the update; polls sample when it accepts them.

void Reference::apply_flag(Request& request, std::int64_t now) {
  const Detail& flag = detail(request);
  add_to_semaphore(gpus_[index(request.target)].semaphores[index(flag.semaphore)], flag.increment,
                   request.spent, now);
}

void Reference::add_to_semaphore(SemaphoreState& semaphore, std::int64_t increment,
                                 const Spent& cause, std::int64_t now) {
  semaphore.value += increment;
  // Whoever waits for this value has it to thank (attribution only; the poll finds out by itself).
  std::erase_if(semaphore.watches, [&](const Watch& watch) {
    Watched& watched = waves_[index(watch.wave)].watched[index(watch.index)];
    if (semaphore.value < watched.target) return false;
    watched.cause.time = now;
    watched.cause.spent = cause;
    // The attribution sums to the end of the look-up; what counts is the acceptance.
    watched.cause.spent.charge_until(Reason::l2, now);
    return true;
  });
  if (!semaphore.queues.empty()) wake_queues(semaphore, cause, now);
}

void Reference::sample_poll(Request& request, std::int64_t now) {
  Wave& wave = waves_[index(request.wave)];
  for (Watched& watched : wave.watched) {
    if (watched.satisfied || watched.id.rank != request.target ||
        flag_line(watched.id.index) != request.line)
      continue;
    SemaphoreState& semaphore = gpus_[index(request.target)].semaphores[index(watched.id.index)];
    if (watched.first_poll < 0) watched.first_poll = now;
    if (semaphore.value < watched.target) continue;
    watched.satisfied = true;
    if (watched.consume) semaphore.value -= watched.target;
    if (!watched.swap) continue;
    quiet_ = 0;  // somebody who spins may go on
    add_to_semaphore(semaphore, 1, request.spent, now);
  }
}

// --- Packets: LL flags arrive with their data. Every granule holds the flag that was stored last.

void Reference::store_packet(Request& request, std::int64_t now) {
  const Detail& packet = detail(request);
  PacketLine& line = gpus_[index(request.target)].packets[request.line];
  if (line.flag != packet.packet_flag) {
    const std::uint64_t held = line.granules(packet.packet_flag);
    line.others.emplace_back(line.flag, line.mask);
    line.flag = packet.packet_flag;
    line.mask = held;
  }
  line.mask |= packet.packet_mask;
  std::erase_if(line.others, [&](auto& other) {
    other.second &= ~packet.packet_mask;
    return other.second == 0 || other.first == line.flag;
  });
  for (const std::int32_t waiting : line.watches) {
    Wave& wave = waves_[index(waiting)];
    wave.packet_cause.time = now;
    wave.packet_cause.spent = request.spent;
    wave.packet_cause.spent.charge_until(Reason::l2, now);
  }
  line.watches.clear();
}

bool Reference::load_packet(Request& request) {
  PacketLine& line = gpus_[index(request.target)].packets[request.line];
  const Detail& packet = detail(request);
  const bool ready = (line.granules(packet.packet_flag) & packet.packet_mask) == packet.packet_mask;
  if (!ready && (line.watches.empty() || line.watches.back() != request.wave))
    line.watches.push_back(request.wave);
  return ready;
}

}  // namespace hemiola::sim
