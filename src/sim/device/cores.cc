// Cores: set-up, events of ranks, progress, the result.

#include "sim/device/cores.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <set>
#include <utility>

#include "sim/result/host_calls.h"
#include "sim/result/period_shares.h"
#include "sim/result/profile.h"

namespace hemiola::sim {
namespace {

std::vector<bool> watched_ranks(const program::Bound& program, const Options& options) {
  std::vector<bool> watched(index(program.ranks()));
  if (options.record == nullptr && options.replay == nullptr) return watched;
  for (const int rank : options.watched) {
    if (rank < 0 || rank >= program.ranks() || watched[index(rank)])
      throw Failure("there is no rank " + std::to_string(rank) + " of " +
                        std::to_string(program.ranks()) + " to watch, or it is named twice",
                    {.file = program.source()});
    watched[index(rank)] = true;
  }
  if (options.watched.empty())
    throw Failure("no rank is recorded or replayed", {.file = program.source()});
  return watched;
}

}  // namespace

Cores::Cores(const machine::Machine& machine, const program::Bound& program, const Options& options)
    : machine_(machine),
      program_(program),
      options_(options),
      watched_(watched_ranks(program, options)),
      addresses_(program, program::rotation_of(program, machine.model(0).line_size.count)),
      fabric_(machine),
      launches_(program),
      fold_(fold_of(fabric_, program, addresses_.rotation(), options)) {
  const auto simulated = [this](int rank) { return is_simulated(rank); };
  fabric_.add_gpus(program.ranks(), fold_.period, fold_.link_of, simulated);
  int first_other = -1;  // of a replay: it stands for all of them
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (first_other < 0 && !is_simulated(rank)) first_other = rank;
    home_.push_back(is_simulated(rank) ? rank % fold_.period : first_other);
  }
  if (program.ranks() > kMostRanks)
    throw Failure("an engine takes at most " + std::to_string(kMostRanks) + " ranks, not " +
                  std::to_string(program.ranks()));
  line_size_ = machine.model(0).line_size.count;
  sector_ = std::min(machine.model(0).sector_size.count, line_size_);
  line_shift_ = std::countr_zero(static_cast<std::uint64_t>(line_size_));
  sector_shift_ = std::countr_zero(static_cast<std::uint64_t>(sector_));
  repetitions_ = options.iterations > 0 ? options.warmup + options.iterations : 1;
  flag_spacing_ = machine.model(0).sync_flag_spacing.count;
  const std::int64_t flags = std::ssize(program.semaphores()) + program.barriers();
  const std::int64_t end = addresses_.end() + flag_spacing_ * flags;
  if (end / line_size_ >= INT32_MAX - (1 << 20))  // logs and states of waits are behind
    throw Failure("a simulated GPU's memory holds less than 2^31 lines, not " +
                      std::to_string(end / line_size_),
                  {.file = program.source()}, "run a smaller size");
  ranks_to_end_ =
      options.replay == nullptr ? fold_.period : static_cast<int>(options.watched.size());
  barrier_base_ = static_cast<std::int32_t>(program.semaphores().size());
  for (int rank = 0; rank < fold_.period; ++rank) {
    const machine::GpuModel& model = machine.model(rank);
    if (!is_simulated(rank) && rank != first_other) {  // it does what a profile says
      gpus_.emplace_back();
      ranks_.emplace_back();
      continue;
    }
    GpuState gpu;
    gpu.l2 = L2(model, line_size_);
    gpu.msc = Tags(model.msc_size.count / line_size_, model.msc_ways);
    for (const program::Semaphore& semaphore : program.semaphores())
      gpu.semaphores.push_back({semaphore.initial, {}});
    gpu.semaphores.resize(gpu.semaphores.size() + index(program.barriers()));
    for (Monitors* monitors : {&gpu.by_slices, &gpu.by_memory})
      monitors->used.resize(index(fabric_.layout[index(rank)]->slices));
    gpu.by_memory.log = 1;
    uncached_ = uncached_ || model.sync_uncached;
    monitors_ = monitors_ || model.sync_wait >= machine::WaitPolicy::monitor;
    gpus_.push_back(std::move(gpu));
    RankState state;
    state.cus.resize(index(model.cu_count));
    const auto room = [](std::int64_t most) { return most == 0 ? INT64_MAX : most; };
    for (std::size_t c = 0; c < state.cus.size(); ++c) {
      Cu& cu = state.cus[c];
      cu.rank = static_cast<std::int16_t>(rank);
      cu.number = static_cast<std::int16_t>(c);
      cu.l1 = Tags(model.l1_size.count / line_size_, model.l1_ways);
      cu.load_room = cu.load_slots = room(model.cu_max_outstanding);
      cu.store_room = room(model.cu_max_stores);
      cu.issue_interval = std::max<std::int64_t>(1, model.cu_issue_interval.fs);
    }
    for (std::int64_t bytes = 0; bytes <= line_size_ && !model.cu_peer_rate.is_ideal();
         bytes += sector_)
      state.peer_costs.push_back(model.cu_peer_rate.time_for(bytes).fs);
    ranks_.push_back(std::move(state));
  }
  for (int rank = 0; rank < fold_.period; ++rank)
    if (is_simulated(rank)) make_groups(rank);
  make_engines();
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

std::int32_t Cores::keep(const LatencyBreakdown& spent) {
  const std::int32_t id = kept_.take();
  kept_[index(id)] = spent;
  return id;
}

LatencyBreakdown Cores::take(std::int32_t kept) {
  kept_.give_back(kept);
  return std::move(kept_[index(kept)]);
}

// What an event of a rank means: see push() for `a` and `b`.
void Cores::handle_core(EventKind kind, std::int64_t now, std::int32_t a, std::int32_t b,
                        std::uint32_t tag) {
  switch (kind) {
    case kRetry: {
      Request& request = requests_[index(a)];
      request.ready = true;
      request.hop = 0;
      issue(a, now);
      return;
    }
    case kWave:
      if (b == 0)
        run_wave(a, now);
      else if (b == 1)
        poll_round(a, Look::again, now);
      else
        look_again(a, b - 2, now);
      return;
    case kWaves:
      run_waves(a, b, now);
      return;
    case kDispatch:
      dispatch(a, now);
      return;
    case kComputed:
      computed(a, now);
      return;
    case kKernelStart:
      return come_to(tag == ~0U >> 4 ? HostStep::repetition : HostStep::item, a,
                     static_cast<std::int32_t>(tag), now, take(b));
    case kStreamNext:
      return come_to(HostStep::finished, a, static_cast<std::int32_t>(tag), now, take(b));
    case kQueue:
      next_of_queue(a, now);
      return;
    case kProxy:
      at_proxy(a, now);
      return;
    case kEngine:
      if (b >= 0) {
        SendQueue& queue = engines_[index(a)].queue_of(descriptors_[index(b)]);
        queue.descriptors.push_back(b);
        if (!queue.active) engine_start(a, queue, now);
      } else {
        engine_inject(a, engines_[index(a)].queues[0], now);
      }
      return;
    case kEngineDone:
      engine_done(a, b, now);
      return;
    case kPosted:
      posted_done(a, take(b), now);
      return;
    case kNap:
      wake_naps(a, now);
      return;
    default:
      return;
  }
}

void Cores::start() {
  for (int rank = 0; rank < fold_.period; ++rank) {
    if (!is_simulated(rank)) {
      ranks_[index(rank)].end = 0;
      continue;
    }
    const FirstCall call = first_call(machine_, program_, options_, rank);
    ranks_[index(rank)].launched = call.skew + call.called;
    LatencyBreakdown spent;
    spent.charge(Reason::skew, call.skew);
    spent.charge(Reason::software, call.called);
    spent.charge(Reason::launch, call.latency);
    push(call.start(), kKernelStart, rank, keep(spent), ~0U >> 4);
  }
}

// Only polls have been under way for long, so values do not change any more: somebody must already
// have what it waits for (and find out with its next poll); otherwise nothing will ever happen
// again.
void Cores::check_progress() {
  std::set<std::int32_t> without_packets;
  for (const GpuState& gpu : gpus_) {
    gpu.packets.for_each([&](std::int64_t, const PacketLine& packet) {
      for (const std::int32_t id : packet.watches)
        without_packets.insert(requests_[index(id)].wave);
    });
  }
  for (std::size_t w = 0; w < waves_.size(); ++w) {
    const Wave& wave = waves_[w];
    const auto number = static_cast<std::int32_t>(w);
    if (wave.waiting == Waiting::stores) return;  // behind polls that wait for slots
    if (wave.waiting == Waiting::loads && !without_packets.contains(number) &&
        !waits_in_vain(number))
      return;
    if (wave.waiting != Waiting::poll) continue;
    const bool all = std::ranges::all_of(wave.watched, [&](const Watched& watched) {
      return watched.satisfied ||
             gpu(watched.id.rank).semaphores[index(watched.id.index)].value >= watched.target;
    });
    if (all) return;
  }
  report_deadlock();
}

std::string Cores::why_not(program::SemaphoreId) const {
  return " and nobody will signal it";
}

std::string Cores::why_not(std::int32_t) const {
  return " waits for packets that nobody sends";
}

void Cores::report_deadlock() {
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
      const program::Op& op = program_.bodies()[index(group.body)].ops[index(step->primitive.op)];
      std::string text = "rank " + std::to_string(group.rank) + " workgroup " +
                         std::to_string(group.index) + " op " + std::to_string(step->primitive.op) +
                         " (" + std::string(program::name_of(op.kind)) + ")";
      std::string reason;
      for (const Watched& watched : wave.watched) {
        if (wave.waiting != Waiting::poll || watched.satisfied) continue;
        const std::int64_t value = gpu(watched.id.rank).semaphores[index(watched.id.index)].value;
        if (value >= watched.target) continue;
        const bool barrier = watched.id.index >= barrier_base_;
        reason +=
            (reason.empty() ? " waits for " : ", ") +
            (barrier ? "barrier " + std::to_string(watched.id.index - barrier_base_)
                     : "semaphore '" + program_.semaphores()[index(watched.id.index)].name + "'") +
            " of rank " + std::to_string(watched.id.rank) + " to reach " +
            std::to_string(watched.target) + ", it is " + std::to_string(value) +
            why_not(watched.id);
      }
      if (wave.waiting == Waiting::loads) reason = why_not(w);
      if (reason.empty()) continue;
      ++shown;
      diagnostics.error(text + reason,
                        {.file = program_.source(), .line = 0, .column = 0, .pointer = op.where});
    }
  }
  for (const CopyQueue& queue : queues_) {
    if (queue.primitive.kind != program::PrimitiveKind::wait || queue.primitive.semaphores.empty())
      continue;
    const program::SemaphoreId id = queue.primitive.semaphores.front();
    const program::Op& op = program_.bodies()[index(queue.body)].ops[index(queue.primitive.op)];
    diagnostics.error("the copy queue of rank " + std::to_string(queue.rank) +
                          " waits for semaphore '" + program_.semaphores()[index(id.index)].name +
                          "' of rank " + std::to_string(id.rank),
                      {.file = program_.source(), .line = 0, .column = 0, .pointer = op.where});
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::size_t s = 0; s < ranks_[rank].streams.size(); ++s) {
      const StreamRun& run = ranks_[rank].streams[s];
      if (!run.waits) continue;
      const program::Stream& items = program_.code(static_cast<int>(rank)).streams[s];
      diagnostics.error("rank " + std::to_string(rank) + " stream " + std::to_string(s) +
                            " waits for event " + std::to_string(items[run.item].index) +
                            " that nobody records",
                        {.file = program_.source(), .line = 0, .column = 0, .pointer = {}});
    }
  }
  add_reasons(diagnostics);
  const std::string head = "a wait cannot end: at " + to_string(Time{now_}) +
                           " nothing can happen any more (" + std::to_string(blocked) +
                           " wavefronts wait)";
  Diagnostics all;
  all.error(head, {.file = program_.source(), .line = 0, .column = 0, .pointer = {}},
            options_.replay == nullptr
                ? "`hemiola check` shows the cycle or the missing signal"
                : "`hemiola replay --describe PROGRAM` lists the flags that a profile has to have");
  all.append(diagnostics);
  throw Failure(all, ExitCode::deadlock);
}

void Cores::tell(std::int64_t now) const {
  if (options_.monitor == nullptr) return;
  Monitor& monitor = *options_.monitor;
  monitor.leave_if_stopping();
  monitor.time_fs.store(now, std::memory_order_relaxed);
  const Counters counted = tallies_.counters();
  monitor.line_hops.store(counted.hops * (program_.ranks() / fold_.period),
                          std::memory_order_relaxed);
  monitor.done.store(counted.moved, std::memory_order_relaxed);
}

Result Cores::result() {
  Result result;
  if (sampling_ != nullptr) result.sampled = end_sampling();
  std::int64_t end = 0, warm = 0;
  for (const RankState& rank : ranks_) {
    end = std::max(end, estimate(rank.end));
    warm = std::max(warm, estimate(rank.warm_end));
  }
  const bool period = options_.iterations > 0;
  result.time = {period ? (end - warm) / options_.iterations : end};
  for (const RankState& rank : ranks_) {
    Attribution spent = rank.spent.attribution();
    if (program_.linked() != nullptr) spent = launches_.whole(spent);
    stretch(spent, estimate(rank.end));
    spent[index(Reason::finished)] += end - estimate(rank.end);
    assert(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}) == end);
    if (period) scale_to_period(spent, end, result.time);
    result.attribution.push_back(spent);
    if (options_.replay != nullptr) {
      const auto number = static_cast<int>(&rank - ranks_.data());
      for (PeerWait& wait : peer_waits_.of(number, rank.spent, *options_.replay)) {
        if (wait.buffer == kSemaphores && index(wait.offset / 8) < program_.semaphores().size())
          wait.name = program_.semaphores()[index(wait.offset / 8)].name;
        result.peer_waits.push_back(std::move(wait));
      }
    }
    result.rank_end.push_back({period ? result.time.fs : estimate(rank.end)});
  }
  // The others are like those that stand for them.
  const int copies = program_.ranks() / fold_.period;
  result.simulated_ranks = fold_.period;
  result.unfolded_because = fold_.reason;
  for (int rank = fold_.period; rank < program_.ranks(); ++rank) {
    result.attribution.push_back(result.attribution[index(home(rank))]);
    result.rank_end.push_back(result.rank_end[index(home(rank))]);
  }
  result.launches = launches_.results(home_);
  for (LaunchResult& launch : result.launches) {
    launch.begin.fs = estimate(launch.begin.fs);
    launch.end.fs = estimate(launch.end.fs);
    stretch(launch.attribution, (launch.end - launch.begin).fs);
  }
  const Counters c = tallies_.counters();
  result.visited_hops = c.hops;
  result.line_hops = c.hops * copies;
  if (sampling_ != nullptr) result.line_hops = estimate_hops(c) * copies;
  add_links(result);
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
  add_reads(c, result);
  if (sampling_ != nullptr) count_left_out(c, result);
  for (auto& [name, count] : result.counters) count *= copies;
  return result;
}

// Reads of wavefronts at each level, flags and data apart.
void Cores::add_reads(const Counters& c, Result& result) const {
  const auto add = [&](const std::string& level, const Reads& reads) {
    result.counters["reads.flag." + level] = reads.flag;
    result.counters["reads.poll." + level] = reads.poll;
    result.counters["reads.data." + level] = reads.data;
  };
  const Reads cu{.flag = c.polls + c.packet_retries,
                 .poll = c.polls - c.first_looks + c.packet_retries,
                 .data = c.loads - c.packet_retries};
  add("cu", cu);
  add("l2", {.flag = cu.flag - c.past_l2.flag,
             .poll = cu.poll - c.past_l2.poll,
             .data = cu.data - c.l1_hits - c.multicast_loads + c.member_loads});
  add("memory", c.memory);
  add("fabric", {.flag = c.remote_polls + c.remote_retries,
                 .poll = c.remote_polls - c.remote_first_looks + c.remote_retries,
                 .data = c.remote_loads - c.remote_retries});
  if (!monitors_) return;
  result.counters.merge(
      std::map<std::string, std::int64_t>{{"waits.arms", c.arms},
                                          {"waits.refused", c.refused},
                                          {"waits.wakes", c.wakes},
                                          {"waits.false_wakes", c.false_wakes},
                                          {"waits.log_writes", c.log_writes},
                                          {"waits.log_reads", c.log_reads},
                                          {"waits.switched_out", c.switched_out},
                                          {"waits.switched_in", c.switched_in},
                                          {"waits.state_requests", c.state_requests}});
}

void Cores::add_links(Result& result) const {
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const std::size_t at = fold_.link_of.empty() ? l : index(fold_.link_of[l]);
    const Server& server = fabric_.servers[index(fabric_.link_base) + at];
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
}

}  // namespace hemiola::sim
