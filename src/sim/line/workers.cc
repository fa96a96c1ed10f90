// The line engine: who does the stages of a round. docs/line_engine.md, "Threads".

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/line/arrivals.h"
#include "sim/line/line.h"
#include "sim/result/profile.h"

namespace hemiola::sim {
namespace {

/// Work at a stage is handed out where a round visits more servers than this; else one thread does
/// it all sooner than others are told.
constexpr std::int64_t kFewHops = 2000;

}  // namespace

// A worker has ranks that follow each other, and the links into them.
void Line::divide(const std::vector<std::vector<std::int32_t>>& levels) {
  const std::size_t count =
      stages_.is_watching()
          ? 1
          : std::clamp<std::size_t>(index(device_.options.threads), 1, stages_.simulated.size());
  stages_.workers.resize(count);
  device_.tallies.resize(count);
  device_.requests.share(static_cast<int>(count));
  device_.details.share(static_cast<int>(count));
  device_.kept.share(static_cast<int>(count));
  device_.descriptors.share(static_cast<int>(count));
  for (RoundWorker& worker : stages_.workers) {
    for (auto& out : worker.out) out.resize(count);
    for (auto& out : worker.to_engines) out.resize(count);
  }
  for (std::size_t s = 0; s < stages_.switches.size(); ++s)
    stages_.switches[s].worker = static_cast<int>(s * count / stages_.switches.size());
  for (std::size_t r = 0; r < stages_.simulated.size(); ++r) {
    const std::size_t worker = r * count / stages_.simulated.size();
    stages_.workers[worker].ranks.push_back(stages_.simulated[r]);
    stages_.gpus[r].worker = static_cast<int>(worker);
  }
  // Engines of a GPU go with it: they come first.
  const std::size_t nics =
      stages_.engines.size() - std::min(stages_.engines.size(), stages_.gpus.size());
  for (std::size_t e = 0; e < stages_.engines.size(); ++e)
    stages_.engines[e].worker = e < stages_.gpus.size()
                                    ? stages_.gpus[e].worker
                                    : static_cast<int>((e - stages_.gpus.size()) * count / nics);
  deal_links(levels);
  queue_links(levels);
  if (count > 1) team_ = std::make_unique<ThreadTeam>(static_cast<int>(count));
}

// Links into GPUs go with these, others are dealt out.
void Line::deal_links(const std::vector<std::vector<std::int32_t>>& levels) {
  const std::size_t count = stages_.workers.size();
  std::size_t dealt = 0;
  const auto worker_of = [&](std::int32_t l) {
    const int rank = device_.fabric.rank_of(device_.machine.links[index(l)].to);
    if (rank < 0 || rank >= device_.program.ranks()) return dealt++ % count;
    return index(
        stages_.gpu_of[index(device_.home(rank))] < 0 ? 0 : stages_.of(device_.home(rank)).worker);
  };
  // The links of a switch with finite queues are one stage: the first of them stands for all.
  std::vector<std::int32_t> first_of(device_.machine.nodes.size(), -1);
  const auto shared_by = [&](std::int32_t l) -> std::int32_t* {
    const machine::NodeId node = device_.machine.links[index(l)].from;
    return device_.machine.nodes[index(node)].switch_model.queue > 0 ? &first_of[index(node)]
                                                                     : nullptr;
  };
  std::vector<std::vector<std::vector<std::int32_t>>> shares(count);  // by worker, level
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (auto& share : shares) share.emplace_back();
    for (const std::int32_t l : levels[level]) {
      std::int32_t* const first = shared_by(l);
      if (first != nullptr && *first >= 0) continue;
      if (first != nullptr) *first = l;
      shares[first != nullptr ? dealt++ % count : worker_of(l)][level].push_back(l);
    }
  }
  for (std::size_t w = 0; w < count; ++w) {
    for (const std::vector<std::int32_t>& share : shares[w]) {
      const std::size_t first = stages_.worker_of_word.size(), words = (share.size() + 63) / 64;
      stages_.workers[w].words.emplace_back(first, first + words);
      stages_.worker_of_word.resize(first + words, static_cast<std::int16_t>(w));
      for (std::size_t i = 0; i < share.size(); ++i)
        stages_.links[index(share[i])].calendar = static_cast<std::int32_t>(first * 64 + i);
    }
  }
  stages_.busy_merges.resize(stages_.worker_of_word.size());
  stages_.merges.resize(stages_.worker_of_word.size() * 64);
}

// Where they choose what is served next; those of a switch with finite queues are one stage.
void Line::queue_links(const std::vector<std::vector<std::int32_t>>& levels) {
  if (device_.fabric.arbiters.empty()) return;
  stages_.queued.resize(stages_.merges.size(), -1);
  std::vector<std::int32_t> first_of(device_.machine.nodes.size(), -1);
  for (const std::vector<std::int32_t>& level : levels) {
    for (const std::int32_t l : level) {
      if (stages_.link_queue(l) == nullptr) continue;
      const std::size_t node = index(device_.machine.links[index(l)].from);
      std::int32_t& calendar = stages_.links[index(l)].calendar;
      if (device_.machine.nodes[node].switch_model.queue <= 0) {
        stages_.queued[index(calendar)] = l;
      } else if (first_of[node] >= 0) {
        calendar = stages_.links[index(first_of[node])].calendar;
      } else {
        first_of[node] = l;
        stages_.queued[index(calendar)] =
            -2 - static_cast<std::int32_t>(stages_.finite_switches.size());
        stages_.finite_switches.emplace_back();
      }
    }
  }
}

/// A phase: calls work(worker) for each, on threads of their own where that pays. Before that each
/// collects what others have sent in the phase before.
template <typename Work>
void Line::by_all(Work work) {
  struct Back {  // to who has called
    ~Back() {
      this_worker = 0;
      several_workers = false;
    }
  } back;
  const bool at_once = team_ != nullptr && !few_;
  const auto part = [&](int number) {
    this_worker = number;
    several_workers = at_once;
    collect();
    work(stages_.workers[index(number)]);
  };
  ++stages_.phase;
  if (at_once)
    team_->run(part);
  else
    for (int number = 0; number < static_cast<int>(stages_.workers.size()); ++number) part(number);
}

// An input has one sender, so its order is that of sending.
void Line::collect() {
  for (RoundWorker& from : stages_.workers) {
    std::vector<RoundWorker::Parcel>& parcels =
        from.out[(stages_.phase - 1) % 2][index(this_worker)];
    for (const RoundWorker::Parcel& parcel : parcels)
      if (parcel.merge >= 0)
        stages_.push_merge(parcel.merge, parcel.arrival);
      else
        parcel.calendar->push(parcel.arrival);
    parcels.clear();
    std::vector<RoundWorker::EngineParcel>& events =
        from.to_engines[(stages_.phase - 1) % 2][index(this_worker)];
    for (const RoundWorker::EngineParcel& parcel : events)
      engine_stages_.push_engine(parcel.stage, parcel.event);
    events.clear();
  }
}

void Line::note_next(RoundWorker& worker) {
  std::int64_t next = INT64_MAX;
  for (const int rank : worker.ranks) {
    GpuStages& gpu = stages_.of(rank);
    if (!gpu.events.empty()) next = std::min(next, gpu.events.front().time >> stages_.shift);
    for (const Calendar* stage : gpu.calendars()) next = std::min(next, stage->next());
  }
  for (const auto& [begin, end] : worker.words) {
    for (std::size_t word = begin; word < end; ++word)
      for (std::uint64_t bits = stages_.busy_merges[word]; bits != 0; bits &= bits - 1)
        next = std::min(next, stages_.merges[word * 64 + index(std::countr_zero(bits))].next());
  }
  for (const std::int32_t stage : worker.engines)
    next = std::min(next,
                    (stages_.engines[index(stage)].events.front().time - stages_.engine_offset) >>
                        stages_.shift);
  for (const SwitchStage& at : stages_.switches)
    if (at.worker == this_worker) next = std::min(next, at.answers.next());
  worker.next = next;
}

std::int64_t Line::next_round() {
  by_all([this](RoundWorker& worker) { note_next(worker); });
  std::int64_t next = replayer_.round_of_rows();
  for (const RoundWorker& worker : stages_.workers) next = std::min(next, worker.next);
  return next;
}

void Line::do_round(std::int64_t round) {
  stages_.last_round = round;
  if (stages_.has_engines()) {  // which send to slices of any rank
    by_all([this, round](RoundWorker& worker) {
      for (const int rank : worker.ranks) run_cores(rank, round);
    });
    const std::int64_t end = ((round + 1) << stages_.shift) + stages_.engine_offset;
    by_all([this, end](RoundWorker& worker) { run_engines(worker, end); });
    stages_.engines_from = end;
  }
  by_all([this, round](RoundWorker& worker) {
    if (stages_.has_engines()) engine_stages_.take_posted();
    for (const int rank : worker.ranks) {
      if (!stages_.has_engines()) run_cores(rank, round);
      chip_.run_slices(rank, round);
      chip_.run_memory(rank, round);
      chip_.run_cu_in(rank, round);
      links_.run_io_out(rank, round);
    }
  });
  if (device_.options.replay != nullptr) replayer_.put_in(round);
  const auto run_levels = [&](std::size_t begin, std::size_t end) {
    for (std::size_t level = begin; level < end; ++level)
      by_all([this, level, round](RoundWorker& worker) { run_links(worker, level, round); });
  };
  run_levels(0, switches_at_);
  if (!stages_.switches.empty()) {
    by_all([this, round](RoundWorker&) {
      for (SwitchStage& at : stages_.switches)
        if (at.worker == this_worker) links_.run_switch(at, round);
    });
  }
  run_levels(switches_at_, stages_.workers.front().words.size());
  if (team_ != nullptr) {
    const std::int64_t hops = device_.tallies.hops();
    few_ = hops - std::exchange(hops_before_, hops) < kFewHops;
  }
  if (device_.options.replay == nullptr) return;
  replayer_.put_in(round);  // behind signals that have just come
  for (const int rank : stages_.simulated) links_.run_ingress(rank, round);
}

// The CUs and the host of a rank: completions and events, in the order of time.

void Line::run_cores(int rank, std::int64_t round) {
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& done = stages_.mine().done;
  done.clear();
  stages_.take_with_answers(gpu.done, round, gpu.home_slices, gpu.home_port, done);
  const std::int64_t end = gpu.done.begin_of(round + 1);
  stages_.prefetch_first(done, true);
  std::size_t next = 0;
  for (;;) {
    const bool completes = next < done.size();
    const CoreEvent* event =
        gpu.events.empty() || gpu.events.front().time >= end ? nullptr : &gpu.events.front();
    if (event == nullptr && !completes) return;
    if (event != nullptr && (!completes || event->time < done[next].time ||
                             (event->time == done[next].time && event->tag <= done[next].tag))) {
      happen(gpu.events);
    } else {
      stages_.prefetch_whole(done, next + kAhead);
      stages_.prefetch_detail(done, next + kAhead / 2);
      const Arrival arrival = done[next++];
      issue_.complete(arrival.id, arrival.time);
    }
    ++device_.tally().events;
  }
}

// Stages do not meet each other: it does not matter which comes first.
void Line::run_engines(RoundWorker& worker, std::int64_t end) {
  worker.posted.clear();
  for (std::size_t i = 0; i < worker.engines.size(); ++i) {
    worker.engine_at = worker.engines[i];
    std::vector<CoreEvent>& events = stages_.engines[index(worker.engine_at)].events;
    while (!events.empty() && events.front().time < end) happen(events);
  }
  std::erase_if(worker.engines, [this](std::int32_t stage) {
    EngineStage& at = stages_.engines[index(stage)];
    return at.events.empty() && std::exchange(at.busy, false);
  });
}

// Links that a request may meet one behind the other in one round are on different levels.
void Line::run_links(RoundWorker& worker, std::size_t level, std::int64_t round) {
  for (std::size_t word = worker.words[level].first; word < worker.words[level].second; ++word) {
    for (std::uint64_t bits = stages_.busy_merges[word]; bits != 0; bits &= bits - 1) {
      const int bit = std::countr_zero(bits);
      const std::size_t number = word * 64 + index(bit);
      Calendar& merge = stages_.merges[number];
      const std::int32_t queued = stages_.queued.empty() ? -1 : stages_.queued[number];
      if (queued >= 0)
        links_.choose_at_link(queued, merge, round);
      else if (queued < -1)
        links_.choose_at_switch(stages_.finite_switches[index(-2 - queued)], merge, round);
      else
        links_.run_merge(merge, round);
      if (merge.next() == INT64_MAX) stages_.busy_merges[word] &= ~(std::uint64_t{1} << bit);
    }
  }
}

void Line::look_behind_round(std::int64_t round) {
  now_ = round << stages_.shift;
  look_for_progress(device_.tallies.take_events());
  if (device_.sampling != nullptr) skips_.sample((round + 1) << stages_.shift);
}

Result Line::run() {
  start();
  constexpr std::uint32_t kRoundsUntilTold = 16;
  for (std::uint32_t rounds = 1; !host_.all_done(); ++rounds) {
    now_ += poll_skips_.skip();
    const std::int64_t round = next_round();
    if (round == INT64_MAX) report_deadlock();
    if (rounds % kRoundsUntilTold == 0) tell(round << stages_.shift);
    do_round(round);
    if (!host_.all_done()) look_behind_round(round);
  }
  // What nobody waits for is still on its way: it counts, but takes no time.
  for (std::int64_t round = next_round(); round != INT64_MAX; round = next_round()) do_round(round);
  count_links();
  if (device_.options.record != nullptr)
    *device_.options.record = in_order(std::move(*device_.options.record));
  Result done = result();
  done.visited_hops -= poll_skips_.hops_skipped();
  return done;
}

}  // namespace hemiola::sim
