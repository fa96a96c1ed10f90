// Cores: what slices and memory do with a request, however it came there; values of flags and
// packets.

#include <algorithm>
#include <utility>

#include "sim/device/cores.h"
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

std::int32_t Cores::slice_of(int rank, std::int32_t line) const {
  return slice_of(fabric_.layout[index(rank)]->slice_of, line);
}

std::int32_t Cores::channel_of(int rank, std::int64_t line) const {
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  // A GPU without L2 whose slices are its memory channels (a mesh with memory on its edges).
  if (layout.model.l2_size.count == 0 && layout.slices == layout.channels)
    return slice_of(rank, static_cast<std::int32_t>(line));
  const std::int64_t interleave = std::max<std::int64_t>(1, layout.model.hbm_interleave.count);
  return static_cast<std::int32_t>(
      mixed(static_cast<std::uint64_t>(line * line_size_ / interleave)) %
      static_cast<std::uint64_t>(layout.channels));
}

// Clusters share operands, and requests for a line are coalesced in front of the L2: what a slice
// takes for one is that of all it serves together (gemm.l2_rate, as in the model of products).
std::int64_t Cores::operand_time(int rank, std::int64_t bytes) const {
  const machine::GpuModel& model = machine_.model(rank);
  return model.gemm_l2_rate.time_for(bytes * model.l2_slices).fs;
}

std::int64_t Cores::flag_time(int rank) const {
  return std::max<std::int64_t>(1, machine_.model(rank).l2_atomic_time.fs);
}

// A slice takes a request. When its look-up is done.
std::int64_t Cores::accept(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  const int rank = request.place();
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  const std::int32_t number = fabric_.gpu_base[index(rank)] + layout.slice + request.slice;
  std::int64_t departure;
  const bool operand = request.intent == Intent::posted_load && request.target == request.source;
  if (operand || request.intent == Intent::flag) {
    Server& server = fabric_.servers[index(number)];
    server.free = std::max(now, server.free) +
                  (operand ? operand_time(rank, request.bytes) : flag_time(rank));
    departure = server.free;
    ++tally().counters.hops;
    request.spent.charge(Reason::l2, departure - now);
  } else {
    request.carried = request.bytes;
    departure = serve(number, request, now);
  }
  const std::int64_t ready = departure + layout.model.l2_latency.fs;
  request.spent.charge(Reason::l2, layout.model.l2_latency.fs);
  request.accepted = ++gpu(rank).accepted;
  take_effect(id, now, ready);
  return ready;
}

// Values of flags and packets change and are read when a slice accepts a request, of uncached flags
// when the memory controller does. The slice is done with it at `done`.
void Cores::take_effect(std::int32_t id, std::int64_t now, std::int64_t done) {
  Request& request = requests_[index(id)];
  request.stage = Stage::memory;
  if (uncached_ && goes_past_l2(request)) {
    request.uncached = true;
    return;
  }
  if (request.detail >= 0) detail(request).accepted_at = now;
  const bool store = request.intent == Intent::store || request.intent == Intent::member_store;
  if (request.target != request.source &&
      (store || (request.intent == Intent::burst && !request.reads_source)))
    tally().counters.delivered += request.bytes;
  if (request.intent == Intent::burst && !request.reads_source) delivered(request, now);
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
std::int64_t Cores::go_home(Request& request, std::int64_t ready) const {
  request.near = false;
  const std::int64_t way = machine_.model(request.target).noc_partition_latency.fs;
  request.spent.charge(Reason::noc, way);
  return ready + way;
}

// A dirty line that had to leave the L2.
std::int32_t Cores::make_write_back(int rank, std::int32_t line) {
  ++tally().counters.l2_write_backs;
  const std::int32_t id = allocate(false);
  Request& request = requests_[index(id)];
  request.intent = Intent::write_back;
  request.source = request.target = static_cast<std::int16_t>(rank);
  request.line = line;
  request.bytes = static_cast<std::int32_t>(line_size_);
  request.carried = request.bytes;
  return id;
}

// The memory-side cache of the channel where there is one, then the channel itself. When the data
// are there, or taken.
std::int64_t Cores::through_memory(Request& request, std::int64_t now) {
  if (request.train) [[unlikely]]
    return train_through_memory(request, now);
  const int rank = request.place();
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  GpuState& gpu = this->gpu(rank);
  const std::int32_t channel = channel_of(rank, request.line);
  const std::int32_t base = fabric_.gpu_base[index(rank)];
  const bool read =
      is_load(request.intent) || request.reads_source || request.intent == Intent::wake;
  std::int64_t time = now;
  if (request.uncached) {
    time = serve_flag_line(request, now);
    if (request.look == Look::arm) return time;
  }
  if (request.intent != Intent::burst) {
    // The L2 fetches whole lines; without an L2 only the sectors that were asked for.
    const bool line = gpu.l2.exists() && !request.uncached && !request.logged;
    request.carried = line ? static_cast<std::int32_t>(line_size_) : request.bytes;
  }
  if (request.intent == Intent::poll || (request.packet && request.polling)) {
    ++tally().counters.memory.flag;
    if (request.look != Look::first || request.packet) ++tally().counters.memory.poll;
  } else if (is_load(request.intent) && request.intent != Intent::state_load) {
    ++tally().counters.memory.data;
  }
  bool hit = false;
  if (gpu.msc.exists()) {
    time = serve(base + layout.msc + channel, request, time) + layout.model.msc_latency.fs;
    request.spent.charge(Reason::msc, layout.model.msc_latency.fs);
    const Tags::Outcome outcome = gpu.msc.access(request.line, !read);
    ++(outcome.hit ? tally().counters.msc_hits : tally().counters.msc_misses);
    hit = outcome.hit || !read;  // it takes written lines without fetching them
    if (outcome.evicted_dirty) {
      tally().counters.hbm_written += line_size_;
      Server& hbm = fabric_.servers[index(base + layout.hbm + channel)];
      turn_bus(hbm, false, layout.model, time);
      hbm.free = std::max(time, hbm.free) + fabric_.service(hbm, line_size_, 0);
      ++tally().counters.hops;
    }
  }
  if (!hit) {
    Server& hbm = fabric_.servers[index(base + layout.hbm + channel)];
    turn_bus(hbm, read, layout.model, time);
    (read ? tally().counters.hbm_read : tally().counters.hbm_written) += request.carried;
    time = serve(base + layout.hbm + channel, request, time);
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
LatencyBreakdown Cores::until_accepted(const Request& request, std::int64_t now) {
  LatencyBreakdown spent = request.spent;
  spent.take_back(request.uncached ? Reason::hbm : Reason::l2, now);
  return spent;
}

void Cores::apply_flag(Request& request, std::int64_t now, std::int64_t done) {
  const Detail& flag = detail(request);
  add_to_semaphore(gpu(request.target).semaphores[index(flag.semaphore)], flag.increment,
                   until_accepted(request, now), sender_of(request), now);
  if (monitors_) notify(flag.semaphore, request, done);
}

void Cores::add_to_semaphore(SemaphoreState& semaphore, std::int64_t increment,
                             const LatencyBreakdown& cause, SpanId by, std::int64_t now) {
  semaphore.value += increment;
  // Whoever waits for this value has it to thank (attribution only; the poll finds out by itself).
  std::erase_if(semaphore.watches, [&](const Watch& watch) {
    Watched& watched = waves_[index(watch.wave)].watched[index(watch.index)];
    if (semaphore.value < watched.target) return false;
    watched.expected = false;
    waves_[index(watch.wave)].watched[index(watched.first)].news = true;
    watched.cause.time = now;
    watched.cause.spent = cause;
    watched.cause_span = by;
    if (waves_[index(watch.wave)].doze.on) end_doze(watch.wave, now);
    return true;
  });
  if (!semaphore.queues.empty()) wake_queues(semaphore, cause, by, now);
}

void Cores::sample_poll(Request& request, std::int64_t now, std::int64_t done) {
  if (request.look == Look::arm) {
    request.ready = watch(request, done);
    return;
  }
  Wave& wave = waves_[index(request.wave)];
  Watched& line = wave.watched[index(request.epoch)];
  const std::int32_t end = std::exchange(line.news, false) ? line.end : request.epoch;
  for (std::int32_t w = request.epoch; w < end; ++w) {
    Watched& watched = wave.watched[index(w)];
    if (watched.satisfied) continue;
    SemaphoreState& semaphore = gpu(request.target).semaphores[index(watched.id.index)];
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
    tally().spun = true;  // somebody who spins may go on
    add_to_semaphore(semaphore, 1, until_accepted(request, now), span_of(wave), now);
    if (monitors_) notify(watched.id.index, request, done);
  }
  if (!monitors_) return;
  const bool all = line.missing == 0;
  if (policy(request.source) == machine::WaitPolicy::syncmon) {
    if (!all) watch(request, done);
  } else if (all && request.look == Look::recheck) {
    stop_watching(request);
  }
}

// --- Packets: LL flags arrive with their data. Every granule holds the flag that was stored last.

void Cores::store_packet(Request& request, std::int64_t now) {
  const Detail& packet = detail(request);
  PacketLine& line = gpu(request.target).packets[request.line];
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
    Cause& cause = detail(requests_[index(waiting)]).cause;
    cause.time = now;
    cause.spent = until_accepted(request, now);
    if (tracing()) spans_of(requests_[index(waiting)]).cause = spans_of(request).sender;
  }
  line.watches.clear();
}

bool Cores::load_packet(std::int32_t id) {
  const Request& request = requests_[index(id)];
  PacketLine& line = gpu(request.target).packets[request.line];
  const Detail& packet = detail(request);
  const bool ready = (line.granules(packet.packet_flag) & packet.packet_mask) == packet.packet_mask;
  if (!ready && std::ranges::find(line.watches, id) == line.watches.end())
    line.watches.push_back(id);
  return ready;
}

}  // namespace hemiola::sim
