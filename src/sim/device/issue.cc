#include "sim/device/issue.h"

#include <algorithm>
#include <utility>

#include "sim/device/computes.h"
#include "sim/device/copy_engines.h"
#include "sim/device/host.h"
#include "sim/device/multicast.h"
#include "sim/device/residency.h"
#include "sim/device/servers.h"
#include "sim/device/sync.h"
#include "sim/device/tracing.h"
#include "sim/device/wavefronts.h"

namespace hemiola::sim {
namespace {

using program::Span;

}  // namespace

// --- Requests come into being when the CU has a slot for them.

// All of it but its line, what follows from that, and what it carries along.
RequestData Issue::request_like(const Queued& wanted, const Cu& cu) {
  RequestData request;
  request.intent = wanted.intent;
  request.polling = wanted.intent == Intent::poll;
  request.wave = wanted.wave;
  request.source = cu.rank;
  request.target = static_cast<std::int16_t>(wanted.rank);
  request.local = request.target == request.source;
  request.cu = cu.number;
  request.epoch = wanted.epoch;
  request.route = wanted.first_path;
  request.volatile_ = wanted.bypass_l1 || wanted.packet_flag != 0;
  request.packet = wanted.packet_flag != 0;
  return request;
}

[[gnu::always_inline]] inline void Issue::set_line(Request& request, std::int32_t line,
                                                   std::int64_t bytes) const {
  request.line = line;
  request.bytes = static_cast<std::int32_t>(bytes);
  request.size = static_cast<std::uint8_t>(bytes >> device_.lines.sector_shift);
}

std::int32_t Issue::make_request(std::int32_t wave_id, Intent intent, int target, std::int32_t line,
                                 std::int64_t bytes) {
  const Wave& wave = device_.wave(wave_id);
  const Workgroup& group = device_.group(wave.workgroup);
  Queued wanted;
  wanted.wave = wave_id;
  wanted.intent = intent;
  wanted.rank = target;
  wanted.epoch = wave.epoch;
  find_paths(wanted, group.rank);
  const Cu& cu = device_.rank(group.rank).cus[index(group.cu)];
  const std::int32_t id = device_.allocate(request_like(wanted, cu), device_.tally());
  Request& request = device_.request(id);
  request.spent = wave.spent;
  set_line(request, line, bytes);
  request.slice = static_cast<std::int16_t>(device_.slice_of(target, line));
  if (wanted.paths > 1)
    request.route += static_cast<std::int32_t>(machine::select_path(line, wanted.paths));
  return id;
}

void Issue::find_paths(Queued& wanted, int from) {
  if (wanted.rank < 0 || wanted.rank == from) return;
  const Fabric::Paths paths = device_.fabric.paths(from, wanted.rank);
  wanted.first_path = paths.first;
  wanted.paths = paths.count;
}

void Issue::request_bytes(std::int32_t id, const Span& span, std::int64_t from, std::int64_t to,
                          Intent intent, bool last, std::int64_t now) {
  Wave& wave = device_.wave(id);
  Workgroup& group = device_.group(wave.workgroup);
  Queued instruction;
  instruction.wave = id;
  instruction.intent = intent;
  instruction.last = last;
  const bool multicast = is_multicast(intent);
  instruction.rank = multicast ? -1 : span.rank;
  instruction.group = multicast ? span.group : -1;
  // A store that clears needs no flag: those that others wait for differ by repetition.
  instruction.packet_flag = is_packet(span.access) ? span.flag : 0;
  instruction.bypass_l1 = span.bypass_l1;
  if (!is_packet(span.access)) instruction.again = instructions_again(wave, intent);
  instruction.from = from;
  instruction.to = to;
  instruction.epoch = intent == Intent::posted_load ? wave.product_step : wave.epoch;
  const bool remote = instruction.rank != group.rank;
  find_paths(instruction, group.rank);
  const std::int64_t lines = device_.lines.of(to - 1) - device_.lines.of(from) + 1;
  if (intent == Intent::load || intent == Intent::multicast_load) {
    wave.in_flight += static_cast<std::int32_t>(lines);
    // Wavefronts wait for what is in memory of others.
    if (remote && instruction.packet_flag != 0 && device_.tallies.size() > 1)
      throw NeedsOneWorker{};
  } else if (intent == Intent::posted_load) {
    Computes::product_step(group, wave.product_step).loads += lines;
  }
  account(id, intent, remote, lines, device_.lines.in_sectors(from, to));
  Cu& cu = device_.rank(group.rank).cus[index(group.cu)];
  if (cu.queue.empty()) {
    make_head(instruction, cu);
    issue_lines(instruction, cu, wave.spent, INT64_MAX, now, device_.tally());
  }
  if (instruction.from < instruction.to) cu.queue.push_back(instruction);
}

// --- Issue: one request after the other, in order, while the CU has slots.

std::int32_t& Issue::unacknowledged(Workgroup& group, std::int32_t epoch) {
  const std::size_t at = index(epoch - group.first_epoch);
  if (at >= group.stores.size()) group.stores.resize(at + 1);
  return group.stores[at];
}

// Requests of a wavefront, of `bytes` together. It does not go on before its last store is issued,
// so stores may count before they are.
void Issue::account(std::int32_t wave_id, Intent intent, bool remote, std::int64_t requests,
                    std::int64_t bytes) {
  Counters& counters = device_.counters();
  if (intent == Intent::poll || intent == Intent::state_load || intent == Intent::state_store)
    return;
  if (intent != Intent::flag) counters.moved += bytes;
  if (is_load(intent)) {
    counters.loads += requests;
    if (remote) counters.remote_loads += requests;
    return;
  }
  Wave& wave = device_.wave(wave_id);
  Workgroup& group = device_.group(wave.workgroup);
  unacknowledged(group, wave.epoch) += static_cast<std::int32_t>(requests);
  wave.own_stores += static_cast<std::int32_t>(requests);
  device_.kernel(group.kernel).stores += requests;
  if (intent != Intent::flag) counters.stores += requests;
  if (remote && intent == Intent::store) {
    counters.injected += bytes;
    counters.remote_stores += requests;
  }
}

/// Further instructions that a wavefront needs for the plain memory of a move of packets.
std::int32_t Issue::instructions_again(Wave& wave, Intent intent) {
  const Workgroup& group = device_.group(wave.workgroup);
  const program::Kernel& kernel = device_.code_of(group);
  const std::int32_t each = is_load(intent) ? kernel.load_bytes : kernel.store_bytes;
  if (each == 0) return 0;
  const std::int64_t owned =
      wavefronts_.step_of(wave)->grain.wave / device_.model(group.rank).cu_wavefront_size;
  if (owned >= kernel.grain) return 0;  // no packets
  return static_cast<std::int32_t>(std::max<std::int64_t>(owned / each - 1, 0));
}

/// Of packets, and of multicasts: bytes [low, high) of a line.
void Issue::add_detail_of(const Queued& instruction, Request& request, std::int64_t low,
                          std::int64_t high) {
  Detail& detail = device_.add_detail(request);
  if (instruction.packet_flag != 0) {
    detail.packet_flag = instruction.packet_flag;
    const std::int64_t first = low % device_.lines.size / 8,
                       last = (high - 1) % device_.lines.size / 8;
    detail.packet_mask = ~std::uint64_t{0} << first & ~std::uint64_t{0} >> (63 - last);
    if (device_.tracing() && !is_load(request.intent))
      device_.spans_of(request).sender = tracing_.span_of(device_.wave(request.wave));
  }
  if (instruction.group >= 0) {
    detail.group = instruction.group;
    request.route = static_cast<std::int32_t>(machine::select_path(
        request.line, std::ssize(multicast_.planes(instruction.group, request.source))));
  }
}

// For the requests of the first instruction in a CU's queue, or of one that finds it empty.
void Issue::make_head(const Queued& instruction, Cu& cu) {
  Issuing& head = cu.head;
  head.like = request_like(instruction, cu);
  const auto paths = static_cast<std::uint32_t>(std::max(1, instruction.paths));
  if (head.paths.divisor() != paths) head.paths = Modulo(paths);
  if (instruction.rank >= 0) head.slices = device_.layout(instruction.rank).slice_of;
  head.gate = gate_of(head.like, cu);
  cu.head_made = true;
}

// That for the first line of what is left of it.
[[gnu::always_inline]] inline std::int32_t Issue::next_request(Queued& instruction,
                                                               const Issuing& all,
                                                               const LatencyBreakdown& spent,
                                                               Tally& tally) {
  const std::int64_t low = instruction.from;
  const std::int32_t line = device_.lines.of(low);
  const std::int64_t high =
      std::min(instruction.to, (line + std::int64_t{1}) << device_.lines.shift);
  const std::int32_t id = device_.allocate(all.like, tally);
  Request& request = device_.request(id);
  request.spent = spent;
  set_line(request, line, device_.lines.in_sectors(low, high));
  request.last_store = instruction.last && high == instruction.to;
  request.slice = static_cast<std::int16_t>(device_.slice_of(all.slices, line));
  if (instruction.paths > 1)
    request.route += static_cast<std::int32_t>(
        all.paths(static_cast<std::uint32_t>(machine::path_number(line))));
  if (instruction.packet_flag != 0 || instruction.group >= 0) [[unlikely]]
    add_detail_of(instruction, request, low, high);
  instruction.from = high;
  return id;
}

Gate Issue::gate_of(const RequestData& request, Cu& cu) {
  const bool load = is_load(request.intent);
  Gate gate{.room = load ? &cu.load_room : &cu.store_room};
  if (!request.local) {  // what goes to peers, or comes from them, keeps to the rate of a CU
    const std::vector<std::int64_t>& costs = device_.rank(cu.rank).peer_costs;
    if (costs.empty()) return gate;
    gate.costs = costs.data();
    gate.free = load ? &cu.peer_in : &cu.peer_out;
  } else if (request.intent == Intent::load) {
    // Plain local loads look into the L1, those into shared memory do not.
    if (!request.volatile_ && cu.l1.exists()) gate.l1 = &cu.l1;
    const L2& l2 = device_.gpu(cu.rank).l2;
    if (!request.packet && l2.has_copies()) gate.l2 = &l2;
  }
  return gate;
}

[[gnu::always_inline]] inline void Issue::grant(const Gate& gate, std::int32_t id, Request& request,
                                                Cu& cu, std::int64_t now, std::int32_t again,
                                                Tally& tally) {
  std::int64_t departure = std::max(now, cu.issue_free) + cu.issue_interval;
  if (gate.costs != nullptr) {
    departure = std::max(departure, *gate.free);
    *gate.free = departure + gate.costs[request.size];
  }
  cu.issue_free = departure;
  if (again > 0) [[unlikely]]
    cu.issue_free += again * device_.model(request.source).noc_cu_rate.time_for(request.bytes).fs;
  request.spent.charge(Reason::issue, departure - now);
  ++tally.counters.hops;
  --*gate.room;
  if (request.last_store) {
    Wave& wave = device_.wave(request.wave);
    wave.spent = request.spent;
    transport_.push(departure, kWave, request.wave, 0, wave.tag);
  }
  if (gate.l1 != nullptr) {
    const Tags::Outcome outcome = gate.l1->access(request.line, false);
    ++(outcome.hit ? tally.counters.l1_hits : tally.counters.l1_misses);
    if (outcome.hit) {
      const std::int64_t latency = device_.model(request.source).l1_latency.fs;
      request.spent.charge(Reason::l1, latency);
      transport_.push(departure + latency, kComplete, id, 0,
                      servers_.complete_tag(request.source, Servers::Return::l1, request.cu));
      return;
    }
  }
  if (gate.l2 != nullptr) request.near = gate.l2->may_copy(request.cu, request.slice);
  transport_.depart(id, request, departure);
}

// The first lines of what is left of the instruction at the head, as many as the CU has slots for.
void Issue::issue_lines(Queued& instruction, Cu& cu, const LatencyBreakdown& spent,
                        std::int64_t most, std::int64_t now, Tally& tally) {
  const Issuing& all = cu.head;
  for (; most > 0 && *all.gate.room > 0 && instruction.from < instruction.to; --most) {
    const std::int32_t id = next_request(instruction, all, spent, tally);
    grant(all.gate, id, device_.request(id), cu, now, instruction.again, tally);
  }
}

void Issue::issue(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  Cu& cu = device_.rank(request.source).cus[index(request.cu)];
  account(request.wave, request.intent, request.target != request.source, 1, request.bytes);
  if (!cu.queue.empty() || !has_room(cu, request.intent)) {
    Queued queued;
    queued.request = id;
    queued.wave = request.wave;
    queued.intent = request.intent;
    cu.queue.push_back(queued);
    return;
  }
  issue_made(id, cu, now, device_.tally());
}

void Issue::issue_made(std::int32_t id, Cu& cu, std::int64_t now, Tally& tally) {
  Request& request = device_.request(id);
  grant(gate_of(request, cu), id, request, cu, now, 0, tally);
}

[[gnu::always_inline]] inline void Issue::free_slot(Cu& cu, bool load,
                                                    const LatencyBreakdown& cause, std::int64_t now,
                                                    Tally& tally) {
  ++(load ? cu.load_room : cu.store_room);
  if (!cu.queue.empty()) issue_queued(cu, cause, now, tally);
}

void Issue::issue_queued(Cu& cu, const LatencyBreakdown& cause, std::int64_t now, Tally& tally) {
  while (!cu.queue.empty()) {
    Queued& front = cu.queue.front();
    if (!has_room(cu, front.intent)) return;
    // It waited for this slot.
    if (front.request < 0) {
      if (!cu.head_made) make_head(front, cu);
      issue_lines(front, cu, cause, 1, now, tally);
    } else {
      device_.request(front.request).spent = cause;
      issue_made(front.request, cu, now, tally);
    }
    if (front.from < front.to) continue;
    cu.queue.pop_front();
    cu.head_made = false;
  }
}

// --- Completion at the issuer.

void Issue::complete(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  if (request.intent == Intent::burst) {
    copy_engines_.burst_done(id, now);
    return;
  }
  if (request.wave < 0) {  // a copy engine's flag: nobody waits for its acknowledgement
    device_.release(id);
    return;
  }
  if (request.intent == Intent::wake) {
    sync_.woken(id, now);
    return;
  }
  Tally& tally = device_.tally();
  free_slot(device_.rank(request.source).cus[index(request.cu)], is_load(request.intent),
            request.spent, now, tally);
  const std::int32_t wave_id = request.wave;
  Wave& wave = device_.wave(wave_id);
  switch (request.intent) {
    case Intent::load:
    case Intent::multicast_load: {
      if (!request.ready) {
        start_polling(id, now);
        return;
      }
      if (request.polling && device_.detail(request).cause.time >= 0) {
        const Detail& packet = device_.detail(request);
        request.spent = device_.options.replay == nullptr
                            ? packet.cause.spent
                            : sync_.peer_waits().ended(packet.cause.spent, wave.spent);
        request.spent.charge(Reason::poll, packet.accepted_at - packet.cause.time);
        charge_return(request.spent, request.source, now - packet.accepted_at);
        if (device_.tracing())
          tracing_.released(wave, device_.spans_of(request).cause, packet.cause.time);
      }
      const bool last = --wave.in_flight == 0;
      if (last) wave.spent = request.spent;
      device_.give_back(id, request, tally);
      if (last) wavefronts_.after_loads(wave_id, now);
      return;
    }
    case Intent::poll:
      sync_.poll_returned(id, now);
      return;
    case Intent::posted_load:
      computes_.operand_loaded(wave.workgroup, request, now);
      break;
    case Intent::state_load:
    case Intent::state_store:
      residency_.state_moved(wave.workgroup, request.spent, now);
      break;
    default:
      acknowledged(request, now);
      break;
  }
  device_.give_back(id, request, tally);
}

void Issue::charge_return(LatencyBreakdown& spent, int rank, std::int64_t fs) const {
  const std::int64_t l2 = std::min(fs, device_.model(rank).l2_latency.fs);
  spent.charge(Reason::l2, l2);
  spent.charge(Reason::noc, fs - l2);
}

// A packet load found old flags: the same request goes out again, and counts as a poll from now on.
void Issue::start_polling(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  ++device_.counters().packet_retries;
  if (request.target != request.source) ++device_.counters().remote_retries;
  device_.counters().moved -= request.bytes;
  if (!request.polling) {
    request.polling = true;
    --device_.tally().active;
  }
  const std::int64_t interval =
      std::max<std::int64_t>(1, device_.model(request.source).sync_poll_interval.fs);
  request.spent.charge(Reason::poll, interval);
  transport_.push(now + interval, kRetry, id, 1, device_.wave(request.wave).tag);
}

void Issue::acknowledged(Request& request, std::int64_t now) {
  Wave& wave = device_.wave(request.wave);
  Workgroup& group = device_.group(wave.workgroup);
  --group.stores[index(request.epoch - group.first_epoch)];
  if (request.epoch == wave.epoch) --wave.own_stores;
  const std::int64_t left = --device_.kernel(group.kernel).stores;
  if (group.draining >= 0 && drained(device_.wave(group.draining))) {
    const std::int32_t lead = std::exchange(group.draining, -1);
    device_.wave(lead).spent = request.spent;
    wavefronts_.run_wave(lead, now);
  }
  if (left == 0) host_.kernel_maybe_done(group.kernel, request.spent, now);
}

bool Issue::drained(const Wave& wave) const {
  if (wave.own_stores > 0) return false;
  const Workgroup& group = device_.group(wave.workgroup);
  for (std::int32_t e = group.first_epoch; e < wave.epoch; ++e)
    if (index(e - group.first_epoch) < group.stores.size() &&
        group.stores[index(e - group.first_epoch)] > 0)
      return false;
  return true;
}

}  // namespace hemiola::sim
