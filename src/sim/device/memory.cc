#include "sim/device/memory.h"

#include <algorithm>
#include <utility>

#include "sim/device/copy_engines.h"
#include "sim/device/copy_queues.h"
#include "sim/device/flag_monitors.h"
#include "sim/device/servers.h"
#include "sim/device/skips.h"
#include "sim/device/tracing.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
namespace {

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

std::int32_t Memory::channel_of(int rank, std::int64_t line) const {
  const GpuLayout& layout = device_.layout(rank);
  // A GPU without L2 whose slices are its memory channels (a mesh with memory on its edges).
  if (layout.model.l2_size.count == 0 && layout.slices == layout.channels)
    return device_.slice_of(rank, static_cast<std::int32_t>(line));
  const std::int64_t interleave = std::max<std::int64_t>(1, layout.model.hbm_interleave.count);
  return static_cast<std::int32_t>(
      Device::mixed(static_cast<std::uint64_t>(line * device_.lines.size / interleave)) %
      static_cast<std::uint64_t>(layout.channels));
}

// Clusters share operands, and requests for a line are coalesced in front of the L2: what a slice
// takes for one is that of all it serves together (gemm.l2_rate, as in the model of products).
std::int64_t Memory::operand_time(int rank, std::int64_t bytes) const {
  const machine::GpuModel& model = device_.model(rank);
  return model.gemm_l2_rate.time_for(bytes * model.l2_slices).fs;
}

std::int64_t Memory::flag_time(int rank) const {
  return std::max<std::int64_t>(1, device_.model(rank).l2_atomic_time.fs);
}

std::int64_t Memory::accept(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  const int rank = request.place();
  const GpuLayout& layout = device_.layout(rank);
  const std::int32_t number = device_.fabric.gpu_base[index(rank)] + layout.slice + request.slice;
  std::int64_t departure;
  const bool operand = request.intent == Intent::posted_load && request.target == request.source;
  if (operand || request.intent == Intent::flag) {
    Server& server = device_.server(number);
    server.free = std::max(now, server.free) +
                  (operand ? operand_time(rank, request.bytes) : flag_time(rank));
    departure = server.free;
    ++device_.counters().hops;
    request.spent.charge(Reason::l2, departure - now);
  } else {
    request.carried = request.bytes;
    departure = servers_.serve(number, request, now);
  }
  const std::int64_t ready = departure + layout.model.l2_latency.fs;
  request.spent.charge(Reason::l2, layout.model.l2_latency.fs);
  request.accepted = ++device_.gpu(rank).accepted;
  take_effect(id, now, ready);
  return ready;
}

// Values of flags and packets change and are read when a slice accepts a request, of uncached flags
// when the memory controller does. The slice is done with it at `done`.
void Memory::take_effect(std::int32_t id, std::int64_t now, std::int64_t done) {
  Request& request = device_.request(id);
  request.stage = Stage::memory;
  if (device_.uncached && flag_monitors_.goes_past_l2(request)) {
    request.uncached = true;
    return;
  }
  if (request.detail >= 0) device_.detail(request).accepted_at = now;
  const bool store = request.intent == Intent::store || request.intent == Intent::member_store;
  if (request.target != request.source &&
      (store || (request.intent == Intent::burst && !request.reads_source)))
    device_.counters().delivered += request.bytes;
  if (request.intent == Intent::burst && !request.reads_source)
    copy_engines_.delivered(request, now);
  if (request.intent == Intent::flag) apply_flag(request, now, done);
  if (request.intent == Intent::poll) sample_poll(request, now, done);
  if (request.packet) {
    if (store)
      store_packet(request, now);
    else
      request.ready = load_packet(id);
  }
}

// No copy in the partition of the CU: on to that of the line, and back over there as well. When its
// look-up there is done; the slice that serves both is one (docs/model.md).
std::int64_t Memory::go_home(Request& request, std::int64_t ready) const {
  request.near = false;
  const std::int64_t way = device_.model(request.target).noc_partition_latency.fs;
  request.spent.charge(Reason::noc, way);
  return ready + way;
}

// A dirty line that had to leave the L2.
std::int32_t Memory::make_write_back(int rank, std::int32_t line) {
  ++device_.counters().l2_write_backs;
  const std::int32_t id = device_.allocate(false);
  Request& request = device_.request(id);
  request.intent = Intent::write_back;
  request.source = request.target = static_cast<std::int16_t>(rank);
  request.line = line;
  request.bytes = static_cast<std::int32_t>(device_.lines.size);
  request.carried = request.bytes;
  return id;
}

// The memory-side cache of the channel where there is one, then the channel itself. When the data
// are there, or taken.
std::int64_t Memory::through_memory(Request& request, std::int64_t now) {
  if (request.train) [[unlikely]]
    return copy_engines_.train_through_memory(request, now);
  const int rank = request.place();
  const GpuLayout& layout = device_.layout(rank);
  GpuState& gpu = device_.gpu(rank);
  const std::int32_t channel = channel_of(rank, request.line);
  const std::int32_t base = device_.fabric.gpu_base[index(rank)];
  const bool read =
      is_load(request.intent) || request.reads_source || request.intent == Intent::wake;
  std::int64_t time = now;
  if (request.uncached) {
    time = flag_monitors_.serve_flag_line(request, now);
    if (request.look == Look::arm) return time;
  }
  if (request.intent != Intent::burst) {
    // The L2 fetches whole lines; without an L2 only the sectors that were asked for.
    const bool line = gpu.l2.exists() && !request.uncached && !request.logged;
    request.carried = line ? static_cast<std::int32_t>(device_.lines.size) : request.bytes;
  }
  if (request.intent == Intent::poll || (request.packet && request.polling)) {
    ++device_.counters().memory.flag;
    if (request.look != Look::first || request.packet) ++device_.counters().memory.poll;
  } else if (is_load(request.intent) && request.intent != Intent::state_load) {
    ++device_.counters().memory.data;
  }
  bool hit = false;
  if (gpu.msc.exists()) {
    time = servers_.serve(base + layout.msc + channel, request, time) + layout.model.msc_latency.fs;
    request.spent.charge(Reason::msc, layout.model.msc_latency.fs);
    const Tags::Outcome outcome = gpu.msc.access(request.line, !read);
    ++(outcome.hit ? device_.counters().msc_hits : device_.counters().msc_misses);
    hit = outcome.hit || !read;  // it takes written lines without fetching them
    if (outcome.evicted_dirty) {
      device_.counters().hbm_written += device_.lines.size;
      Server& hbm = device_.server(base + layout.hbm + channel);
      turn_bus(hbm, false, layout.model, time);
      hbm.free = std::max(time, hbm.free) + device_.fabric.service(hbm, device_.lines.size, 0);
      ++device_.counters().hops;
    }
  }
  if (!hit) {
    Server& hbm = device_.server(base + layout.hbm + channel);
    turn_bus(hbm, read, layout.model, time);
    (read ? device_.counters().hbm_read : device_.counters().hbm_written) += request.carried;
    time = servers_.serve(base + layout.hbm + channel, request, time);
    if (read) {
      time += layout.model.hbm_latency.fs;
      request.spent.charge(Reason::hbm, layout.model.hbm_latency.fs);
    }
  }
  return time;
}

// --- Flags. Values change when the slice accepts the update; polls sample when it accepts them.

// What others owe to a request began when it was accepted, but its own time says by now when it is
// done with the look-up, or with the line at the memory controller.
LatencyBreakdown Memory::until_accepted(const Request& request, std::int64_t now) {
  LatencyBreakdown spent = request.spent;
  spent.take_back(request.uncached ? Reason::hbm : Reason::l2, now);
  return spent;
}

void Memory::apply_flag(Request& request, std::int64_t now, std::int64_t done) {
  const Detail& flag = device_.detail(request);
  add_to_semaphore(device_.gpu(request.target).semaphores[index(flag.semaphore)], flag.increment,
                   until_accepted(request, now), tracing_.sender_of(request), now);
  if (device_.monitors) flag_monitors_.notify(flag.semaphore, request, done);
}

void Memory::add_to_semaphore(SemaphoreState& semaphore, std::int64_t increment,
                              const LatencyBreakdown& cause, SpanId by, std::int64_t now) {
  semaphore.value += increment;
  // Whoever waits for this value has it to thank (attribution only; the poll finds out by itself).
  std::erase_if(semaphore.watches, [&](const Watch& watch) {
    Watched& watched = device_.wave(watch.wave).watched[index(watch.index)];
    if (semaphore.value < watched.target) return false;
    watched.expected = false;
    device_.wave(watch.wave).watched[index(watched.first)].news = true;
    watched.cause.time = now;
    watched.cause.spent = cause;
    watched.cause_span = by;
    if (device_.wave(watch.wave).doze.on) skips_.end_doze(watch.wave, now);
    return true;
  });
  if (!semaphore.queues.empty()) copy_queues_.wake_queues(semaphore, cause, by, now);
}

void Memory::sample_poll(Request& request, std::int64_t now, std::int64_t done) {
  if (request.look == Look::arm) {
    request.ready = flag_monitors_.watch(request, done);
    return;
  }
  Wave& wave = device_.wave(request.wave);
  Watched& line = wave.watched[index(request.epoch)];
  const std::int32_t end = std::exchange(line.news, false) ? line.end : request.epoch;
  for (std::int32_t w = request.epoch; w < end; ++w) {
    Watched& watched = wave.watched[index(w)];
    if (watched.satisfied) continue;
    SemaphoreState& semaphore = device_.gpu(request.target).semaphores[index(watched.id.index)];
    if (watched.first_poll < 0) watched.first_poll = now;
    if (semaphore.value < watched.target) {
      line.news = line.news || !watched.expected;  // others have consumed what it waited for
      continue;
    }
    watched.satisfied = true;
    --line.missing;
    --wave.missing;
    if (watched.consume) semaphore.value -= watched.target;
    if (!watched.swap) continue;
    device_.tally().spun = true;  // somebody who spins may go on
    add_to_semaphore(semaphore, 1, until_accepted(request, now), tracing_.span_of(wave), now);
    if (device_.monitors) flag_monitors_.notify(watched.id.index, request, done);
  }
  if (!device_.monitors) return;
  const bool all = line.missing == 0;
  if (device_.model(request.source).sync_wait == machine::WaitPolicy::syncmon) {
    if (!all) flag_monitors_.watch(request, done);
  } else if (all && request.look == Look::recheck) {
    flag_monitors_.stop_watching(request);
  }
}

// --- Packets: LL flags arrive with their data. Every granule holds the flag that was stored last.

void Memory::store_packet(Request& request, std::int64_t now) {
  const Detail& packet = device_.detail(request);
  PacketLine& line = device_.gpu(request.target).packets[request.line];
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
    Cause& cause = device_.detail(device_.request(waiting)).cause;
    cause.time = now;
    cause.spent = until_accepted(request, now);
    if (device_.tracing())
      device_.spans_of(device_.request(waiting)).cause = device_.spans_of(request).sender;
  }
  line.watches.clear();
}

bool Memory::load_packet(std::int32_t id) {
  const Request& request = device_.request(id);
  PacketLine& line = device_.gpu(request.target).packets[request.line];
  const Detail& packet = device_.detail(request);
  const bool ready = (line.granules(packet.packet_flag) & packet.packet_mask) == packet.packet_mask;
  if (!ready && std::ranges::find(line.watches, id) == line.watches.end())
    line.watches.push_back(id);
  return ready;
}

}  // namespace hemiola::sim
