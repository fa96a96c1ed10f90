// Lower bounds: how long each primitive takes alone, and what it carries.
#include "sim/bound/walk.h"

#include <algorithm>
#include <span>
#include <utility>

#include "program/semantics/costs.h"
#include "sim/support/index.h"

namespace hemiola::sim {

using program::Access;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

void BoundWalk::overhead(Agent& agent, bool all) {
  const Primitive& p = agent.primitive;
  if (!program::begins_operation(agent.last_op, p)) return;
  agent.last_op = p.op;
  const std::int64_t fs = program::operation_overhead(machine_.model(agent.rank), agent.bare, p).fs;
  agent.lead += fs;
  if (all) agent.rest += fs;
}

bool BoundWalk::interpret(Agent& agent) {
  const Primitive& p = agent.primitive;
  const machine::GpuModel& model = machine_.model(agent.rank);
  switch (p.kind) {
    case PrimitiveKind::sync: {
      agent.lead = agent.rest =
          std::max({agent.lead, agent.waves > 1 ? agent.rest : agent.lead, agent.compute_end,
                    agent.posts_apart && !p.movers ? agent.poster : 0}) +
          model.sync_barrier_latency.fs;
      if (agent.posts_apart && p.movers) return true;
      agent.poster = agent.lead;
      agent.stores_joined = std::max({agent.stores_joined, agent.stores, agent.stores_lead});
      return true;
    }
    case PrimitiveKind::move:
      if (p.posted)
        overhead(agent, true);
      else if (!move(agent))
        return false;
      for (const auto* spans : {&p.src, &p.dst})
        for (const Span& span : *spans) moved_bytes_ += memory(span, p.bytes) * agent.members();
      return true;
    case PrimitiveKind::signal:
    case PrimitiveKind::fence:
    case PrimitiveKind::post:
    case PrimitiveKind::flush:
      if (agent.posts_apart) std::swap(agent.lead, agent.poster);
      interpret_post(agent);
      if (agent.posts_apart) std::swap(agent.lead, agent.poster);
      return true;
    case PrimitiveKind::wait: {
      std::int64_t seen = 0;
      if (!reached(agent, p, seen)) return false;
      overhead(agent, false);
      const std::int64_t back = model.l2_latency.fs + latencies_.on_chip(agent.rank);
      agent.accepted = std::max(agent.lead + latencies_.on_chip(agent.rank), seen);
      agent.lead = agent.accepted + back;
      return true;
    }
    case PrimitiveKind::barrier:
      return join(agent);
    case PrimitiveKind::compute:
      overhead(agent, false);
      if (p.posted)
        agent.compute_end = std::max(agent.compute_end, agent.lead) + p.duration.fs;
      else
        agent.lead += p.duration.fs;
      return true;
  }
  return true;
}

// All workgroups of the barrier: the last arrival releases them.
bool BoundWalk::join(Agent& agent) {
  const Primitive& p = agent.primitive;
  std::int64_t of_rank = 1;
  if (classes_ != nullptr)
    of_rank = agent.members() / classes_->ranks_in(classes_->rank_class(agent.rank));
  return rounds_[{agent.rank, p.barrier_id}].join(agent, of_rank, p.workgroups);
}

void BoundWalk::interpret_post(Agent& agent) {
  const Primitive& p = agent.primitive;
  if (p.kind == PrimitiveKind::signal && p.swap) {  // by the access that ended the wait before it
    for (const program::SemaphoreId id : p.semaphores) arrive(agent, id, 1, agent.accepted);
    return;
  }
  if (p.kind == PrimitiveKind::post) {
    posted_bytes_ += p.bytes * agent.members();
    return post(agent);
  }
  overhead(agent, false);
  if (p.kind == PrimitiveKind::flush) {
    agent.lead = std::max(agent.lead, agent.posted);
    for (const std::size_t post : agent.posts) posts_[post].flushed = true;
    return;
  }
  if (p.release || p.kind == PrimitiveKind::fence)
    release(agent, p.kind == PrimitiveKind::fence || p.system_scope);
  for (std::size_t s = 0; s < p.semaphores.size(); ++s)
    flag(agent, p.semaphores[s], p.values[s], agent.lead);
}

bool BoundWalk::reached(const WalkedAgent& agent, const Primitive& p, std::int64_t& seen) {
  for (std::size_t s = 0; s < p.semaphores.size(); ++s) {
    const std::int64_t initial = program_.semaphores()[index(p.semaphores[s].index)].initial;
    Signals& signals = signals_of(p.semaphores[s]);
    const std::int64_t needed = p.values[s] - initial + (p.consume ? signals.consumed : 0);
    if (signals.count() < needed) return false;
    signals.needed = std::max(signals.needed, needed);
    if (needed <= 0) continue;
    seen = std::max(seen, signals.arrival(needed));
    // A connection has one receiver and one sender, each of which waits for ever higher totals;
    // its tails and credits come after all other semaphores.
    if (program_.linked() == nullptr &&
        p.semaphores[s].index >= program_.program().tail_semaphore(0))
      signals.forget_before(needed);
  }
  for (const program::SemaphoreId id : p.semaphores)
    if (p.consume) signals_of(id).consumed += users(agent, id);
  return true;
}

bool BoundWalk::interpret_copy(Agent& agent) {
  const Primitive& p = agent.primitive;
  const machine::GpuModel& model = machine_.model(agent.rank);
  switch (p.kind) {
    case PrimitiveKind::move: {
      // Copies of a submission may all be under way at a time: the farthest counts.
      if (!agent.copies->in_batch && !agent.copies->prelaunched)
        agent.lead += model.dma_control_latency.fs + model.dma_schedule_latency.fs;
      for (std::size_t d = 0; d < p.dst.size(); ++d) {
        const int from = p.src[p.exchanges ? d : 0].rank, to = p.dst[d].rank;
        carry(agent, from, to, p.bytes, 1);
        moved_bytes_ += p.bytes * agent.members();
        agent.copies->batch_way = std::max(agent.copies->batch_way, latencies_.links(from, to, 1));
      }
      agent.copies->in_batch = p.batched;
      if (!p.batched)
        agent.lead += std::exchange(agent.copies->batch_way, 0) + model.dma_sync_latency.fs;
      return true;
    }
    case PrimitiveKind::post: {
      const int from = p.bytes > 0 ? p.src.front().rank : agent.rank;
      const int to = p.bytes > 0 ? p.dst.front().rank : p.semaphores.front().rank;
      carry(agent, from, to, std::max<std::int64_t>(1, p.bytes), 1);
      moved_bytes_ += p.bytes * agent.members();
      agent.lead += latencies_.links(from, to, 1);
      for (const program::SemaphoreId id : p.semaphores) arrive(agent, id, 1, agent.lead);
      return true;
    }
    case PrimitiveKind::signal:
      for (std::size_t s = 0; s < p.semaphores.size(); ++s) {
        const std::int64_t at = agent.lead + latencies_.links(agent.rank, p.semaphores[s].rank, 0);
        arrive(agent, p.semaphores[s], p.values[s], at);
      }
      return true;
    case PrimitiveKind::wait: {
      std::int64_t seen = 0;
      if (!reached(agent, p, seen)) return false;
      agent.lead = std::max(agent.lead, seen);
      return true;
    }
    default:
      return true;
  }
}

void BoundWalk::release(Agent& agent, bool system_scope) {
  agent.lead = std::max({agent.lead, agent.stores_joined, agent.stores_lead}) +
               program::release_time(machine_.model(agent.rank), system_scope).fs;
}

void BoundWalk::flag(const WalkedAgent& agent, program::SemaphoreId id, std::int64_t value,
                     std::int64_t at) {
  const int from = agent.rank;
  const std::int64_t sector = machine_.model(from).sector_size.count;
  arrive(agent, id, value, at + latencies_.store_arrival(from, id.rank, sector));
  carry(agent, from, id.rank, sector, 1);
  carry(agent, id.rank, from, 0, 1);
}

void BoundWalk::post(Agent& agent) {
  overhead(agent, false);
  release(agent, true);
  const Primitive& p = agent.primitive;
  const machine::GpuModel& model = machine_.model(agent.rank);
  const int to = p.bytes > 0 ? p.dst.front().rank : p.semaphores.front().rank;
  const std::int64_t factor = p.bytes > 0 && p.src.front().access != Access::plain ? 2 : 1;
  moved_bytes_ += p.bytes * factor * agent.members();
  std::int64_t time = agent.lead + model.proxy_fifo_latency.fs +
                      (p.remote ? model.proxy_network_time.fs : model.proxy_request_time.fs);
  const auto number = index(&agent - agents_.data());
  Post record{agent.rank, to, number, std::max<std::int64_t>(1, p.bytes * factor), false, {}};
  for (const program::SemaphoreId id : p.semaphores)
    record.signals.emplace_back(id, signals_of(id).count());
  if (to != agent.rank && (p.remote || p.bytes > 0)) {
    agent.posts.push_back(posts_.size());
    posts_.push_back(std::move(record));
  }
  if (p.remote) {  // the flag is written at the destination, behind the last packet
    time += latencies_.links(agent.rank, to, 1);
    for (const program::SemaphoreId id : p.semaphores) arrive(agent, id, 1, time);
    agent.posted = std::max(agent.posted, time + latencies_.links(to, agent.rank, 0));
    return;
  }
  if (p.bytes > 0 && to != agent.rank)
    time += latencies_.links(agent.rank, to, 1) + latencies_.links(to, agent.rank, 0);
  agent.posted = std::max(agent.posted, time);
  for (const program::SemaphoreId id : p.semaphores) flag(agent, id, 1, time);
}

bool BoundWalk::move(Agent& agent) {
  const Primitive& p = agent.primitive;
  const machine::GpuModel& model = machine_.model(agent.rank);
  if (p.bytes == 0) return true;
  std::int64_t ready = 0;
  for (const Span& span : p.src) {
    if (!is_packet(span.access)) continue;
    std::int64_t arrival = 0;
    const std::int64_t begin = offset_of(span);
    if (!packets_[space(span.rank, span)].covered(begin, begin + memory(span, p.bytes), arrival))
      return false;
    ready = std::max(ready, arrival + model.l2_latency.fs + latencies_.on_chip(agent.rank));
  }
  overhead(agent, true);
  const std::int64_t unit =
      std::min(p.bytes, model.sector_size.count);  // the last line may be partial
  std::int64_t batch = 1;
  for (const Span& span : p.src) batch = std::max(batch, latencies_.load(agent.rank, span, unit));
  const std::int64_t wave = program::data_per_thread(p, agent.grain) * model.cu_wavefront_size;
  const std::int64_t group = wave * agent.waves * agent.unroll;
  const std::int64_t lead_batches = (p.bytes + group - 1) / group;
  const std::int64_t rest_batches = p.bytes > wave ? (p.bytes - wave + group - 1) / group : 0;
  const std::int64_t first_store =
      std::min(agent.lead, rest_batches > 0 ? agent.rest : agent.lead) + batch;
  agent.lead = std::max(agent.lead + batch * lead_batches, ready);
  if (rest_batches > 0) agent.rest = std::max(agent.rest + batch * rest_batches, ready);
  for (const Span& span : p.src) account(agent, span, p.bytes, true);
  for (const Span& span : p.dst) {
    account(agent, span, p.bytes, false);
    std::span<const int> targets(&span.rank, 1);
    if (span.rank < 0) targets = program_.groups()[index(span.group)];
    for (const int target : targets) {
      const std::int64_t there =
          span.rank < 0 ? 0 : latencies_.store_arrival(agent.rank, target, unit);
      const std::int64_t back = span.rank < 0 ? 0 : latencies_.acknowledgement(agent.rank, target);
      agent.stores_lead = std::max(agent.stores_lead, agent.lead + there + back);
      if (rest_batches > 0) agent.stores = std::max(agent.stores, agent.rest + there + back);
      if (is_packet(span.access)) {
        const std::int64_t at = std::max(first_store, ready) + there;
        const std::int64_t begin = offset_of(span);
        packets_[space(target, span)].add(begin, begin + memory(span, p.bytes), at);
      }
    }
  }
  return true;
}

std::tuple<int, std::int32_t, std::int64_t> BoundWalk::space(int rank, const Span& span) const {
  return {rank % period_, span.buffer, span.flag};
}

void BoundWalk::account(const WalkedAgent& agent, const Span& span, std::int64_t bytes, bool load) {
  const int rank = agent.rank;
  const std::int64_t size = memory(span, bytes);
  const std::int64_t line = machine_.model(rank).line_size.count;
  const std::int64_t requests = (size + line - 1) / line;
  if (span.rank < 0)
    return traffic_.add_group(rank, span.group, load, size * agent.members(),
                              requests * agent.members());
  carry(agent, rank, span.rank, load ? 0 : size, requests);
  carry(agent, span.rank, rank, load ? size : 0, requests);
}

}  // namespace hemiola::sim
