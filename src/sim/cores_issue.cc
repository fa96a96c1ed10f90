// Cores: requests are issued by CUs, and complete at their wavefronts.

#include <algorithm>
#include <utility>

#include "sim/cores.h"
#include "sim/large_code.h"

namespace hemiola::sim {
// --- Code of large kernels.

// The first wavefront that comes to an operation that needs it asks for the code, for all.
void Cores::want_code(Workgroup& group, const program::Primitive& primitive) {
  const program::Kernel& kernel = program_.kernels[index(kernels_[index(group.kernel)].kernel)];
  const program::Op& op = program_.bodies[index(group.body)].ops[index(primitive.op)];
  if (group.fetched || !needs_large_code(program_, kernel, op)) return;
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

// --- Issue: one request after the other, in order, while the CU has slots.

/// How many of an epoch's stores are.
std::int32_t& Cores::unacknowledged(Workgroup& group, std::int32_t epoch) {
  const std::size_t at = index(epoch - group.first_epoch);
  if (at >= group.stores.size()) group.stores.resize(at + 1);
  return group.stores[at];
}

void Cores::account(Request& request) {
  if (request.intent == Intent::state_load || request.intent == Intent::state_store) return;
  if (request.intent != Intent::poll && request.intent != Intent::flag)
    tally().counters.moved += request.bytes;
  if (is_load(request.intent)) {
    if (request.intent == Intent::poll) return;
    ++tally().counters.loads;
    if (request.target != request.source) ++tally().counters.remote_loads;
    return;
  }
  Workgroup& group = groups_[index(waves_[index(request.wave)].workgroup)];
  ++unacknowledged(group, request.epoch);
  ++waves_[index(request.wave)].own_stores;
  ++kernels_[index(group.kernel)].stores;
  if (request.intent != Intent::flag) ++tally().counters.stores;
  if (request.target != request.source && request.intent == Intent::store) {
    tally().counters.injected += request.bytes;
    ++tally().counters.remote_stores;
  }
}

// A request that exists already: a flag, a poll, a packet load that is repeated.
void Cores::issue(std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  Cu& cu = ranks_[index(request.source)].cus[index(request.cu)];
  account(request);
  if (!cu.queue.empty() || !has_room(cu, request.intent)) {
    Queued queued;
    queued.request = id;
    queued.wave = request.wave;
    queued.intent = request.intent;
    cu.queue.push_back(queued);
    return;
  }
  grant(id, cu, now);
}

// What goes to peers, or comes back from them, keeps to the rate of a CU.
std::int64_t Cores::paced(const Request& request, Cu& cu, std::int64_t departure) const {
  const std::vector<std::int64_t>& costs = ranks_[index(request.source)].peer_costs;
  if (costs.empty() || request.target == request.source) return departure;
  std::int64_t& free = is_load(request.intent) ? cu.peer_in : cu.peer_out;
  departure = std::max(departure, free);
  free = departure + costs[index(request.bytes >> sector_shift_)];
  return departure;
}

/// Further instructions that a wavefront needs for the plain memory of a move of packets.
std::int32_t Cores::instructions_again(Wave& wave, Intent intent) {
  const Workgroup& group = groups_[index(wave.workgroup)];
  const program::Kernel& kernel = program_.kernels[index(kernels_[index(group.kernel)].kernel)];
  const std::int32_t each = is_load(intent) ? kernel.load_bytes : kernel.store_bytes;
  if (each == 0) return 0;
  const std::int64_t owned =
      step_of(wave)->grain.wave / machine_.model(group.rank).cu_wavefront_size;
  if (owned >= kernel.grain) return 0;  // no packets
  return static_cast<std::int32_t>(std::max<std::int64_t>(owned / each - 1, 0));
}

void Cores::grant(std::int32_t id, Cu& cu, std::int64_t now, std::int32_t again) {
  Request& request = requests_[index(id)];
  const std::int64_t departure =
      paced(request, cu, std::max(now, cu.issue_free) + cu.issue_interval);
  cu.issue_free = departure;
  if (again > 0)
    cu.issue_free += again * machine_.model(request.source).noc_cu_rate.time_for(request.bytes).fs;
  request.spent.charge(Reason::issue, departure - now);
  ++tally().counters.hops;
  --(is_load(request.intent) ? cu.load_room : cu.store_room);
  if (request.last_store) {
    Wave& wave = waves_[index(request.wave)];
    wave.spent = request.spent;
    push(departure, kWave, request.wave, 0, wave.tag);
  }
  // Plain local loads look into the L1, those into shared memory do not.
  if (request.intent == Intent::load && request.target == request.source && !request.volatile_ &&
      cu.l1.exists()) {
    const Tags::Outcome outcome = cu.l1.access(request.line, false);
    ++(outcome.hit ? tally().counters.l1_hits : tally().counters.l1_misses);
    if (outcome.hit) {
      const std::int64_t latency = machine_.model(request.source).l1_latency.fs;
      request.spent.charge(Reason::l1, latency);
      push(departure + latency, kComplete, id, 0,
           complete_tag(request.source, Return::l1, request.cu));
      return;
    }
  }
  request.near = request.intent == Intent::load && request.target == request.source &&
                 !request.packet && gpu(request.source).l2.may_copy(request.cu, request.slice);
  depart(id, departure);
}

void Cores::free_slot(Cu& cu, bool load, const Spent& cause, std::int64_t now) {
  ++(load ? cu.load_room : cu.store_room);
  while (!cu.queue.empty()) {
    Queued& front = cu.queue.front();
    if (!has_room(cu, front.intent)) return;
    std::int32_t id = front.request;
    const std::int32_t again = front.again;
    if (id < 0) {
      id = next_request(front);
      account(requests_[index(id)]);
    }
    if (front.from >= front.to) cu.queue.pop_front();
    requests_[index(id)].spent = cause;  // it waited for this slot
    grant(id, cu, now, again);
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
  Wave& wave = waves_[index(request.wave)];
  Cu& cu = ranks_[index(request.source)].cus[index(request.cu)];
  switch (request.intent) {
    case Intent::load:
    case Intent::multicast_load: {
      free_slot(cu, true, request.spent, now);
      if (!request.ready) {
        start_polling(id, now);
        return;
      }
      if (request.polling && detail(request).cause.time >= 0) {
        const Detail& packet = detail(request);
        request.spent = packet.cause.spent;
        request.spent.charge(Reason::poll, packet.accepted_at - packet.cause.time);
        charge_return(request.spent, request.source, now - packet.accepted_at);
      }
      if (--wave.in_flight == 0) {
        wave.spent = request.spent;
        const std::int32_t wave_id = request.wave;
        release(id);
        after_loads(wave_id, now);
        return;
      }
      release(id);
      return;
    }
    case Intent::posted_load:
      free_slot(cu, true, request.spent, now);
      operand_loaded(wave.workgroup, request, now);
      release(id);
      return;
    case Intent::poll:
      free_slot(cu, true, request.spent, now);
      poll_returned(id, now);
      return;
    case Intent::wake:
      woken(id, now);
      return;
    case Intent::state_load:
    case Intent::state_store:
      free_slot(cu, is_load(request.intent), request.spent, now);
      state_moved(wave.workgroup, request.spent, now);
      release(id);
      return;
    default:
      free_slot(cu, false, request.spent, now);
      acknowledged(request, now);
      release(id);
      return;
  }
}

// From a slice's acceptance of a poll to its return: the look-up, the rest is the way back.
void Cores::charge_return(Spent& spent, int rank, std::int64_t fs) const {
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
  --unacknowledged(group, request.epoch);
  if (request.epoch == wave.epoch) --wave.own_stores;
  --kernels_[index(group.kernel)].stores;
  if (group.draining >= 0 && drained(waves_[index(group.draining)])) {
    const std::int32_t lead = std::exchange(group.draining, -1);
    waves_[index(lead)].spent = request.spent;
    run_wave(lead, now);
  }
  kernel_maybe_done(group.kernel, request.spent, now);
}

// What a release waits for: stores of the whole workgroup before its last sync, and the wavefront's
// own.
bool Cores::drained(const Wave& wave) const {
  if (wave.own_stores > 0) return false;
  const Workgroup& group = groups_[index(wave.workgroup)];
  for (std::int32_t e = group.first_epoch; e < wave.epoch; ++e) {
    if (index(e - group.first_epoch) < group.stores.size() &&
        group.stores[index(e - group.first_epoch)] > 0)
      return false;
  }
  return true;
}

}  // namespace hemiola::sim
