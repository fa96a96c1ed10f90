#include "sim/device/wavefronts.h"

#include <algorithm>
#include <utility>

#include "program/semantics/barrier.h"
#include "program/semantics/costs.h"
#include "sim/device/computes.h"
#include "sim/device/copy_engines.h"
#include "sim/device/host.h"
#include "sim/device/issue.h"
#include "sim/device/skips.h"
#include "sim/device/sync.h"
#include "sim/device/tracing.h"
#include "sim/model/large_code.h"

namespace hemiola::sim {
namespace {

using program::Access;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

}  // namespace

// --- The window of primitives that a workgroup's wavefronts are at.

// The step at a position behind those in the window; nullptr: the primitives end before it.
Step* Wavefronts::next_step(Workgroup& group, std::int64_t position) {
  while (position - group.first >= static_cast<std::int64_t>(group.window.size())) {
    if (group.ended) return nullptr;
    Step& step = group.window.add();
    if (!group.cursor->next(step.primitive)) {
      group.window.pop_back();
      group.ended = true;
      return nullptr;
    }
    if (step.primitive.kind == PrimitiveKind::barrier) {
      expand_barrier(group, step);
      continue;
    }
    begin(group, step);
    if (step.primitive.kind != PrimitiveKind::move) continue;
    step.grain = granularity(group, step.primitive);
    if (device_.sampling != nullptr) skips_.find_kind(group, step);
  }
  return &group.window[index(position - group.first)];
}

// Moves, posted computes and syncs are of all; the rest is done by the first wavefront, signals by
// the one that does nothing else where there is one.
void Wavefronts::begin(const Workgroup& group, Step& step) {
  const Primitive& primitive = step.primitive;
  step.first_wave = 0;
  step.waves = 1;
  switch (primitive.kind) {
    case PrimitiveKind::move:
      step.waves = group.movers;
      break;
    case PrimitiveKind::sync:
      step.waves = primitive.movers ? group.movers : group.waves;
      break;
    case PrimitiveKind::compute:
      if (primitive.posted) step.waves = group.movers;
      break;
    case PrimitiveKind::signal:
    case PrimitiveKind::fence:
    case PrimitiveKind::post:
    case PrimitiveKind::flush:
      if (group.movers < group.waves) step.first_wave = group.movers;
      break;
    default:
      break;
  }
  step.left = step.waves;
  step.arrived = 0;
  step.begin = -1;
  step.flow = {};
}

void Wavefronts::expand_barrier(Workgroup& group, Step& step) {
  auto parts = program::parts_of_barrier(step.primitive, group.rank, device_.barrier_base,
                                         group.barrier_rounds);
  step.primitive = std::move(parts.front());
  begin(group, step);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Step& next = group.window.add();
    next.primitive = std::move(parts[i]);
    begin(group, next);
  }
}

void Wavefronts::pass(Workgroup& group, Wave& wave, Step& step, std::int64_t now) {
  ++wave.position;
  wave.step = 0;
  wave.waiting = Waiting::running;
  if (--step.left == 0) drop_passed(group, now);
}

// What all have passed leaves the window.
void Wavefronts::drop_passed(Workgroup& group, std::int64_t now) {
  while (!group.window.empty() && group.window.front().left == 0) {
    if (device_.tracing()) tracing_.show_step(group, group.window.front(), now);
    group.window.pop_front();
    ++group.first;
  }
}

// --- One wavefront, until it has to wait.

void Wavefronts::run_wave(std::int32_t id, std::int64_t now) {
  Wave& wave = device_.wave(id);
  Workgroup& group = device_.group(wave.workgroup);
  for (;;) {
    wave.waiting = Waiting::running;
    Step* step = step_of(wave);
    if (step == nullptr) {
      finish_wave(id, now);
      return;
    }
    const Primitive& primitive = step->primitive;
    if (!step->has(wave.index)) {
      ++wave.position;
      continue;
    }
    if (step->begin < 0) step->begin = now;
    const bool starts = wave.step == 0 && program::begins_operation(wave.last_op, primitive);
    if (starts || wave.fetching) {
      const bool bare = device_.code_of(group).bare;
      const machine::GpuModel& model = device_.model(group.rank);
      const std::int64_t own = starts ? program::operation_overhead(model, bare, primitive).fs : 0;
      if (starts) want_code(group, primitive);
      wave.last_op = primitive.op;
      fetch_code(group, now);
      const std::int64_t overhead = std::max(own, group.code_ready - now);
      wave.fetching = group.code_pieces > 0;
      if (overhead > 0 || wave.fetching) {
        wave.spent.charge(Reason::issue, own);
        wave.spent.charge(Reason::software, overhead - own);
        transport_.push(now + overhead, kWave, id, 0, wave.tag);
        return;
      }
    }
    bool waits = false;
    switch (primitive.kind) {
      case PrimitiveKind::move:
        waits = move(id, *step, now);
        break;
      case PrimitiveKind::sync:
        waits = wave.step == 0;
        if (!waits) break;
        wave.step = 1;
        wave.waiting = Waiting::sync;
        arrive(id, *step, 1, now);
        break;
      case PrimitiveKind::signal:
        waits = sync_.start_signal(id, *step, now);
        break;
      case PrimitiveKind::wait:
        waits = sync_.start_wait(id, *step, now);
        break;
      case PrimitiveKind::fence:
      case PrimitiveKind::post: {
        if (wave.step == 0 && sync_.waits_for_stores(id, now)) return;
        if (wave.step == 0) {
          wave.step = 1;
          if (sync_.fence(id, true, now)) return;
        }
        if (primitive.kind == PrimitiveKind::post) copy_engines_.post(id, primitive, now);
        break;
      }
      case PrimitiveKind::flush:
        if (group.posted_done < group.posted) {
          wave.waiting = Waiting::flush;
          group.flushing = id;
          return;
        }
        break;
      case PrimitiveKind::compute:
        waits = primitive.posted ? computes_.post_compute(id, primitive, now)
                                 : computes_.compute(id, primitive, now);
        break;
      case PrimitiveKind::barrier:
        break;  // expanded
    }
    if (waits) return;
    pass(group, wave, *step, now);
  }
}

// Those of a workgroup that go on at the same time, one after the other.
void Wavefronts::run_waves(std::int32_t first, std::int32_t count, std::int64_t now) {
  const std::int32_t end = first + count;
  while (first < end) {
    const std::int32_t idle = pass_idle(first, end, now);
    if (idle == 0) run_wave(first, now);
    first += std::max(idle, 1);
  }
}

// Wavefronts behind the first one for which there is nothing to move do the same, and that at once:
// they go on to the next sync. How many do, from `id` on; 0: it has something else to do. Most
// wavefronts of a call of few bytes are such.
std::int32_t Wavefronts::pass_idle(std::int32_t id, std::int32_t end, std::int64_t now) {
  const Wave& wave = device_.wave(id);
  Workgroup& group = device_.group(wave.workgroup);
  const std::int32_t count = std::min(end, group.first_wave + group.movers) - id;
  if (wave.index == 0 || count < 2 || wave.fetching || now < group.code_ready ||
      group.code_pieces > 0)
    return 0;
  const program::Kernel& kernel = device_.code_of(group);
  const bool bare = kernel.bare || device_.model(group.rank).sync_op_overhead.fs <= 1;
  const std::int64_t from = std::max(wave.position, group.first);
  std::int32_t op = wave.last_op;
  std::int64_t position = from;
  bool passes = wave.step == 1;  // the sync at which they were
  Step* step = nullptr;
  for (;; ++position, passes = false) {
    step = step_at(group, position);
    if (step == nullptr) return 0;
    if (!step->has(wave.index) || passes) continue;
    const Primitive& primitive = step->primitive;
    if (primitive.kind == PrimitiveKind::sync) break;
    if (primitive.kind != PrimitiveKind::move || primitive.posted ||
        wave.index * step->grain.wave < primitive.bytes)
      return 0;
    if (op == primitive.op) continue;
    op = primitive.op;
    if (!bare || (!group.fetched && kernel.large_code > 0)) return 0;
  }
  for (std::int32_t w = id; w < id + count; ++w) {
    Wave& other = device_.wave(w);
    other.position = position;
    other.last_op = op;
    other.step = 1;
    other.waiting = Waiting::sync;
  }
  for (std::int64_t p = from; p < position; ++p) {
    Step& passed = *step_at(group, p);
    if (!passed.has(wave.index)) continue;
    if (passed.begin < 0) passed.begin = now;
    passed.left -= count;
  }
  drop_passed(group, now);
  if (step->begin < 0) step->begin = now;
  arrive(id + count - 1, *step, count, now);
  return count;
}

// `count` wavefronts are at a sync, `id` came last. The last one to arrive releases all, once the
// computes that they posted have ended.
void Wavefronts::arrive(std::int32_t id, Step& step, std::int32_t count, std::int64_t now) {
  step.arrived += count;
  if (step.arrived < step.waves) return;
  Workgroup& group = device_.group(device_.wave(id).workgroup);
  if (group.steps.empty())
    release_sync(id, step, now);
  else
    group.joining = id;
}

// Stores after a sync of movers only are not those that a signal is still waiting for, nor need it
// wait for more: the epoch ends with a sync of all.
void Wavefronts::release_sync(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = device_.wave(id);
  Workgroup& group = device_.group(wave.workgroup);
  const std::int64_t latency = device_.model(group.rank).sync_barrier_latency.fs;
  LatencyBreakdown spent = wave.spent;
  spent.charge(Reason::barrier, latency);
  Issue::unacknowledged(group, wave.epoch);
  const std::int32_t count = step.waves;
  for (std::int32_t w = group.first_wave; w < group.first_wave + count; ++w) {
    Wave& other = device_.wave(w);
    other.spent = spent;
    if (count == group.waves) {
      ++other.epoch;
      other.own_stores = 0;
    }
  }
  push_waves(now + latency, group.first_wave, count);
  while (!group.stores.empty() && group.stores.front() == 0 && group.first_epoch < wave.epoch) {
    group.stores.erase(group.stores.begin());
    ++group.first_epoch;
  }
}

// --- Code of large kernels.

// The first wavefront that comes to an operation that needs it asks for the code, for all.
void Wavefronts::want_code(Workgroup& group, const program::Primitive& primitive) {
  const KernelRun& run = device_.kernel(group.kernel);
  const program::Kernel& kernel = device_.program.kernels()[index(run.kernel)];
  const program::Op& op = device_.op_of(group, primitive);
  if (group.fetched || !needs_large_code(*device_.program.frame(run.frame).program, kernel, op))
    return;
  group.fetched = true;
  const machine::GpuModel& model = device_.model(group.rank);
  if ((model.cu_code_fetch + model.cu_code_fetch_interval).fs > 1)
    group.code_pieces = kernel.large_code * kCodePieces;
}

// The next piece of it, once the last one is there. The pieces of workgroups that fetch at the same
// time alternate, so that these end together.
void Wavefronts::fetch_code(Workgroup& group, std::int64_t now) {
  const machine::GpuModel& model = device_.model(group.rank);
  while (group.code_pieces > 0 && group.code_ready <= now) {
    const std::int64_t piece = --group.code_pieces % kCodePieces;
    const auto share = [&](Time all) {
      return all.fs * (piece + 1) / kCodePieces - all.fs * piece / kCodePieces;
    };
    std::int64_t& free = device_.rank(group.rank).code_fetches;
    free = std::max(free, now) + share(model.cu_code_fetch_interval);
    group.code_ready = free + share(model.cu_code_fetch);
  }
}

// --- Moves: thread t owns the bytes g (t + k T); g is 16 B, less where packets carry flags.

Granularity Wavefronts::granularity(const Workgroup& group, const Primitive& primitive) const {
  const std::int64_t grain = device_.code_of(group).grain;
  const std::int64_t wave =
      program::data_per_thread(primitive, grain) * device_.model(group.rank).cu_wavefront_size;
  return {wave, wave * group.movers};
}

std::int64_t Wavefronts::unroll(const Workgroup& group) const {
  const std::int32_t own = device_.code_of(group).unroll;
  return std::max<std::int64_t>(1, own > 0 ? own : device_.model(group.rank).cu_unroll);
}

// Steps: 0 start, 1 loads in flight, 2 reducing, 3 stores being issued, 5 batches passed over,
// 4 LL128 lines loaded again:
// the threads that see flags poll for all, which then load what has arrived (NCCL's prims_ll128.h).
bool Wavefronts::move(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = device_.wave(id);
  const Primitive& primitive = step.primitive;
  const Granularity grain = step.grain;
  if (primitive.posted) {
    if (device_.sampling == nullptr || !skips_.skip_loads(id, step, now))
      computes_.post_loads(id, step, now);
    return false;
  }
  if (wave.step == 0) wave.next = wave.index * grain.wave;
  if (wave.step == 2) {  // reduced
    issue_stores(id, step, now);
    return true;
  }
  if (wave.step == 3)  // the last store of the batch has been issued
    wave.next += grain.group * unroll(device_.group(wave.workgroup));
  if (device_.sampling != nullptr && step.kind >= 0 && skips_.sample_batch(id, step, now))
    return true;
  if (wave.next >= primitive.bytes) return false;
  wave.step = 1;
  issue_loads(id, step, now);
  return true;
}

void Wavefronts::issue_loads(std::int32_t id, const Step& step, std::int64_t now) {
  const Primitive& primitive = step.primitive;
  Wave& wave = device_.wave(id);
  const Workgroup& group = device_.group(wave.workgroup);
  const Granularity grain = step.grain;
  const std::int64_t unroll = this->unroll(group);
  wave.waiting = Waiting::loads;
  wave.in_flight = 1;  // held until all are issued
  for (std::int64_t u = 0; u < unroll; ++u) {
    const std::int64_t begin = wave.next + u * grain.group;
    const std::int64_t end = std::min(begin + grain.wave, primitive.bytes);
    if (begin >= end) break;
    for (const Span& span : primitive.src) {
      if (wave.step == 4 && span.access != Access::ll128) continue;
      const Intent intent =
          span.access == Access::multicast ? Intent::multicast_load : Intent::load;
      request_memory(id, span, begin, end, intent, false, now);
    }
  }
  if (--wave.in_flight == 0) after_loads(id, now);
}

void Wavefronts::after_loads(std::int32_t id, std::int64_t now) {
  Wave& wave = device_.wave(id);
  const Workgroup& group = device_.group(wave.workgroup);
  const Step& step = *step_of(wave);
  const Primitive& primitive = step.primitive;
  const bool polled = wave.step == 1 && std::ranges::any_of(primitive.src, [](const Span& s) {
                        return s.access == Access::ll128;
                      });
  if (polled) {
    wave.step = 4;
    issue_loads(id, step, now);
    return;
  }
  if (primitive.src.size() > 1) {
    const Granularity grain = step.grain;
    const machine::GpuModel& model = device_.model(group.rank);
    const std::int64_t unroll = this->unroll(group);
    std::int64_t bytes = 0;
    for (std::int64_t u = 0; u < unroll; ++u) {
      const std::int64_t begin = wave.next + u * grain.group;
      bytes += std::max<std::int64_t>(0, std::min(begin + grain.wave, primitive.bytes) - begin);
    }
    Server& alu = computes_.matrix_units(group);
    const std::int64_t service =
        program::reduce_time(model, primitive.type, bytes, std::ssize(primitive.src)).fs;
    alu.free = std::max(now, alu.free) + service;
    alu.busy += service;
    ++alu.requests;
    ++device_.counters().hops;
    wave.spent.charge(Reason::compute, alu.free - now);
    wave.waiting = Waiting::compute;
    wave.step = 2;
    transport_.push(alu.free, kWave, id, 0, wave.tag);
    return;
  }
  issue_stores(id, step, now);
}

void Wavefronts::issue_stores(std::int32_t id, const Step& step, std::int64_t now) {
  const Primitive& primitive = step.primitive;
  Wave& wave = device_.wave(id);
  const Workgroup& group = device_.group(wave.workgroup);
  const Granularity grain = step.grain;
  const std::int64_t unroll = this->unroll(group);
  wave.step = 3;
  if (primitive.dst.empty()) {
    run_wave(id, now);
    return;
  }
  wave.waiting = Waiting::stores;
  for (std::int64_t u = 0; u < unroll; ++u) {
    const std::int64_t begin = wave.next + u * grain.group;
    const std::int64_t end = std::min(begin + grain.wave, primitive.bytes);
    if (begin >= end) break;
    const bool last_iteration = u + 1 == unroll || begin + grain.group >= primitive.bytes;
    for (std::size_t d = 0; d < primitive.dst.size(); ++d) {
      const Span& span = primitive.dst[d];
      const bool multicast = is_multicast(span.access);
      request_memory(id, span, begin, end, multicast ? Intent::multicast_store : Intent::store,
                     last_iteration && d + 1 == primitive.dst.size(), now);
    }
  }
}

// The requests of one instruction: one per line that data bytes [begin, end) of the span touch, row
// by row.
void Wavefronts::request_memory(std::int32_t id, const Span& span, std::int64_t begin,
                                std::int64_t end, Intent intent, bool last, std::int64_t now) {
  const std::int64_t start = device_.addresses.start_of(span);
  if (span.access == Access::ll128) {
    issue_.request_bytes(id, span, start + begin / 120 * 128, start + (end + 119) / 120 * 128,
                         intent, last, now);
  } else if (is_packet(span.access)) {
    issue_.request_bytes(id, span, start + program::memory_offset(begin, span.access),
                         start + program::memory_offset(end, span.access), intent, last, now);
  } else {
    const std::int64_t moved = start - span.offset;
    span.each_part(begin, end, [&](std::int64_t offset, std::int64_t data, std::int64_t bytes) {
      issue_.request_bytes(id, span, moved + offset, moved + offset + bytes, intent,
                           last && data + bytes == end, now);
    });
  }
}

void Wavefronts::finish_wave(std::int32_t id, std::int64_t now) {
  Wave& wave = device_.wave(id);
  wave.waiting = Waiting::finished;
  Workgroup& group = device_.group(wave.workgroup);
  if (++group.finished == group.waves && group.steps.empty())
    host_.workgroup_done(wave.workgroup, wave.spent, now);
}

}  // namespace hemiola::sim
