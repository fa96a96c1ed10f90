// Cores: queues of copies that a host stream gives to the copy engines of its rank
// (StreamItem::Kind::engine). A queue does one item after the other: a copy until it is complete, a
// flag behind the copies before it, a wait until the flags are there.

#include <algorithm>
#include <utility>

#include "sim/cores.h"

namespace hemiola::sim {
namespace {

using program::Primitive;
using program::PrimitiveKind;

}  // namespace

void Cores::make_queue(int rank, std::int32_t stream, const program::StreamItem& item) {
  CopyQueue& queue = queues_.emplace_back();
  queue.rank = rank;
  queue.stream = stream;
  queue.body = item.index;
  queue.frame = item.frame;
  if (program_.linked() == nullptr)
    queue.cursor = std::make_unique<program::Cursor>(program_, rank, item.index);
}

void Cores::start_queue(std::int32_t id, std::int64_t now, const Spent& spent) {
  CopyQueue& queue = queues_[index(id)];
  begin_walk(queue.cursor, queue.rank, queue.body, queue.frame);
  queue.spent = spent;
  next_of_queue(id, now);
}

/// Does what takes no time and starts what does.
void Cores::next_of_queue(std::int32_t id, std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  while (queue.cursor->next(queue.primitive)) {
    switch (queue.primitive.kind) {
      case PrimitiveKind::move:
      case PrimitiveKind::post:
        queue_copy(id, now);
        return;
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
  queue.primitive.semaphores.clear();
  end_walk(queue.cursor, queue.rank);
  item_done(queue.rank, queue.stream, now, queue.spent);
}

void Cores::queue_copy(std::int32_t id, std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  const Primitive& primitive = queue.primitive;
  const std::int32_t descriptor_id = descriptors_.take();
  Descriptor& descriptor = descriptors_[index(descriptor_id)];
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
  const std::int32_t engine = engine_for(descriptor);
  const std::int64_t latency =
      engines_[index(engine)].pipelined ? engines_[index(engine)].start_latency : 1;
  descriptor.spent.charge(engines_[index(engine)].reason, latency);
  push(now + latency, kEngine, engine, descriptor_id,
       static_cast<std::uint32_t>(queue.rank & 0xffff));
}

void Cores::queue_flag(const CopyQueue& queue, program::SemaphoreId semaphore, std::int64_t now) {
  Descriptor descriptor;
  descriptor.rank = queue.rank;
  descriptor.flow.span = queue.span;
  descriptor.spent = queue.spent;
  flag_of_copy(descriptor, queue.spent, semaphore, now);
}

/// Whether all flags of the present wait are there; else the queue is told of the first that is
/// not.
bool Cores::queue_may_go_on(std::int32_t id) {
  const Primitive& wait = queues_[index(id)].primitive;
  for (std::size_t s = 0; s < wait.semaphores.size(); ++s) {
    SemaphoreState& state =
        gpu(wait.semaphores[s].rank).semaphores[index(wait.semaphores[s].index)];
    if (state.value >= wait.values[s]) continue;
    state.queues.push_back(id);
    return false;
  }
  for (std::size_t s = 0; s < wait.semaphores.size(); ++s) {
    if (wait.consume)
      gpu(wait.semaphores[s].rank).semaphores[index(wait.semaphores[s].index)].value -=
          wait.values[s];
  }
  return true;
}

/// A flag changed that queues wait for: the front end sees it with its next look.
void Cores::wake_queues(SemaphoreState& semaphore, const Spent& cause, SpanId by,
                        std::int64_t now) {
  for (const std::int32_t id : std::exchange(semaphore.queues, {})) {
    if (!queue_may_go_on(id)) continue;
    CopyQueue& queue = queues_[index(id)];
    const std::int64_t interval =
        std::max<std::int64_t>(1, machine_.model(queue.rank).sync_poll_interval.fs);
    queue.spent = cause;
    queue.released_by = by;
    queue.spent.charge(Reason::poll, interval);
    queue.primitive.semaphores.clear();
    push(now + interval, kQueue, id);
  }
}

void Cores::queue_copied(std::int32_t id, const Spent& spent, std::int64_t now) {
  CopyQueue& queue = queues_[index(id)];
  queue.spent = spent;
  next_of_queue(id, now);
}

}  // namespace hemiola::sim
