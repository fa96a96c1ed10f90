// The device of an exact engine: set-up, events.

#include "sim/device/cores.h"

#include "sim/result/host_calls.h"

namespace hemiola::sim {

Cores::Cores(const machine::Machine& machine, const program::Bound& program, const Options& options)
    : device_(machine, program, options) {
  for (int rank = 0; rank < device_.fold.period; ++rank)
    if (device_.is_simulated(rank)) host_.make_groups(rank);
  copy_engines_.make_engines();
}

// Events that make progress by themselves; those of a request are counted with the request, and so
// are picks and credits, which matter only to requests (polls alone must not look like progress).
bool Cores::is_progress(EventKind kind, std::int32_t b) {
  switch (kind) {
    case kWave:
      return b == 0;
    case kWaves:
    case kDispatch:
    case kQueue:
    case kProxy:
    case kEngine:
    case kEngineDone:
    case kKernelStart:
    case kStreamNext:
    case kComputed:
    case kPosted:
    case kNap:
      return true;
    default:
      return false;
  }
}

// What an event of a rank means: see push() for `a` and `b`.
void Cores::handle_core(EventKind kind, std::int64_t now, std::int32_t a, std::int32_t b,
                        std::uint32_t tag) {
  switch (kind) {
    case kRetry: {
      Request& request = device_.request(a);
      request.ready = true;
      request.hop = 0;
      issue_.issue(a, now);
      return;
    }
    case kWave:
      if (b == 0)
        wavefronts_.run_wave(a, now);
      else if (b == 1)
        sync_.poll_round(a, Look::again, now);
      else
        sync_.look_again(a, b - 2, now);
      return;
    case kWaves:
      wavefronts_.run_waves(a, b, now);
      return;
    case kDispatch:
      host_.dispatch(a, now);
      return;
    case kComputed:
      computes_.computed(a, now);
      return;
    case kKernelStart:
      return host_.come_to(tag == ~0U >> 4 ? HostStep::repetition : HostStep::item, a,
                           static_cast<std::int32_t>(tag), now, device_.take(b));
    case kStreamNext:
      return host_.come_to(HostStep::finished, a, static_cast<std::int32_t>(tag), now,
                           device_.take(b));
    case kQueue:
      copy_queues_.next_of_queue(a, now);
      return;
    case kProxy:
      copy_engines_.at_proxy(a, now);
      return;
    case kEngine:
      copy_engines_.at_engine(a, b, now);
      return;
    case kEngineDone:
      copy_engines_.engine_done(a, b, now);
      return;
    case kPosted:
      copy_engines_.posted_done(a, device_.take(b), now);
      return;
    case kNap:
      skips_.wake_naps(a, now);
      return;
    default:
      return;
  }
}

void Cores::start() {
  for (int rank = 0; rank < device_.fold.period; ++rank) {
    if (!device_.is_simulated(rank)) {
      device_.rank(rank).end = 0;
      continue;
    }
    const FirstCall call = first_call(device_.machine, device_.program, device_.options, rank);
    device_.rank(rank).launched = call.skew + call.called;
    LatencyBreakdown spent;
    spent.charge(Reason::skew, call.skew);
    spent.charge(Reason::software, call.called);
    spent.charge(Reason::launch, call.latency);
    push(call.start(), kKernelStart, rank, device_.keep(spent), ~0U >> 4);
  }
}

void Cores::tell(std::int64_t now) const {
  if (device_.options.monitor == nullptr) return;
  Monitor& monitor = *device_.options.monitor;
  monitor.leave_if_stopping();
  monitor.time_fs.store(now, std::memory_order_relaxed);
  const Counters counted = device_.tallies.counters();
  monitor.line_hops.store(counted.hops * (device_.program.ranks() / device_.fold.period),
                          std::memory_order_relaxed);
  monitor.done.store(counted.moved, std::memory_order_relaxed);
}

}  // namespace hemiola::sim
