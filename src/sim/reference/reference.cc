// The reference engine: the event loop.

#include "sim/reference/reference.h"

#include <algorithm>

#include "sim/model/receive_buffers.h"
#include "sim/support/prefetch.h"

namespace hemiola::sim {
void Reference::push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b,
                     std::uint32_t tag) {
  if (is_progress(kind, b)) ++device_.tally().active;
  events_.push(time, tag, kind, a, b);
}

// What slices answer: one input, whose order is that of their acceptance. After all else on it at
// that time: a fill of this instant may still add to it.
void Reference::push_answer(std::int64_t time, std::int32_t id, EventKind kind, std::uint32_t tag) {
  constexpr std::uint64_t kAfterOthers = std::uint64_t{1} << 62;
  events_.push_as(kAfterOthers | device_.request(id).accepted, time, tag, kind, id);
}

// The way of a request that its CU has issued: to a slice, or to a port.
void Reference::depart(std::int32_t id, Request& request, std::int64_t departure) {
  const GpuLayout& layout = device_.layout(request.source);
  const std::int32_t base = device_.fabric.gpu_base[index(request.source)];
  const std::int32_t payload = is_load(request.intent) ? 0 : request.bytes;
  if (request.target == request.source) {
    begin_leg(id, Stage::out,
              request.near ? layout.cu_to_near(request.cu)
                           : layout.cu_to_slice(request.cu, request.slice),
              base, departure, payload);
    return;
  }
  begin_leg(id, Stage::out, layout.cu_to_port(request.cu, multicast_.source_port(request)), base,
            departure, payload);
}

void Reference::leave(std::int32_t id, std::int64_t now) {
  const Request& request = device_.request(id);
  const Path& path = device_.fabric.path(request.route);
  begin_leg(id, Stage::out, device_.layout(request.source).slice_to_port(0, path.source_port),
            device_.fabric.gpu_base[index(request.source)], now, request.bytes);
}

void Reference::handle(const Event& event) {
  const auto kind = static_cast<EventKind>(event.kind);
  const std::int64_t now = event.time;
  const std::uint32_t tag = event.order & ((1U << 28) - 1);
  if (is_progress(kind, event.b)) --device_.tally().active;
  switch (kind) {
    case kHop:
      travel(event.a, now, true);
      return;
    case kLegEnd:
      at_slice(event.a, now);
      return;
    case kMemory:
      at_memory(event.a, now);
      return;
    case kFill:
      filled(event.a, now);
      return;
    case kComplete:
      issue_.complete(event.a, now);
      return;
    case kSwitch:
      at_switch(event.a, now);
      return;
    case kAnswer:
      answer_parent(event.a, now);
      return;
    case kPick:
      pick(event.a, now);
      return;
    case kAdmit:
      admit_freed(now);
      return;
    case kCredit:
      ++arbiter_of(device_.fabric, event.a).credits;
      ++device_.counters().credits_returned;
      schedule_pick(event.a, std::max(now, device_.server(event.a).free));
      return;
    default:
      handle_core(kind, now, event.a, event.b, tag);
      return;
  }
}

// Most of the time goes into waiting for memory that left the cache since it was used last: the
// requests of the bucket that comes next, and what those of this one are about to touch.
void Reference::prefetch() {
  for (const Event& next : events_.bucket()) {
    if (next.kind == kHop) {
      const Request& request = device_.request(next.a);
      prefetch_line(&device_.server(request.base + request.hops[request.hop].server));
    } else if (next.kind == kLegEnd) {
      const Request& request = device_.request(next.a);
      const int rank = request.place();
      const GpuState& gpu = device_.gpu(rank);
      gpu.l2.prefetch(request.line, request.near ? request.cu : request.slice);
      pending_[index(device_.home(rank))].prefetch(request.line);
      prefetch_line(&device_.server(device_.fabric.gpu_base[index(rank)] +
                                    device_.layout(rank).slice + request.slice));
    }
  }
  for (const Event& next : events_.next_bucket()) {
    if (next.kind > kComplete) continue;
    const char* request = reinterpret_cast<const char*>(&device_.request(next.a));
    prefetch_line(request);
    prefetch_line(request + 64);
  }
}

Result Reference::run() {
  pending_.resize(device_.gpus.size());
  start();
  constexpr std::uint32_t kEventsUntilTold = 1 << 16;  // about 10 ms
  for (std::uint32_t events = 1; !host_.all_done(); ++events) {
    if (events % kEventsUntilTold == 0) tell(now_);
    if (events_.empty()) report_deadlock();
    if (events_.closed()) {
      events_.open();
      prefetch();
    }
    const Event event = events_.pop();
    now_ = event.time;
    handle(event);
    look_for_progress(1);
  }
  // Credits and copies that nobody waits for are still on their way: they count, but take no time.
  while (!events_.empty()) handle(events_.pop());
  return result();
}

}  // namespace hemiola::sim
