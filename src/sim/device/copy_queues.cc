#include "sim/device/copy_queues.h"

#include <algorithm>
#include <utility>

#include "sim/device/copy_engines.h"
#include "sim/device/host.h"
#include "sim/model/host_streams.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
namespace {

using program::Primitive;
using program::PrimitiveKind;

}  // namespace

bool has_queues(const program::Bound& program) {
  for (const program::RankCode& code : program.codes()) {
    for (const program::Stream& stream : code.streams) {
      for (const program::StreamItem& item : stream)
        if (item.kind == program::StreamItem::Kind::engine) return true;
    }
  }
  return false;
}

void add_legs(std::vector<CopyLeg>& legs, const Primitive& copy) {
  for (std::size_t d = 0; d < copy.dst.size(); ++d)
    legs.push_back({.src = copy.exchanges ? copy.src[d] : copy.src.front(),
                    .dst = copy.dst[d],
                    .bytes = copy.bytes,
                    .beside = d > 0});
}

std::int32_t CopyQueues::make_queue(int rank, std::int32_t stream,
                                    const program::StreamItem& item) {
  CopyQueue& queue = queues_.emplace_back();
  queue.rank = rank;
  queue.stream = stream;
  queue.body = item.index;
  queue.frame = item.frame;
  queue.prelaunched = item.prelaunched;
  if (device_.program.linked() == nullptr)
    queue.cursor = std::make_unique<program::Cursor>(device_.program, rank, item.index);
  return static_cast<std::int32_t>(queues_.size()) - 1;
}

void CopyQueues::start_queue(std::int32_t id, std::int64_t now, const LatencyBreakdown& spent) {
  CopyQueue& queue = queues_[index(id)];
  begin_walk(queue.cursor, device_.program, device_.rank(queue.rank), queue.rank, queue.body,
             queue.frame);
  queue.spent = spent;
  queue.held = queue.copied = false;
  if (!queue.prelaunched) return next_of_queue(id, now);
  // The poll that its turn ends.
  const std::int64_t interval =
      std::max<std::int64_t>(1, device_.model(queue.rank).sync_poll_interval.fs);
  queue.spent.charge(Reason::poll, interval);
  transport_.push(now + interval, kQueue, id);
}

void CopyQueues::next_of_queue(std::int32_t id, std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  while (std::exchange(queue.held, false) || queue.cursor->next(queue.primitive)) {
    const bool copies = queue.primitive.kind == PrimitiveKind::move && !queue.primitive.remote;
    if (copies) {
      add_legs(queue.legs, queue.primitive);
      if (queue.primitive.batched) continue;
    }
    if (!queue.legs.empty()) {
      queue.held = !copies;
      return submit(id, now);
    }
    switch (queue.primitive.kind) {
      case PrimitiveKind::move:
      case PrimitiveKind::post:
        return queue_post(id, now);
      case PrimitiveKind::signal:
        for (std::size_t s = 0; s < queue.primitive.semaphores.size(); ++s)
          queue_flag(queue, queue.primitive.semaphores[s], now);
        break;
      case PrimitiveKind::wait:
        if (!queue_may_go_on(id)) return;
        break;
      default:  // copies of a queue are in order: there is nothing to join or to flush
        break;
    }
  }
  if (!queue.legs.empty()) return submit(id, now);
  queue.primitive.semaphores.clear();
  end_walk(queue.cursor, device_.program, device_.rank(queue.rank));
  if (!device_.options.one_host || !queue.copied)
    return host_.come_to(HostStep::finished, queue.rank, queue.stream, now, queue.spent);
  const std::int64_t seen =
      by_host(now, device_.model(queue.rank).dma_completion_time.fs, queue.spent);
  transport_.push(seen, kStreamNext, queue.rank, device_.keep(queue.spent),
                  static_cast<std::uint32_t>(queue.stream));
}

/// The one host thread works for `time`, as soon as it may: when it is through.
std::int64_t CopyQueues::by_host(std::int64_t now, std::int64_t time, LatencyBreakdown& spent) {
  host_free_ = std::max(now, host_free_) + time;
  spent.charge(Reason::dma, host_free_ - now);
  return host_free_;
}

/// What the queue has gathered goes to the engine of its first copy.
void CopyQueues::submit(std::int32_t id, std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  const std::int32_t descriptor_id = device_.descriptors.take();
  Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  descriptor.rank = queue.rank;
  descriptor.queue = id;
  descriptor.src = queue.legs.front().src;
  descriptor.dst = queue.legs.front().dst;
  descriptor.bytes = queue.legs.front().bytes;
  descriptor.target = descriptor.dst.rank;
  if (queue.legs.size() > 1) descriptor.legs = queue.legs;
  queue.legs.clear();
  queue.copied = true;
  const machine::GpuModel& model = device_.model(queue.rank);
  std::int64_t handed_over = now + 1;
  descriptor.start_latency = queue.prelaunched ? 0 : model.dma_schedule_latency.fs;
  if (!queue.prelaunched && device_.options.one_host) {
    handed_over =
        by_host(now, std::max<std::int64_t>(1, model.dma_control_latency.fs), queue.spent);
  } else {
    queue.spent.charge(Reason::dma, 1);
    if (!queue.prelaunched) descriptor.start_latency += model.dma_control_latency.fs;
  }
  descriptor.spent = queue.spent;
  descriptor.flow.released_by = std::exchange(queue.released_by, 0);
  transport_.push(handed_over, kEngine, copy_engines_.engine_for(descriptor), descriptor_id,
                  static_cast<std::uint32_t>(queue.rank & 0xffff));
}

/// What crosses a NIC.
void CopyQueues::queue_post(std::int32_t id, std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  const Primitive& primitive = queue.primitive;
  const std::int32_t descriptor_id = device_.descriptors.take();
  Descriptor& descriptor = device_.descriptors[index(descriptor_id)];
  descriptor.rank = queue.rank;
  descriptor.queue = id;
  if (primitive.bytes > 0) {
    descriptor.src = primitive.src.front();
    descriptor.dst = primitive.dst.front();
  }
  descriptor.bytes = primitive.bytes;
  descriptor.semaphores = primitive.semaphores;
  descriptor.remote = primitive.remote;
  descriptor.target =
      primitive.bytes > 0 ? primitive.dst.front().rank : primitive.semaphores.front().rank;
  descriptor.spent = queue.spent;
  descriptor.flow.released_by = std::exchange(queue.released_by, 0);
  const std::int32_t engine = copy_engines_.engine_for(descriptor);
  const std::int64_t latency =
      device_.engines[index(engine)].pipelined ? device_.engines[index(engine)].start_latency : 1;
  descriptor.spent.charge(device_.engines[index(engine)].reason, latency);
  transport_.push(now + latency, kEngine, engine, descriptor_id,
                  static_cast<std::uint32_t>(queue.rank & 0xffff));
}

void CopyQueues::queue_flag(const CopyQueue& queue, program::SemaphoreId semaphore,
                            std::int64_t now) {
  Descriptor descriptor;
  descriptor.rank = queue.rank;
  descriptor.flow.span = queue.span;
  descriptor.spent = queue.spent;
  copy_engines_.flag_of_copy(descriptor, queue.spent, semaphore, now);
}

void CopyQueues::copies_done(std::int32_t id, SpanId span, const LatencyBreakdown& spent,
                             std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  queue.span = span;
  queue.spent = spent;
  next_of_queue(id, now);
}

/// Whether all flags of the present wait are there; else the queue is told of the first that is
/// not.
bool CopyQueues::queue_may_go_on(std::int32_t id) {
  const Primitive& wait = queues_[index(id)].primitive;
  for (std::size_t s = 0; s < wait.semaphores.size(); ++s) {
    SemaphoreState& state =
        device_.gpu(wait.semaphores[s].rank).semaphores[index(wait.semaphores[s].index)];
    if (state.value >= wait.values[s]) continue;
    state.queues.push_back(id);
    return false;
  }
  for (std::size_t s = 0; s < wait.semaphores.size(); ++s) {
    if (wait.consume)
      device_.gpu(wait.semaphores[s].rank).semaphores[index(wait.semaphores[s].index)].value -=
          wait.values[s];
  }
  return true;
}

void CopyQueues::wake_queues(SemaphoreState& semaphore, const LatencyBreakdown& cause, SpanId by,
                             std::int64_t now) {
  for (const std::int32_t id : std::exchange(semaphore.queues, {})) {
    if (!queue_may_go_on(id)) continue;
    CopyQueue& queue = queues_[index(id)];
    const std::int64_t interval =
        std::max<std::int64_t>(1, device_.model(queue.rank).sync_poll_interval.fs);
    queue.spent = cause;
    queue.released_by = by;
    queue.spent.charge(Reason::poll, interval);
    queue.primitive.semaphores.clear();
    transport_.push(now + interval, kQueue, id);
  }
}

}  // namespace hemiola::sim
