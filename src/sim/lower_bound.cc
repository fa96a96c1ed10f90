// Two lower bounds of a program on a machine. Bandwidth: its wire bytes over each cut. Latency: its
// dependency path with every request alone on its way.
//
// Both hold for every engine, because they leave things out only: queueing, contention, partial
// lines, the time between polls. A simulated time below them is an internal error.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "program/primitive.h"
#include "sim/classes.h"
#include "sim/fold.h"
#include "sim/host_calls.h"
#include "sim/index.h"
#include "sim/lower_bound.h"
#include "sim/lower_bound_parts.h"
#include "sim/simulate.h"

namespace hemiola::sim {
namespace {

using program::Access;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

/// Walks all workgroups once, each as two agents (the wavefront that synchronises, and the others),
/// and counts traffic and unloaded time.
class Walk {
 public:
  /// The ranks of a fold, at whose addresses all find what is theirs.
  Walk(const machine::Machine& machine, const program::Bound& program, const Options& options,
       const Addresses& addresses, int period)
      : machine_(machine),
        program_(program),
        options_(options),
        addresses_(&addresses),
        period_(period),
        traffic_(machine),
        latencies_(machine, program) {}
  /// The first member of each class; only the latency is bounded.
  Walk(const machine::Machine& machine, const program::Bound& program, const Options& options,
       const Classes& classes)
      : machine_(machine),
        program_(program),
        options_(options),
        classes_(&classes),
        period_(program.ranks()),
        traffic_(machine),
        latencies_(machine, program) {}

  LowerBound run() {
    if (program_.linked() != nullptr) {
      start_hosts();
    } else if (classes_ != nullptr) {
      for (const AgentClass& agents : classes_->agents()) add_class(agents);
    } else {
      for (int rank = 0; rank < period_; ++rank) add_rank(rank);
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (Host& host : hosts_) moved = advance(host) || moved;
      for (std::size_t a = first_open_; a < agents_.size(); ++a)
        moved = advance(agents_[a]) || moved;
    }
    LowerBound bound;
    if (classes_ == nullptr) {
      count_posts();
      traffic_.repeat(period_, program_.ranks());
      bound = traffic_.bound();
    }
    bound.moved_bytes = moved_bytes_;
    const bool complete =
        std::all_of(agents_.begin(), agents_.end(),
                    [](const Agent& agent) { return agent.done; }) &&
        std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.done; });
    std::int64_t end = 0;
    for (const Agent& agent : agents_) end = std::max(end, agent.end);
    for (const Host& host : hosts_) end = std::max(end, host.time);
    if (options_.iterations > 0) {
      const machine::GpuModel& model = machine_.model(0);
      end = options_.launch == Launch::graph ? model.launch_graph_interval.fs
                                             : model.launch_stream_interval.fs;
      end = end * (options_.iterations - 1) / options_.iterations;
    }
    if (complete) bound.latency = {end};
    return bound;
  }

 private:
  using Agent = WalkedAgent;

  std::int64_t start_of(int rank) const {
    const machine::GpuModel& model = machine_.model(rank);
    const std::int64_t skew = start_delay(machine_, program_, options_, rank);
    return skew + (options_.launch == Launch::graph ? model.launch_graph_latency.fs
                                                    : model.launch_stream_latency.fs);
  }

  // --- Jobs: streams run item after item. (Those of a program alone are all taken to begin at the
  // start, which is a lower bound, too.)

  /// A stream of a rank of a job.
  struct Host {
    int rank = 0;
    const program::Stream* items = nullptr;
    std::size_t item = 0;
    std::int64_t start = 0, time = 0;
    std::size_t first = 0, last = 0;  ///< agents under way
    bool done = false;
  };

  void start_hosts() {
    for (int rank = 0; rank < period_; ++rank)
      for (const program::Stream& stream : program_.code(rank).streams)
        hosts_.push_back(
            {.rank = rank, .items = &stream, .start = start_of(rank), .time = start_of(rank)});
    totals_.resize(index(program_.ranks()));
  }

  bool advance(Host& host) {
    bool moved = false;
    while (!host.done) {
      for (std::size_t a = host.first; a < host.last; ++a)
        if (!agents_[a].done) return moved;
      for (; host.first < host.last; ++host.first) {
        Agent& agent = agents_[host.first];
        host.time = std::max(host.time, agent.end);
        agent.cursor->leave(totals_[index(host.rank)]);
        agent.cursor.reset();
      }
      while (first_open_ < agents_.size() && agents_[first_open_].done &&
             agents_[first_open_].cursor == nullptr)
        ++first_open_;
      host.done = host.item == host.items->size();
      if (host.done || !start(host, (*host.items)[host.item])) return moved;
      ++host.item;
      moved = true;
    }
    return moved;
  }

  /// False: it has to wait.
  bool start(Host& host, const program::StreamItem& item) {
    const std::pair event{host.rank, item.index};
    switch (item.kind) {
      case program::StreamItem::Kind::kernel: {
        const program::Kernel& kernel = program_.kernels()[index(item.index)];
        host.first = agents_.size();
        for (std::size_t w = 0; w < kernel.bodies.size(); ++w)
          add_workgroup(host.rank, kernel, w, item.frame, host.time);
        host.last = agents_.size();
        break;
      }
      case program::StreamItem::Kind::engine:
        host.first = agents_.size();
        add_queue(host.rank, item.index, item.frame, host.time);
        host.last = agents_.size();
        break;
      case program::StreamItem::Kind::host:
        host.time += item.duration.fs;
        break;
      case program::StreamItem::Kind::until:
        host.time = std::max(host.time, host.start + item.duration.fs);
        break;
      case program::StreamItem::Kind::event_record:
        events_[event] = host.time;
        break;
      case program::StreamItem::Kind::event_wait: {
        const auto recorded = events_.find(event);
        if (recorded == events_.end()) return false;
        host.time = std::max(host.time, recorded->second);
        break;
      }
      default:
        break;
    }
    for (std::size_t a = host.first; a < host.last; ++a)
      agents_[a].cursor->restart(0, totals_[index(host.rank)]);
    return true;
  }

  void add_rank(int rank) {
    for (const program::Stream& stream :
         program_.codes()[index(program_.code_of()[index(rank)])].streams) {
      for (const program::StreamItem& item : stream) {
        if (item.kind == program::StreamItem::Kind::engine)
          add_queue(rank, item.index, 0, start_of(rank));
        if (item.kind != program::StreamItem::Kind::kernel) continue;
        const program::Kernel& kernel = program_.kernels()[index(item.index)];
        for (std::size_t w = 0; w < kernel.bodies.size(); ++w)
          add_workgroup(rank, kernel, w, 0, start_of(rank));
      }
    }
  }

  void add_class(const AgentClass& agents) {
    const sim::Agent& first = agents.first;
    if (first.kernel < 0) {
      add_queue(first.rank, first.body, 0, start_of(first.rank));
    } else {
      add_workgroup(first.rank, program_.kernels()[index(first.kernel)], index(first.workgroup), 0,
                    start_of(first.rank));
    }
    agents_.back().members = agents.members;
  }

  void add_queue(int rank, std::int32_t body, std::int32_t frame, std::int64_t start) {
    Agent agent;
    agent.rank = rank;
    agent.copies = true;
    agent.cursor = std::make_unique<program::Cursor>(program_, rank, body, frame);
    agent.lead = agent.rest = start;
    agents_.push_back(std::move(agent));
  }

  void add_workgroup(int rank, const program::Kernel& kernel, std::size_t w, std::int32_t frame,
                     std::int64_t start) {
    const machine::GpuModel& model = machine_.model(rank);
    Agent agent;
    agent.rank = rank;
    agent.cursor = std::make_unique<program::Cursor>(program_, rank, kernel.bodies[w], frame);
    agent.waves = (kernel.threads_in(w) + model.cu_wavefront_size - 1) / model.cu_wavefront_size;
    agent.posts_apart = kernel.posts_apart && agent.waves > 1;
    if (agent.posts_apart) --agent.waves;
    agent.grain = kernel.grain;
    agent.bare = kernel.bare;
    agent.unroll = std::max<std::int64_t>(1, kernel.unroll > 0 ? kernel.unroll : model.cu_unroll);
    agent.lead = agent.rest = agent.poster =
        start + kernel.block_number(w) * model.dispatch_interval.fs + model.dispatch_latency.fs;
    agents_.push_back(std::move(agent));
  }

  /// Of what stands for it: in a fold the semaphore of rank modulo period. Semaphores of a class
  /// are one; of the members of a class equally many signal each.
  Signals& signals_of(program::SemaphoreId id) {
    return signals_[classes_ == nullptr ? pair_number(id.rank % period_, id.index)
                                        : static_cast<std::int64_t>(classes_->semaphore_class(id))];
  }
  std::int64_t signallers(const Agent& agent, program::SemaphoreId id) const {
    if (classes_ == nullptr) return 1;
    const std::int64_t alike = classes_->semaphores_in(classes_->semaphore_class(id));
    return std::max<std::int64_t>(1, agent.members / alike);
  }
  void arrive(const Agent& agent, program::SemaphoreId id, std::int64_t value, std::int64_t at) {
    signals_of(id).add((agent.rank - id.rank + program_.ranks()) % program_.ranks(),
                       value * signallers(agent, id), at);
  }

  // Interprets primitives until one has to wait; true if any was done.
  bool advance(Agent& agent) {
    bool moved = false;
    while (!agent.done) {
      if (!agent.loaded) {
        if (!agent.cursor->next(agent.primitive)) {
          agent.done = true;
          agent.end = std::max({agent.lead, agent.rest, agent.stores, agent.stores_lead,
                                agent.stores_joined, agent.posts_apart ? agent.poster : 0}) +
                      (agent.copies ? 0 : machine_.model(agent.rank).launch_end_latency.fs);
          return true;
        }
        agent.loaded = true;
      }
      if (!(agent.copies ? interpret_copy(agent) : interpret(agent))) return moved;
      agent.loaded = false;
      moved = true;
    }
    return moved;
  }

  void overhead(Agent& agent, bool all) {
    if (agent.last_op == agent.primitive.op) return;
    agent.last_op = agent.primitive.op;
    const std::int64_t fs = agent.bare ? 0 : machine_.model(agent.rank).sync_op_overhead.fs;
    if (fs <= 1) return;
    agent.lead += fs;
    if (all) agent.rest += fs;
  }

  bool interpret(Agent& agent) {
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
        if (!p.posted && !move(agent)) return false;
        for (const auto* spans : {&p.src, &p.dst})
          for (const Span& span : *spans) moved_bytes_ += memory(span, p.bytes);
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
        if (!reached(p, seen)) return false;
        overhead(agent, false);
        const std::int64_t back = model.l2_latency.fs + latencies_.on_chip(agent.rank);
        agent.accepted = std::max(agent.lead + latencies_.on_chip(agent.rank), seen);
        agent.lead = agent.accepted + back;
        return true;
      }
      case PrimitiveKind::barrier: {
        // All workgroups of the barrier: the last arrival releases them.
        auto& round = rounds_[{agent.rank, p.barrier_id}];
        return round.join(agent, p.workgroups);
      }
      case PrimitiveKind::compute:
        overhead(agent, false);
        if (p.posted) {
          agent.compute_end = std::max(agent.compute_end, agent.lead) + p.duration.fs;
        } else {
          agent.lead += p.duration.fs;
        }
        return true;
    }
    return true;
  }

  // Of the wavefront that posts.
  void interpret_post(Agent& agent) {
    const Primitive& p = agent.primitive;
    if (p.kind == PrimitiveKind::signal && p.swap) {  // by the access that ended the wait before it
      for (const program::SemaphoreId id : p.semaphores) arrive(agent, id, 1, agent.accepted);
      return;
    }
    if (p.kind == PrimitiveKind::post) return post(agent);
    overhead(agent, false);
    if (p.kind == PrimitiveKind::flush) {
      agent.lead = std::max(agent.lead, agent.posted);
      for (const std::size_t post : agent.posts) posts_[post].flushed = true;
      return;
    }
    if (p.release || p.kind == PrimitiveKind::fence) release(agent);
    for (std::size_t s = 0; s < p.semaphores.size(); ++s)
      flag(agent, p.semaphores[s], p.values[s], agent.lead);
  }

  // Whether the wait can end, and when its last flag can have arrived.
  bool reached(const Primitive& p, std::int64_t& seen) {
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
      if (classes_ == nullptr && program_.linked() == nullptr &&
          p.semaphores[s].index >= program_.program().tail_semaphore(0))
        signals.forget_before(needed);
    }
    for (const program::SemaphoreId id : p.semaphores) {
      if (p.consume) ++signals_of(id).consumed;
    }
    return true;
  }

  // A copy queue: one copy after the other, its flags behind it.
  bool interpret_copy(Agent& agent) {
    const Primitive& p = agent.primitive;
    const machine::GpuModel& model = machine_.model(agent.rank);
    switch (p.kind) {
      case PrimitiveKind::move:
      case PrimitiveKind::post: {
        const int from = p.bytes > 0 ? p.src.front().rank : agent.rank;
        const int to = p.bytes > 0 ? p.dst.front().rank : p.semaphores.front().rank;
        if (from != to) traffic_.add(from, to, std::max<std::int64_t>(1, p.bytes), 1);
        moved_bytes_ += p.bytes;
        if (!p.remote)
          agent.lead += model.dma_control_latency.fs + model.dma_schedule_latency.fs +
                        model.dma_sync_latency.fs;
        agent.lead += latencies_.links(from, to, 1);
        for (const program::SemaphoreId id : p.semaphores) arrive(agent, id, 1, agent.lead);
        return true;
      }
      case PrimitiveKind::signal:
        for (std::size_t s = 0; s < p.semaphores.size(); ++s) {
          const std::int64_t at =
              agent.lead + latencies_.links(agent.rank, p.semaphores[s].rank, 0);
          arrive(agent, p.semaphores[s], p.values[s], at);
        }
        return true;
      case PrimitiveKind::wait: {
        std::int64_t seen = 0;
        if (!reached(p, seen)) return false;
        agent.lead = std::max(agent.lead, seen);
        return true;
      }
      default:
        return true;
    }
  }

  void release(Agent& agent) {
    agent.lead = std::max({agent.lead, agent.stores_joined, agent.stores_lead});
    const std::int64_t fence = machine_.model(agent.rank).sync_fence_latency.fs;
    agent.lead += fence > 1 ? fence : 0;
  }

  // A descriptor is known to be done before the end if somebody waited for its signal, for that of
  // a later one of the same workgroup to the same rank (they are done in order), or flushed.
  void count_posts() {
    std::set<std::pair<std::size_t, int>> awaited;
    for (auto post = posts_.rbegin(); post != posts_.rend(); ++post) {
      for (const auto& [id, ordinal] : post->signals) {
        if (signals_of(id).needed > ordinal) awaited.insert({post->agent, post->to});
      }
      if (post->flushed) awaited.insert({post->agent, post->to});
      if (awaited.contains({post->agent, post->to}))
        traffic_.add(post->from, post->to, post->bytes, 1);
    }
  }

  void flag(const Agent& agent, program::SemaphoreId id, std::int64_t value, std::int64_t at) {
    const int from = agent.rank;
    const std::int64_t sector = machine_.model(from).sector_size.count;
    arrive(agent, id, value, at + latencies_.store_arrival(from, id.rank, sector));
    traffic_.add(from, id.rank, sector, 1);
    traffic_.add(id.rank, from, 0, 1);
  }

  void post(Agent& agent) {
    overhead(agent, false);
    release(agent);
    const Primitive& p = agent.primitive;
    const machine::GpuModel& model = machine_.model(agent.rank);
    const int to = p.bytes > 0 ? p.dst.front().rank : p.semaphores.front().rank;
    const std::int64_t factor = p.bytes > 0 && p.src.front().access != Access::plain ? 2 : 1;
    moved_bytes_ += p.bytes * factor;
    std::int64_t time = agent.lead + model.proxy_fifo_latency.fs +
                        (p.remote ? model.proxy_network_time.fs : model.proxy_request_time.fs);
    const auto number = static_cast<std::size_t>(&agent - agents_.data());
    Post record{agent.rank, to, number, std::max<std::int64_t>(1, p.bytes * factor), false, {}};
    for (const program::SemaphoreId id : p.semaphores) {
      record.signals.emplace_back(id, signals_of(id).count());
    }
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
    if (p.bytes > 0 && to != agent.rank) {
      time += latencies_.links(agent.rank, to, 1) + latencies_.links(to, agent.rank, 0);
    }
    agent.posted = std::max(agent.posted, time);
    for (const program::SemaphoreId id : p.semaphores) flag(agent, id, 1, time);
  }

  bool move(Agent& agent) {
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
    std::int64_t per_thread = agent.grain;
    for (const auto* spans : {&p.src, &p.dst}) {
      for (const Span& span : *spans) {
        per_thread = program::data_per_thread(span.access, per_thread);
      }
    }
    const std::int64_t wave = per_thread * model.cu_wavefront_size;
    const std::int64_t group = wave * agent.waves * agent.unroll;
    const std::int64_t lead_batches = (p.bytes + group - 1) / group;
    const std::int64_t rest_batches = p.bytes > wave ? (p.bytes - wave + group - 1) / group : 0;
    const std::int64_t first_store =
        std::min(agent.lead, rest_batches > 0 ? agent.rest : agent.lead) + batch;
    agent.lead = std::max(agent.lead + batch * lead_batches, ready);
    if (rest_batches > 0) agent.rest = std::max(agent.rest + batch * rest_batches, ready);
    for (const Span& span : p.src) account(agent.rank, span, p.bytes, true);
    for (const Span& span : p.dst) {
      account(agent.rank, span, p.bytes, false);
      std::span<const int> targets(&span.rank, 1);
      if (span.rank < 0) targets = program_.groups()[index(span.group)];
      for (const int target : targets) {
        const std::int64_t there =
            span.rank < 0 ? 0 : latencies_.store_arrival(agent.rank, target, unit);
        const std::int64_t back =
            span.rank < 0 ? 0 : latencies_.acknowledgement(agent.rank, target);
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

  /// Memory that packets of a flag are found in: FIFOs of like connections are one.
  std::tuple<int, std::int32_t, std::int64_t> space(int rank, const Span& span) const {
    if (classes_ == nullptr) return {rank % period_, span.buffer, span.flag};
    const std::int32_t tail = program_.tail_of(span.buffer);
    if (tail < 0) return {rank, span.buffer, span.flag};
    return {-1, classes_->semaphore_class({rank, tail}), span.flag};
  }
  std::int64_t offset_of(const Span& span) const {
    return addresses_ == nullptr ? span.offset : addresses_->offset_of(span);
  }
  static std::int64_t memory(const Span& span, std::int64_t bytes) {
    return program::memory_size(bytes, span.access);
  }

  void account(int rank, const Span& span, std::int64_t bytes, bool load) {
    const std::int64_t size = memory(span, bytes);
    const std::int64_t line = machine_.model(rank).line_size.count;
    const std::int64_t requests = (size + line - 1) / line;
    if (span.rank < 0) return;  // the switch multiplies and reduces: its links are not counted here
    traffic_.add(rank, span.rank, load ? 0 : size, requests);
    traffic_.add(span.rank, rank, load ? size : 0, requests);
  }

  const machine::Machine& machine_;
  const program::Bound& program_;
  const Options& options_;
  const Addresses* addresses_ = nullptr;
  const Classes* classes_ = nullptr;
  const int period_;  ///< ranks that are walked: the others behave as these do
  LinkTraffic traffic_;
  Latencies latencies_;
  std::vector<Agent> agents_;
  std::vector<Host> hosts_;              ///< of a job
  std::size_t first_open_ = 0;           ///< agents before are over and forgotten
  std::vector<program::Totals> totals_;  ///< by rank
  std::map<std::pair<int, std::int32_t>, std::int64_t> events_;  ///< by rank: recorded when
  std::int64_t moved_bytes_ = 0;
  LineMap<Signals> signals_;
  std::vector<Post> posts_;
  std::map<std::pair<int, std::int32_t>, BarrierRounds> rounds_;
  std::map<std::tuple<int, std::int32_t, std::int64_t>, PacketArrivals> packets_;
};

}  // namespace

LowerBound lower_bound(const machine::Machine& machine, const program::Bound& program,
                       const Options& options, const Addresses& addresses, const Fold& fold) {
  return Walk(machine, program, options, addresses, fold.period).run();
}

LowerBound lower_bound(const program::Bound& program, const Options& options) {
  const machine::Machine& machine = *program.machine();
  const Addresses addresses(program,
                            program::rotation_of(program, machine.model(0).line_size.count));
  Fabric fabric(machine);
  const Fold fold = fold_of(fabric, program, addresses.rotation(), options);
  return lower_bound(machine, program, options, addresses, fold);
}

Time latency_bound(const machine::Machine& machine, const program::Bound& program,
                   const Options& options, const Classes& classes) {
  return Walk(machine, program, options, classes).run().latency;
}

}  // namespace hemiola::sim
