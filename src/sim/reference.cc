// The reference engine: set-up, the event loop, progress, the result.

#include "sim/reference.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <set>
#include <utility>

namespace hemiola::sim {
namespace {
std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}
constexpr std::int64_t kAlignment = 2 << 20;  ///< buffers start at multiples of a large page
}  // namespace

Reference::Reference(const machine::Machine& machine, const program::Program& program,
                     const Options& options)
    : machine_(machine), program_(program), options_(options), fabric_(machine, program.ranks) {
  if (program.ranks > kMostRanks)
    throw Failure("the reference engine takes at most " + std::to_string(kMostRanks) +
                  " ranks, not " + std::to_string(program.ranks));
  line_size_ = machine.model(0).line_size.count;
  sector_ = std::min(machine.model(0).sector_size.count, line_size_);
  repetitions_ = options.iterations > 0 ? options.warmup + options.iterations : 1;
  std::int64_t next = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    buffer_base_.push_back(next);
    std::int64_t bytes = 0;
    for (int rank = 0; rank < program.ranks; ++rank) {
      bytes = std::max(bytes, program.memory_bytes(static_cast<std::int32_t>(b), rank));
    }
    next += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  flag_base_ = next;
  barrier_base_ = static_cast<std::int32_t>(program.semaphores.size());
  for (int rank = 0; rank < program.ranks; ++rank) {
    const machine::GpuModel& model = machine.model(rank);
    GpuState gpu;
    gpu.l2 = Tags(model.l2_size.count / line_size_, model.l2_ways);
    gpu.msc = Tags(model.msc_size.count / line_size_, model.msc_ways);
    for (const program::Semaphore& semaphore : program.semaphores)
      gpu.semaphores.push_back({semaphore.initial, {}});
    gpu.semaphores.resize(gpu.semaphores.size() + index(program.barriers));
    gpus_.push_back(std::move(gpu));
    RankState state;
    state.cus.resize(index(model.cu_count));
    for (Cu& cu : state.cus) cu.l1 = Tags(model.l1_size.count / line_size_, model.l1_ways);
    ranks_.push_back(std::move(state));
  }
  for (int rank = 0; rank < program.ranks; ++rank) make_groups(rank);
  make_engines();
}

// Events that make progress by themselves; those of a request are counted with the request, and so
// are picks and credits, which matter only to requests (polls alone must not look like progress).
bool Reference::is_progress(EventKind kind, std::int32_t b) {
  switch (kind) {
    case kWave:
      return b != 1;
    case kDispatch:
    case kQueue:
    case kProxy:
    case kEngine:
    case kEngineDone:
    case kKernelStart:
    case kStreamNext:
    case kComputed:
      return true;
    default:
      return false;
  }
}

void Reference::push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b,
                     std::uint32_t tag, std::uint32_t phase) {
  if (is_progress(kind, b)) ++active_;
  events_.push(time, phase << 28 | tag, kind, a, b);
}

std::int32_t Reference::allocate(bool polling) {
  const std::int32_t id = requests_.take();
  requests_[index(id)].polling = polling;
  if (!polling) ++active_;
  return id;
}

void Reference::release(std::int32_t id) {
  Request& request = requests_[index(id)];
  if (!request.polling) --active_;
  if (request.detail >= 0) details_.give_back(request.detail);
  request.spent = {};  // others may share it
  requests_.give_back(id);
}

std::int32_t Reference::keep(const Spent& spent) {
  const std::int32_t id = kept_.take();
  kept_[index(id)] = spent;
  return id;
}

Spent Reference::take(std::int32_t kept) {
  kept_.give_back(kept);
  return std::move(kept_[index(kept)]);
}

void Reference::handle(const Event& event) {
  const auto kind = static_cast<EventKind>(event.kind);
  const std::int64_t now = event.time;
  const std::uint32_t tag = event.order & ((1U << 28) - 1);
  if (is_progress(kind, event.b)) --active_;
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
      complete(event.a, now);
      return;
    case kSwitch:
      at_switch(event.a, now);
      return;
    case kAnswer:
      answer_parent(event.a, now);
      return;
    case kRetry: {
      Request& request = requests_[index(event.a)];
      request.ready = true;
      request.hop = 0;
      issue(event.a, now);
      return;
    }
    case kWave:
      if (event.b == 1) {
        poll_round(event.a, now);
      } else {
        run_wave(event.a, now);
      }
      return;
    case kPick:
      pick(event.a, now);
      return;
    case kCredit:
      ++fabric_.arbiters[index(fabric_.servers[index(event.a)].arbiter)].credits;
      ++counters_.credits_returned;
      schedule_pick(event.a, std::max(now, fabric_.servers[index(event.a)].free));
      return;
    case kDispatch:
      dispatch(event.a, now);
      return;
    case kComputed:
      computed(event.a, now);
      return;
    case kKernelStart: {
      const Spent spent = take(event.b);
      if (tag == ~0U >> 4) {
        start_repetition(event.a, now, spent);
      } else {
        start_item(event.a, static_cast<std::int32_t>(tag), now, spent);
      }
      return;
    }
    case kStreamNext:
      item_done(event.a, static_cast<std::int32_t>(tag), now, take(event.b));
      return;
    case kQueue:
      next_of_queue(event.a, now);
      return;
    case kProxy:
      at_proxy(event.a, now);
      return;
    case kEngine:
      if (event.b >= 0) {
        engines_[index(event.a)].queue.push_back(event.b);
        if (!engines_[index(event.a)].active) engine_start(event.a, now);
      } else {
        engine_inject(event.a, now);
      }
      return;
    case kEngineDone:
      engine_done(event.a, event.b, now);
      return;
  }
}

// Most of the time goes into waiting for memory that left the cache since it was used last: the
// requests of the bucket that comes next, and what those of this one are about to touch.
void Reference::prefetch() const {
  for (const Event& next : events_.bucket()) {
    if (next.kind == kHop) {
      const Request& request = requests_[index(next.a)];
      __builtin_prefetch(&fabric_.servers[index(request.base + request.hops[request.hop].server)]);
    } else if (next.kind == kLegEnd) {
      const Request& request = requests_[index(next.a)];
      const int rank = request.reads_source ? request.source : request.target;
      const GpuState& gpu = gpus_[index(rank)];
      gpu.l2.prefetch(request.line);
      gpu.pending.prefetch(request.line);
      __builtin_prefetch(&fabric_.servers[index(
          fabric_.gpu_base[index(rank)] + fabric_.layout[index(rank)]->slice + request.slice)]);
    }
  }
  for (const Event& next : events_.next_bucket()) {
    if (next.kind > kComplete) continue;
    const char* request = reinterpret_cast<const char*>(&requests_[index(next.a)]);
    __builtin_prefetch(request);
    __builtin_prefetch(request + 64);
  }
}

Result Reference::run() {
  for (int rank = 0; rank < program_.ranks; ++rank) {
    const machine::GpuModel& model = machine_.model(rank);
    const std::int64_t skew =
        index(rank) < options_.skew.size() ? options_.skew[index(rank)].fs : 0;
    const std::int64_t latency = std::max<std::int64_t>(1, options_.launch == Launch::graph
                                                               ? model.launch_graph_latency.fs
                                                               : model.launch_stream_latency.fs);
    Spent spent;
    spent.charge(Reason::skew, skew);
    spent.charge(Reason::launch, latency);
    push(skew + latency, kKernelStart, rank, keep(spent), ~0U >> 4);
  }
  while (ranks_done_ < program_.ranks) {
    if (events_.empty()) report_deadlock();
    if (events_.closed()) {
      events_.open();
      prefetch();
    }
    const Event event = events_.pop();
    now_ = event.time;
    ++counters_.events;
    handle(event);
    // Polls alone: after every waiting wavefront has polled several times, look for a deadlock.
    quiet_ = active_ == 0 ? quiet_ + 1 : 0;
    if (quiet_ > 1000 + 50 * static_cast<std::int64_t>(waves_.size())) {
      check_progress();
      quiet_ = 0;
    }
  }
  // Credits and copies that nobody waits for are still on their way: they count, but take no time.
  while (!events_.empty()) handle(events_.pop());
  Result result;
  fill_result(result);
  return result;
}

// Only polls have been under way for long, so values do not change any more: somebody must already
// have what it waits for (and find out with its next poll); otherwise nothing will ever happen
// again.
void Reference::check_progress() {
  std::set<std::int32_t> without_packets;
  for (const GpuState& gpu : gpus_) {
    gpu.packets.for_each([&](std::int64_t, const PacketLine& packet) {
      without_packets.insert(packet.watches.begin(), packet.watches.end());
    });
  }
  for (std::size_t w = 0; w < waves_.size(); ++w) {
    const Wave& wave = waves_[w];
    if (wave.waiting == Waiting::loads && !without_packets.contains(static_cast<std::int32_t>(w)))
      return;
    if (wave.waiting != Waiting::poll) continue;
    const bool all =
        std::all_of(wave.watched.begin(), wave.watched.end(), [&](const Watched& watched) {
          return watched.satisfied ||
                 gpus_[index(watched.id.rank)].semaphores[index(watched.id.index)].value >=
                     watched.target;
        });
    if (all) return;
  }
  report_deadlock();
}

void Reference::report_deadlock() {
  Diagnostics diagnostics;
  int shown = 0;
  std::int64_t blocked = 0;
  std::string first;
  for (const Workgroup& group : groups_) {
    for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
      Wave& wave = waves_[index(w)];
      if (wave.waiting != Waiting::poll && wave.waiting != Waiting::loads &&
          wave.waiting != Waiting::flush)
        continue;
      ++blocked;
      if (shown >= 8) continue;
      const Step* step = step_of(wave);
      if (step == nullptr) continue;
      const program::Op& op = program_.bodies[index(group.body)].ops[index(step->primitive.op)];
      std::string text = "rank " + std::to_string(group.rank) + " workgroup " +
                         std::to_string(group.index) + " op " + std::to_string(step->primitive.op) +
                         " (" + std::string(program::name_of(op.kind)) + ")";
      std::string reason;
      for (const Watched& watched : wave.watched) {
        if (wave.waiting != Waiting::poll || watched.satisfied) continue;
        const std::int64_t value =
            gpus_[index(watched.id.rank)].semaphores[index(watched.id.index)].value;
        if (value >= watched.target) continue;
        const bool barrier = watched.id.index >= barrier_base_;
        reason +=
            (reason.empty() ? " waits for " : ", ") +
            (barrier ? "barrier " + std::to_string(watched.id.index - barrier_base_)
                     : "semaphore '" + program_.semaphores[index(watched.id.index)].name + "'") +
            " of rank " + std::to_string(watched.id.rank) + " to reach " +
            std::to_string(watched.target) + ", it is " + std::to_string(value) +
            " and nobody will signal it";
      }
      if (wave.waiting == Waiting::loads) reason = " waits for packets that nobody sends";
      if (reason.empty()) continue;
      ++shown;
      diagnostics.error(text + reason,
                        {.file = program_.source, .line = 0, .column = 0, .pointer = op.where});
    }
  }
  for (const CopyQueue& queue : queues_) {
    if (queue.primitive.kind != program::PrimitiveKind::wait || queue.primitive.semaphores.empty())
      continue;
    const program::SemaphoreId id = queue.primitive.semaphores.front();
    const program::Op& op = program_.bodies[index(queue.body)].ops[index(queue.primitive.op)];
    diagnostics.error("the copy queue of rank " + std::to_string(queue.rank) +
                          " waits for semaphore '" + program_.semaphores[index(id.index)].name +
                          "' of rank " + std::to_string(id.rank),
                      {.file = program_.source, .line = 0, .column = 0, .pointer = op.where});
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::size_t s = 0; s < ranks_[rank].streams.size(); ++s) {
      const StreamRun& run = ranks_[rank].streams[s];
      if (!run.waits) continue;
      const program::Stream& items = program_.codes[index(program_.code_of[rank])].streams[s];
      diagnostics.error("rank " + std::to_string(rank) + " stream " + std::to_string(s) +
                            " waits for event " + std::to_string(items[run.item].index) +
                            " that nobody records",
                        {.file = program_.source, .line = 0, .column = 0, .pointer = {}});
    }
  }
  const std::string head = "a wait cannot end: at " + to_string(Time{now_}) +
                           " nothing can happen any more (" + std::to_string(blocked) +
                           " wavefronts wait)";
  Diagnostics all;
  all.error(head, {.file = program_.source, .line = 0, .column = 0, .pointer = {}},
            "`hemiola check` shows the cycle or the missing signal");
  all.append(diagnostics);
  throw Failure(all, ExitCode::deadlock);
}

void Reference::fill_result(Result& result) {
  std::int64_t end = 0, warm = 0;
  for (const RankState& rank : ranks_) {
    end = std::max(end, rank.end);
    warm = std::max(warm, rank.warm_end);
  }
  const bool period = options_.iterations > 0;
  result.time = {period ? (end - warm) / options_.iterations : end};
  for (const RankState& rank : ranks_) {
    Attribution spent = rank.spent.attribution();
    spent[static_cast<std::size_t>(Reason::finished)] += end - rank.end;
    assert(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}) == end);
    if (period && end > 0) {
      // Shares over the whole run, launch included, scaled to the period; the largest takes the
      // remainder.
      std::int64_t sum = 0;
      for (std::int64_t& fs : spent) {
        fs = static_cast<std::int64_t>(static_cast<__int128>(fs) * result.time.fs / end);
        sum += fs;
      }
      *std::max_element(spent.begin(), spent.end()) += result.time.fs - sum;
    }
    result.attribution.push_back(spent);
    result.rank_end.push_back({period ? result.time.fs : rank.end});
  }
  result.line_hops = result.visited_hops = hops_;
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const Server& server = fabric_.servers[index(fabric_.link_base) + l];
    if (server.requests == 0) continue;
    const machine::Link& link = machine_.links[l];
    const std::int64_t each = std::max<std::int64_t>(1, server.busy / server.requests);
    const std::int64_t queue = server.arbiter >= 0
                                   ? fabric_.arbiters[index(server.arbiter)].max_queue
                                   : (server.max_wait + each - 1) / each;
    result.links.push_back({machine_.nodes[index(link.from)].name,
                            machine_.nodes[index(link.to)].name, link.lane,
                            machine_.link_classes[index(link.link_class)].name, server.payload,
                            server.wire, server.requests, Time{server.busy}, queue});
  }
  const Counters& c = counters_;
  result.counters = {{"requests.loads", c.loads},
                     {"requests.stores", c.stores},
                     {"requests.flags", c.flags},
                     {"requests.polls", c.polls},
                     {"requests.packet_retries", c.packet_retries},
                     {"requests.remote_loads", c.remote_loads},
                     {"requests.remote_stores", c.remote_stores},
                     {"requests.multicasts", c.multicasts},
                     {"requests.bursts", c.bursts},
                     {"l1.hits", c.l1_hits},
                     {"l1.misses", c.l1_misses},
                     {"l2.hits", c.l2_hits},
                     {"l2.misses", c.l2_misses},
                     {"l2.write_backs", c.l2_write_backs},
                     {"msc.hits", c.msc_hits},
                     {"msc.misses", c.msc_misses},
                     {"hbm.read_bytes", c.hbm_read},
                     {"hbm.written_bytes", c.hbm_written},
                     {"stores.injected_bytes", c.injected},
                     {"stores.delivered_bytes", c.delivered},
                     {"credits.taken", c.credits_taken},
                     {"credits.returned", c.credits_returned}};
}

}  // namespace hemiola::sim
