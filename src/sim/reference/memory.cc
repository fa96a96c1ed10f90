// The reference engine: L2 slices, memory-side cache, HBM; flags and packets.

#include <algorithm>
#include <utility>

#include "sim/reference/reference.h"

namespace hemiola::sim {
// A slice accepts a request: its tags change here, in the order of acceptance.
void Reference::at_slice(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  if (request.intent == Intent::burst && request.line < 0) {
    copy_engines_.pass_empty(request, now);
    reply(id, now);
    return;
  }
  const std::int64_t ready = memory_.accept(id, now);
  if (request.intent == Intent::burst)
    copy_engines_.look_up_burst(id, ready);
  else
    look_up(id, ready);
}

void Reference::look_up(std::int32_t id, std::int64_t ready) {
  Request& request = device_.request(id);
  GpuState& gpu = device_.gpu(request.target);
  LineMap<Pending>& on_their_way = pending_[index(device_.home(request.target))];
  const bool writes = request.intent == Intent::store || request.intent == Intent::member_store ||
                      request.intent == Intent::flag || request.intent == Intent::state_store;
  if (!gpu.l2.exists() || request.uncached) {
    push(ready, kMemory, id);
    return;
  }
  Pending* const pending = writes ? nullptr : on_their_way.find(request.line);
  if (request.near) {
    const Tags::Outcome copy = gpu.l2.copy(request.line, request.cu);
    if (copy.evicted_dirty) write_back(request.target, copy.victim, ready);
    if (copy.hit && pending == nullptr) {
      ++device_.counters().l2_hits;
      reply(id, ready);
      return;
    }
    ready = memory_.go_home(request, ready);
  }
  if (!writes) {
    if (pending != nullptr) {  // a hit on a line that is on its way waits
      ++device_.counters().l2_hits;
      const Tags::Outcome again =
          gpu.l2.access(request.line, request.slice, false);  // now the most recent one
      if (again.evicted_dirty) write_back(request.target, again.victim, ready);
      request.queued_at = ready;
      device_.request(pending->last).next_pending = id;
      pending->last = id;
      return;
    }
  }
  const Tags::Outcome outcome = gpu.l2.access(request.line, request.slice, writes);
  if (outcome.evicted_dirty) write_back(request.target, outcome.victim, ready);
  if (outcome.hit || writes) {
    // Stores of whole sectors fetch nothing, and are acknowledged by the slice.
    ++(outcome.hit ? device_.counters().l2_hits : device_.counters().l2_misses);
    reply(id, ready);
    return;
  }
  ++device_.counters().l2_misses;
  on_their_way[request.line] = {id, id};
  request.queued_at = ready;
  push(ready, kMemory, id);
}

void Reference::write_back(int rank, std::int32_t line, std::int64_t now) {
  push(now, kMemory, memory_.make_write_back(rank, line));
}

// Behind the L2: the memory-side cache of the channel where there is one, then the channel itself.
void Reference::at_memory(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  const int rank = request.place();
  const bool read = is_load(request.intent) || request.reads_source;
  const std::int64_t time = memory_.through_memory(request, now);
  if (FlagMonitors::ends_in_memory(request))
    device_.release(id);
  else if (read && request.intent != Intent::burst && !request.uncached &&
           device_.gpu(rank).l2.exists())
    push(time, kFill, id);
  else
    reply(id, time);
}

// The line is in the L2: everybody who waited for it goes on, in the order of acceptance.
void Reference::filled(std::int32_t id, std::int64_t now) {
  LineMap<Pending>& pending = pending_[index(device_.home(device_.request(id).target))];
  const std::int64_t line = device_.request(id).line;
  std::int32_t other = pending.find(line)->first;
  pending.erase(line);
  while (other >= 0) {
    Request& request = device_.request(other);
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
  Request& request = device_.request(id);
  if (request.reads_source) {
    const std::int32_t source_slice = request.slice;
    copy_engines_.turn_to_destination(request);
    if (request.target == request.source) {
      request.stage = Stage::in;
      request.follow({}, 0);
      push_answer(now, id, kLegEnd, kLocalBursts);
      return;
    }
    const Path& path = device_.fabric.path(request.route);
    begin_leg(id, Stage::out,
              device_.layout(request.source).slice_to_port(source_slice, path.source_port),
              device_.fabric.gpu_base[index(request.source)], now, request.bytes);
    return;
  }
  const GpuLayout& layout = device_.layout(request.target);
  const bool load = is_load(request.intent);
  const std::int32_t base = device_.fabric.gpu_base[index(request.target)];
  if (request.is_member()) {
    const std::int32_t port = device_.fabric.port_of(device_.fabric.reverse[index(request.route)]);
    begin_leg(id, Stage::back_out, layout.slice_to_port(request.slice, port), base, now,
              load ? request.bytes : 0);
    return;
  }
  if (request.target != request.source) {
    const Path& path = device_.fabric.path(request.route);
    begin_leg(id, Stage::back_out, layout.slice_to_port(request.slice, path.destination_port), base,
              now, load ? request.bytes : 0);
    return;
  }
  if (load) {
    begin_leg(id, Stage::back_out,
              request.near ? layout.near_to_cu(request.cu)
                           : layout.slice_to_cu(request.slice, request.cu),
              base, now, request.bytes);
    return;
  }
  const std::int64_t latency =
      request.wave >= 0 ? layout.acknowledge_latency(request.slice, request.cu) : 0;
  request.spent.charge(Reason::noc, latency);
  request.stage = Stage::back_out;
  push_answer(now + latency, id, kComplete,
              servers_.complete_tag(request.source, Servers::Return::slices, request.cu));
}

}  // namespace hemiola::sim
