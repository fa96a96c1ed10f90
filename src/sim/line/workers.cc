// The line engine: who does the stages of a round. docs/line_engine.md, "Threads".

#include <algorithm>
#include <bit>

#include "sim/line/line.h"
#include "sim/result/profile.h"

namespace hemiola::sim {
namespace {

/// Work at a stage is handed out where a round visits more servers than this; else one thread does
/// it all sooner than others are told.
constexpr std::int64_t kFewHops = 2000;

}  // namespace

// A worker has ranks that follow each other, and the links into them; all others are dealt out.
void Line::divide(const std::vector<std::vector<std::int32_t>>& levels) {
  const std::size_t count =
      is_watching() ? 1
                    : std::clamp<std::size_t>(index(device_.options.threads), 1, simulated_.size());
  workers_.resize(count);
  device_.tallies.resize(count);
  device_.requests.share(static_cast<int>(count));
  device_.details.share(static_cast<int>(count));
  device_.kept.share(static_cast<int>(count));
  device_.descriptors.share(static_cast<int>(count));
  for (Worker& worker : workers_) {
    for (auto& out : worker.out) out.resize(count);
    for (auto& out : worker.to_engines) out.resize(count);
  }
  for (std::size_t s = 0; s < switches_.size(); ++s)
    switches_[s].worker = static_cast<int>(s * count / switches_.size());
  for (std::size_t r = 0; r < simulated_.size(); ++r) {
    const std::size_t worker = r * count / simulated_.size();
    workers_[worker].ranks.push_back(simulated_[r]);
    stages_[r].worker = static_cast<int>(worker);
  }
  // Engines of a GPU go with it: they come first.
  const std::size_t nics = engine_stages_.size() - std::min(engine_stages_.size(), stages_.size());
  for (std::size_t e = 0; e < engine_stages_.size(); ++e)
    engine_stages_[e].worker = e < stages_.size()
                                   ? stages_[e].worker
                                   : static_cast<int>((e - stages_.size()) * count / nics);
  std::size_t dealt = 0;
  const auto worker_of = [&](std::int32_t l) {
    const int rank = device_.fabric.rank_of(device_.machine.links[index(l)].to);
    if (rank < 0 || rank >= device_.program.ranks()) return dealt++ % count;
    return index(stage_of_[index(device_.home(rank))] < 0 ? 0 : stage(device_.home(rank)).worker);
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
      const std::size_t first = worker_of_word_.size(), words = (share.size() + 63) / 64;
      workers_[w].words.emplace_back(first, first + words);
      worker_of_word_.resize(first + words, static_cast<std::int16_t>(w));
      for (std::size_t i = 0; i < share.size(); ++i)
        links_[index(share[i])].calendar = static_cast<std::int32_t>(first * 64 + i);
    }
  }
  busy_merges_.resize(worker_of_word_.size());
  merges_.resize(worker_of_word_.size() * 64);
  if (!device_.fabric.arbiters.empty()) queued_.resize(merges_.size(), -1);
  for (const std::vector<std::int32_t>& level : levels) {
    for (const std::int32_t l : level) {
      if (link_queue(l) == nullptr) continue;
      std::int32_t& calendar = links_[index(l)].calendar;
      if (const std::int32_t* const first = shared_by(l)) {
        calendar = links_[index(*first)].calendar;
        if (*first != l) continue;
        queued_[index(calendar)] = -2 - static_cast<std::int32_t>(finite_switches_.size());
        finite_switches_.emplace_back();
      } else {
        queued_[index(calendar)] = l;
      }
    }
  }
  if (count > 1) team_ = std::make_unique<ThreadTeam>(static_cast<int>(count));
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
    work(workers_[index(number)]);
  };
  ++phase_;
  if (at_once)
    team_->run(part);
  else
    for (int number = 0; number < static_cast<int>(workers_.size()); ++number) part(number);
}

// An input has one sender, so its order is that of sending.
void Line::collect() {
  for (Worker& from : workers_) {
    std::vector<Parcel>& parcels = from.out[(phase_ - 1) % 2][index(this_worker)];
    for (const Parcel& parcel : parcels)
      if (parcel.merge >= 0)
        push_merge(parcel.merge, parcel.arrival);
      else
        parcel.calendar->push(parcel.arrival);
    parcels.clear();
    std::vector<EngineParcel>& events = from.to_engines[(phase_ - 1) % 2][index(this_worker)];
    for (const EngineParcel& parcel : events) push_engine(parcel.stage, parcel.event);
    events.clear();
  }
}

void Line::note_next(Worker& worker) {
  std::int64_t next = INT64_MAX;
  for (const int rank : worker.ranks) {
    Gpu& gpu = stage(rank);
    if (!gpu.events.empty()) next = std::min(next, gpu.events.front().time >> shift_);
    for (const Calendar* stage : gpu.calendars()) next = std::min(next, stage->next());
  }
  for (const auto& [begin, end] : worker.words) {
    for (std::size_t word = begin; word < end; ++word)
      for (std::uint64_t bits = busy_merges_[word]; bits != 0; bits &= bits - 1)
        next = std::min(next, merges_[word * 64 + index(std::countr_zero(bits))].next());
  }
  for (const std::int32_t stage : worker.engines)
    next = std::min(next,
                    (engine_stages_[index(stage)].events.front().time - engine_offset_) >> shift_);
  for (const Switch& at : switches_)
    if (at.worker == this_worker) next = std::min(next, at.answers.next());
  worker.next = next;
}

std::int64_t Line::next_round() {
  by_all([this](Worker& worker) { note_next(worker); });
  std::int64_t next = round_of_rows();
  for (const Worker& worker : workers_) next = std::min(next, worker.next);
  return next;
}

void Line::do_round(std::int64_t round) {
  last_round_ = round;
  if (has_engines()) {  // which send to slices of any rank
    by_all([this, round](Worker& worker) {
      for (const int rank : worker.ranks) run_cores(rank, round);
    });
    const std::int64_t end = ((round + 1) << shift_) + engine_offset_;
    by_all([this, end](Worker& worker) { run_engines(worker, end); });
    engines_from_ = end;
  }
  by_all([this, round](Worker& worker) {
    if (has_engines()) take_posted();
    for (const int rank : worker.ranks) {
      if (!has_engines()) run_cores(rank, round);
      run_slices(rank, round);
      run_memory(rank, round);
      run_cu_in(rank, round);
      run_io_out(rank, round);
    }
  });
  if (device_.options.replay != nullptr) put_in(round);
  const auto run_levels = [&](std::size_t begin, std::size_t end) {
    for (std::size_t level = begin; level < end; ++level)
      by_all([this, level, round](Worker& worker) { run_links(worker, level, round); });
  };
  run_levels(0, switches_at_);
  if (!switches_.empty()) {
    by_all([this, round](Worker&) {
      for (Switch& at : switches_)
        if (at.worker == this_worker) run_switch(at, round);
    });
  }
  run_levels(switches_at_, workers_.front().words.size());
  if (team_ != nullptr) {
    const std::int64_t hops = device_.tallies.hops();
    few_ = hops - std::exchange(hops_before_, hops) < kFewHops;
  }
  if (device_.options.replay == nullptr) return;
  put_in(round);  // behind signals that have just come
  for (const int rank : simulated_) run_ingress(rank, round);
}

// Links that a request may meet one behind the other in one round are on different levels.
void Line::run_links(Worker& worker, std::size_t level, std::int64_t round) {
  for (std::size_t word = worker.words[level].first; word < worker.words[level].second; ++word) {
    for (std::uint64_t bits = busy_merges_[word]; bits != 0; bits &= bits - 1) {
      const int bit = std::countr_zero(bits);
      const std::size_t number = word * 64 + index(bit);
      Calendar& merge = merges_[number];
      const std::int32_t queued = queued_.empty() ? -1 : queued_[number];
      if (queued >= 0)
        choose_at_link(queued, merge, round);
      else if (queued < -1)
        choose_at_switch(finite_switches_[index(-2 - queued)], merge, round);
      else
        run_merge(merge, round);
      if (merge.next() == INT64_MAX) busy_merges_[word] &= ~(std::uint64_t{1} << bit);
    }
  }
}

void Line::look_behind_round(std::int64_t round) {
  now_ = round << shift_;
  look_for_progress(device_.tallies.take_events());
  if (device_.sampling != nullptr) skips_.sample((round + 1) << shift_);
}

Result Line::run() {
  start();
  constexpr std::uint32_t kRoundsUntilTold = 16;
  for (std::uint32_t rounds = 1; !host_.all_done(); ++rounds) {
    skip_polls();
    const std::int64_t round = next_round();
    if (round == INT64_MAX) report_deadlock();
    if (rounds % kRoundsUntilTold == 0) tell(round << shift_);
    do_round(round);
    if (!host_.all_done()) look_behind_round(round);
  }
  // What nobody waits for is still on its way: it counts, but takes no time.
  for (std::int64_t round = next_round(); round != INT64_MAX; round = next_round()) do_round(round);
  count_links();
  if (device_.options.record != nullptr)
    *device_.options.record = in_order(std::move(*device_.options.record));
  Result done = result();
  done.visited_hops -= hops_skipped_;
  return done;
}

}  // namespace hemiola::sim
