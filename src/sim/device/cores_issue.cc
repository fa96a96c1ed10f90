// Cores: requests are issued by CUs, and complete at their wavefronts.

#include <algorithm>
#include <utility>

#include "sim/device/cores.h"
#include "sim/model/large_code.h"

namespace hemiola::sim {
namespace {

using program::Span;

}  // namespace

// --- Code of large kernels.

// The first wavefront that comes to an operation that needs it asks for the code, for all.
void Cores::want_code(Workgroup& group, const program::Primitive& primitive) {
  const KernelRun& run = kernels_[index(group.kernel)];
  const program::Kernel& kernel = program_.kernels()[index(run.kernel)];
  const program::Op& op = program_.bodies()[index(group.body)].ops[index(primitive.op)];
  if (group.fetched || !needs_large_code(*program_.frame(run.frame).program, kernel, op)) return;
  group.fetched = true;
  const machine::GpuModel& model = machine_.model(group.rank);
  if ((model.cu_code_fetch + model.cu_code_fetch_interval).fs > 1)
    group.code_pieces = kernel.large_code * kCodePieces;
}

// The next piece of it, once the last one is there. The pieces of workgroups that fetch at the same
// time alternate, so that these end together.
void Cores::fetch_code(Workgroup& group, std::int64_t now) {
  const machine::GpuModel& model = machine_.model(group.rank);
  while (group.code_pieces > 0 && group.code_ready <= now) {
    const std::int64_t piece = --group.code_pieces % kCodePieces;
    const auto share = [&](Time all) {
      return all.fs * (piece + 1) / kCodePieces - all.fs * piece / kCodePieces;
    };
    std::int64_t& free = ranks_[index(group.rank)].code_fetches;
    free = std::max(free, now) + share(model.cu_code_fetch_interval);
    group.code_ready = free + share(model.cu_code_fetch);
  }
}

// --- Requests come into being when the CU has a slot for them.

[[gnu::always_inline]] inline void Cores::give_back(std::int32_t id, Request& request,
                                                    Tally& tally) {
  if (!request.polling) --tally.active;
  if (request.detail >= 0) details_.give_back(request.detail);
  request.spent.clear();  // others may share what it holds
  requests_.give_back(id);
}

void Cores::release(std::int32_t id) {
  give_back(id, requests_[index(id)], tally());
}

// All of it but its line, what follows from that, and what it carries along.
RequestData Cores::request_like(const Queued& wanted, const Cu& cu) {
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

[[gnu::always_inline]] inline void Cores::set_line(Request& request, std::int32_t line,
                                                   std::int64_t bytes) const {
  request.line = line;
  request.bytes = static_cast<std::int32_t>(bytes);
  request.size = static_cast<std::uint8_t>(bytes >> sector_shift_);
}

std::int32_t Cores::make_request(std::int32_t wave_id, Intent intent, int target, std::int32_t line,
                                 std::int64_t bytes) {
  const Wave& wave = waves_[index(wave_id)];
  const Workgroup& group = groups_[index(wave.workgroup)];
  Queued wanted;
  wanted.wave = wave_id;
  wanted.intent = intent;
  wanted.rank = target;
  wanted.epoch = wave.epoch;
  find_paths(wanted, group.rank);
  const Cu& cu = ranks_[index(group.rank)].cus[index(group.cu)];
  const std::int32_t id = allocate(request_like(wanted, cu), tally());
  Request& request = requests_[index(id)];
  request.spent = wave.spent;
  set_line(request, line, bytes);
  request.slice = static_cast<std::int16_t>(slice_of(target, line));
  if (wanted.paths > 1)
    request.route += static_cast<std::int32_t>(machine::select_path(line, wanted.paths));
  return id;
}

void Cores::find_paths(Queued& wanted, int from) {
  if (wanted.rank < 0 || wanted.rank == from) return;
  const Fabric::Paths paths = fabric_.paths(from, wanted.rank);
  wanted.first_path = paths.first;
  wanted.paths = paths.count;
}

// An instruction, lines in order.
void Cores::request_bytes(std::int32_t id, const Span& span, std::int64_t from, std::int64_t to,
                          Intent intent, bool last, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  Workgroup& group = groups_[index(wave.workgroup)];
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
  const std::int64_t lines = line_of(to - 1) - line_of(from) + 1;
  if (intent == Intent::load || intent == Intent::multicast_load) {
    wave.in_flight += static_cast<std::int32_t>(lines);
    // Wavefronts wait for what is in memory of others.
    if (remote && instruction.packet_flag != 0 && tallies_.size() > 1) throw NeedsOneWorker{};
  } else if (intent == Intent::posted_load) {
    product_step(group, wave.product_step).loads += lines;
  }
  account(id, intent, remote, lines, in_sectors(from, to));
  Cu& cu = ranks_[index(group.rank)].cus[index(group.cu)];
  if (cu.queue.empty()) {
    make_head(instruction, cu);
    issue_lines(instruction, cu, wave.spent, INT64_MAX, now, tally());
  }
  if (instruction.from < instruction.to) cu.queue.push_back(instruction);
}

// --- Issue: one request after the other, in order, while the CU has slots.

/// How many of an epoch's stores are.
std::int32_t& Cores::unacknowledged(Workgroup& group, std::int32_t epoch) {
  const std::size_t at = index(epoch - group.first_epoch);
  if (at >= group.stores.size()) group.stores.resize(at + 1);
  return group.stores[at];
}

// Requests of a wavefront, of `bytes` together. It does not go on before its last store is issued,
// so stores may count before they are.
void Cores::account(std::int32_t wave_id, Intent intent, bool remote, std::int64_t requests,
                    std::int64_t bytes) {
  Counters& counters = tally().counters;
  if (intent == Intent::poll || intent == Intent::state_load || intent == Intent::state_store)
    return;
  if (intent != Intent::flag) counters.moved += bytes;
  if (is_load(intent)) {
    counters.loads += requests;
    if (remote) counters.remote_loads += requests;
    return;
  }
  Wave& wave = waves_[index(wave_id)];
  Workgroup& group = groups_[index(wave.workgroup)];
  unacknowledged(group, wave.epoch) += static_cast<std::int32_t>(requests);
  wave.own_stores += static_cast<std::int32_t>(requests);
  kernels_[index(group.kernel)].stores += requests;
  if (intent != Intent::flag) counters.stores += requests;
  if (remote && intent == Intent::store) {
    counters.injected += bytes;
    counters.remote_stores += requests;
  }
}

/// Further instructions that a wavefront needs for the plain memory of a move of packets.
std::int32_t Cores::instructions_again(Wave& wave, Intent intent) {
  const Workgroup& group = groups_[index(wave.workgroup)];
  const program::Kernel& kernel = program_.kernels()[index(kernels_[index(group.kernel)].kernel)];
  const std::int32_t each = is_load(intent) ? kernel.load_bytes : kernel.store_bytes;
  if (each == 0) return 0;
  const std::int64_t owned =
      step_of(wave)->grain.wave / machine_.model(group.rank).cu_wavefront_size;
  if (owned >= kernel.grain) return 0;  // no packets
  return static_cast<std::int32_t>(std::max<std::int64_t>(owned / each - 1, 0));
}

/// Of packets, and of multicasts: bytes [low, high) of a line.
void Cores::add_detail_of(const Queued& instruction, Request& request, std::int64_t low,
                          std::int64_t high) {
  Detail& detail = add_detail(request);
  if (instruction.packet_flag != 0) {
    detail.packet_flag = instruction.packet_flag;
    const std::int64_t first = low % line_size_ / 8, last = (high - 1) % line_size_ / 8;
    detail.packet_mask = ~std::uint64_t{0} << first & ~std::uint64_t{0} >> (63 - last);
    if (tracing() && !is_load(request.intent))
      spans_of(request).sender = span_of(waves_[index(request.wave)]);
  }
  if (instruction.group >= 0) {
    detail.group = instruction.group;
    request.route = static_cast<std::int32_t>(
        machine::select_path(request.line, std::ssize(planes(instruction.group, request.source))));
  }
}

// For the requests of the first instruction in a CU's queue, or of one that finds it empty.
void Cores::make_head(const Queued& instruction, Cu& cu) {
  Issuing& head = cu.head;
  head.like = request_like(instruction, cu);
  const auto paths = static_cast<std::uint32_t>(std::max(1, instruction.paths));
  if (head.paths.divisor() != paths) head.paths = Modulo(paths);
  if (instruction.rank >= 0) head.slices = fabric_.layout[index(instruction.rank)]->slice_of;
  head.gate = gate_of(head.like, cu);
  cu.head_made = true;
}

// That for the first line of what is left of it.
[[gnu::always_inline]] inline std::int32_t Cores::next_request(Queued& instruction,
                                                               const Issuing& all,
                                                               const LatencyBreakdown& spent,
                                                               Tally& tally) {
  const std::int64_t low = instruction.from;
  const std::int32_t line = line_of(low);
  const std::int64_t high = std::min(instruction.to, (line + std::int64_t{1}) << line_shift_);
  const std::int32_t id = allocate(all.like, tally);
  Request& request = requests_[index(id)];
  request.spent = spent;
  set_line(request, line, in_sectors(low, high));
  request.last_store = instruction.last && high == instruction.to;
  request.slice = static_cast<std::int16_t>(slice_of(all.slices, line));
  if (instruction.paths > 1)
    request.route += static_cast<std::int32_t>(
        all.paths(static_cast<std::uint32_t>(machine::path_number(line))));
  if (instruction.packet_flag != 0 || instruction.group >= 0) [[unlikely]]
    add_detail_of(instruction, request, low, high);
  instruction.from = high;
  return id;
}

Gate Cores::gate_of(const RequestData& request, Cu& cu) {
  const bool load = is_load(request.intent);
  Gate gate{.room = load ? &cu.load_room : &cu.store_room};
  if (!request.local) {  // what goes to peers, or comes from them, keeps to the rate of a CU
    const std::vector<std::int64_t>& costs = ranks_[index(cu.rank)].peer_costs;
    if (costs.empty()) return gate;
    gate.costs = costs.data();
    gate.free = load ? &cu.peer_in : &cu.peer_out;
  } else if (request.intent == Intent::load) {
    // Plain local loads look into the L1, those into shared memory do not.
    if (!request.volatile_ && cu.l1.exists()) gate.l1 = &cu.l1;
    const L2& l2 = gpu(cu.rank).l2;
    if (!request.packet && l2.has_copies()) gate.l2 = &l2;
  }
  return gate;
}

[[gnu::always_inline]] inline void Cores::grant(const Gate& gate, std::int32_t id, Request& request,
                                                Cu& cu, std::int64_t now, std::int32_t again,
                                                Tally& tally) {
  std::int64_t departure = std::max(now, cu.issue_free) + cu.issue_interval;
  if (gate.costs != nullptr) {
    departure = std::max(departure, *gate.free);
    *gate.free = departure + gate.costs[request.size];
  }
  cu.issue_free = departure;
  if (again > 0) [[unlikely]]
    cu.issue_free += again * machine_.model(request.source).noc_cu_rate.time_for(request.bytes).fs;
  request.spent.charge(Reason::issue, departure - now);
  ++tally.counters.hops;
  --*gate.room;
  if (request.last_store) {
    Wave& wave = waves_[index(request.wave)];
    wave.spent = request.spent;
    push(departure, kWave, request.wave, 0, wave.tag);
  }
  if (gate.l1 != nullptr) {
    const Tags::Outcome outcome = gate.l1->access(request.line, false);
    ++(outcome.hit ? tally.counters.l1_hits : tally.counters.l1_misses);
    if (outcome.hit) {
      const std::int64_t latency = machine_.model(request.source).l1_latency.fs;
      request.spent.charge(Reason::l1, latency);
      push(departure + latency, kComplete, id, 0,
           complete_tag(request.source, Return::l1, request.cu));
      return;
    }
  }
  if (gate.l2 != nullptr) request.near = gate.l2->may_copy(request.cu, request.slice);
  depart(id, request, departure);
}

// The first lines of what is left of the instruction at the head, as many as the CU has slots for.
void Cores::issue_lines(Queued& instruction, Cu& cu, const LatencyBreakdown& spent,
                        std::int64_t most, std::int64_t now, Tally& tally) {
  const Issuing& all = cu.head;
  for (; most > 0 && *all.gate.room > 0 && instruction.from < instruction.to; --most) {
    const std::int32_t id = next_request(instruction, all, spent, tally);
    grant(all.gate, id, requests_[index(id)], cu, now, instruction.again, tally);
  }
}

// A request that exists already: a flag, a poll, a packet load that is repeated.
void Cores::issue(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  Cu& cu = ranks_[index(request.source)].cus[index(request.cu)];
  account(request.wave, request.intent, request.target != request.source, 1, request.bytes);
  if (!cu.queue.empty() || !has_room(cu, request.intent)) {
    Queued queued;
    queued.request = id;
    queued.wave = request.wave;
    queued.intent = request.intent;
    cu.queue.push_back(queued);
    return;
  }
  issue_made(id, cu, now, tally());
}

void Cores::issue_made(std::int32_t id, Cu& cu, std::int64_t now, Tally& tally) {
  Request& request = requests_[index(id)];
  grant(gate_of(request, cu), id, request, cu, now, 0, tally);
}

[[gnu::always_inline]] inline void Cores::free_slot(Cu& cu, bool load,
                                                    const LatencyBreakdown& cause, std::int64_t now,
                                                    Tally& tally) {
  ++(load ? cu.load_room : cu.store_room);
  if (!cu.queue.empty()) issue_queued(cu, cause, now, tally);
}

void Cores::issue_queued(Cu& cu, const LatencyBreakdown& cause, std::int64_t now, Tally& tally) {
  while (!cu.queue.empty()) {
    Queued& front = cu.queue.front();
    if (!has_room(cu, front.intent)) return;
    // It waited for this slot.
    if (front.request < 0) {
      if (!cu.head_made) make_head(front, cu);
      issue_lines(front, cu, cause, 1, now, tally);
    } else {
      requests_[index(front.request)].spent = cause;
      issue_made(front.request, cu, now, tally);
    }
    if (front.from < front.to) continue;
    cu.queue.pop_front();
    cu.head_made = false;
  }
}

// --- Completion at the issuer.

void Cores::complete(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  if (request.intent == Intent::burst) {
    burst_done(id, now);
    return;
  }
  if (request.wave < 0) {  // a copy engine's flag: nobody waits for its acknowledgement
    release(id);
    return;
  }
  if (request.intent == Intent::wake) {
    woken(id, now);
    return;
  }
  Tally& tally = this->tally();
  free_slot(ranks_[index(request.source)].cus[index(request.cu)], is_load(request.intent),
            request.spent, now, tally);
  const std::int32_t wave_id = request.wave;
  Wave& wave = waves_[index(wave_id)];
  switch (request.intent) {
    case Intent::load:
    case Intent::multicast_load: {
      if (!request.ready) {
        start_polling(id, now);
        return;
      }
      if (request.polling && detail(request).cause.time >= 0) {
        const Detail& packet = detail(request);
        request.spent = options_.replay == nullptr
                            ? packet.cause.spent
                            : peer_waits_.ended(packet.cause.spent, wave.spent);
        request.spent.charge(Reason::poll, packet.accepted_at - packet.cause.time);
        charge_return(request.spent, request.source, now - packet.accepted_at);
        if (tracing()) released(wave, spans_of(request).cause, packet.cause.time);
      }
      const bool last = --wave.in_flight == 0;
      if (last) wave.spent = request.spent;
      give_back(id, request, tally);
      if (last) after_loads(wave_id, now);
      return;
    }
    case Intent::poll:
      poll_returned(id, now);
      return;
    case Intent::posted_load:
      operand_loaded(wave.workgroup, request, now);
      break;
    case Intent::state_load:
    case Intent::state_store:
      state_moved(wave.workgroup, request.spent, now);
      break;
    default:
      acknowledged(request, now);
      break;
  }
  give_back(id, request, tally);
}

// From a slice's acceptance of a poll to its return: the look-up, the rest is the way back.
void Cores::charge_return(LatencyBreakdown& spent, int rank, std::int64_t fs) const {
  const std::int64_t l2 = std::min(fs, machine_.model(rank).l2_latency.fs);
  spent.charge(Reason::l2, l2);
  spent.charge(Reason::noc, fs - l2);
}

// A packet load found old flags: the same request goes out again, and counts as a poll from now on.
void Cores::start_polling(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  ++tally().counters.packet_retries;
  if (request.target != request.source) ++tally().counters.remote_retries;
  tally().counters.moved -= request.bytes;
  if (!request.polling) {
    request.polling = true;
    --tally().active;
  }
  const std::int64_t interval =
      std::max<std::int64_t>(1, machine_.model(request.source).sync_poll_interval.fs);
  request.spent.charge(Reason::poll, interval);
  push(now + interval, kRetry, id, 1, waves_[index(request.wave)].tag);
}

void Cores::acknowledged(Request& request, std::int64_t now) {
  Wave& wave = waves_[index(request.wave)];
  Workgroup& group = groups_[index(wave.workgroup)];
  --group.stores[index(request.epoch - group.first_epoch)];
  if (request.epoch == wave.epoch) --wave.own_stores;
  const std::int64_t left = --kernels_[index(group.kernel)].stores;
  if (group.draining >= 0 && drained(waves_[index(group.draining)])) {
    const std::int32_t lead = std::exchange(group.draining, -1);
    waves_[index(lead)].spent = request.spent;
    run_wave(lead, now);
  }
  if (left == 0) kernel_maybe_done(group.kernel, request.spent, now);
}

// What a release waits for: stores of the whole workgroup before its last sync, and the wavefront's
// own.
bool Cores::drained(const Wave& wave) const {
  if (wave.own_stores > 0) return false;
  const Workgroup& group = groups_[index(wave.workgroup)];
  for (std::int32_t e = group.first_epoch; e < wave.epoch; ++e)
    if (index(e - group.first_epoch) < group.stores.size() &&
        group.stores[index(e - group.first_epoch)] > 0)
      return false;
  return true;
}

}  // namespace hemiola::sim
