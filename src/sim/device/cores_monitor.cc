// Cores: what slices, and the memory controller where flags are uncached, do for those who wait:
// lines served one access after the other, tables of waits, a log, wake-ups.

#include <algorithm>

#include "sim/device/cores.h"

namespace hemiola::sim {
namespace {

/// Places for entries of a log, in lines behind the flags; then it begins anew.
constexpr std::int32_t kLogLines = 1 << 16;

}  // namespace

// Barriers among the workgroups of a GPU count in its L2 in any case.
bool Cores::goes_past_l2(const Request& request) const {
  if (request.intent != Intent::flag && request.intent != Intent::poll) return false;
  if (!machine_.model(request.target).sync_uncached) return false;
  const std::int32_t semaphore =
      request.intent == Intent::flag
          ? details_[index(request.detail)].semaphore
          : waves_[index(request.wave)].watched[index(request.epoch)].id.index;
  return semaphore < barrier_base_;
}

// Accesses to a line follow one another, so what they read and write is what it holds when they
// come, in their order. When it is done with this one.
std::int64_t Cores::serve_flag_line(Request& request, std::int64_t now) {
  std::int64_t& free = gpu(request.target).flag_lines[request.line];
  free = std::max(now, free) + machine_.model(request.target).sync_line_time.fs;
  const std::int64_t done = free;
  ++tally().counters.hops;
  detail(request).accepted_at = now;
  // Whoever waits for it has it from now on, not from when the line is done with it.
  if (request.intent == Intent::flag)
    apply_flag(request, now, done);
  else
    sample_poll(request, now, done);
  request.spent.charge(Reason::hbm, done - now);
  return done;
}

// A new entry. False: the table is full, and there is no log.
bool Cores::watch(const Request& request, std::int64_t done) {
  Monitors& monitors = monitors_for(request);
  Watcher watcher{.wave = request.wave,
                  .first = request.epoch,
                  .wait = details_[index(request.detail)].wait,
                  .route = request.route,
                  .source = request.source,
                  .target = request.target,
                  .cu = request.cu,
                  .slice = request.slice,
                  .any = policy(request.source) == machine::WaitPolicy::monitor};
  std::int32_t& used = monitors.used[index(request.slice)];
  if (used < machine_.model(request.target).sync_monitor_entries) {
    ++used;
  } else if (watcher.any) {
    ++tally().counters.refused;
    return false;
  } else {
    watcher.logged = true;
    ++tally().counters.log_writes;
    use_log(make_log_access(request.target, monitors, Intent::write_back), done, request.uncached);
  }
  monitors.watchers[request.line].push_back(watcher);
  return true;
}

void Cores::stop_watching(const Request& request) {
  Monitors& monitors = monitors_for(request);
  std::vector<Watcher>* watchers = monitors.watchers.find(request.line);
  if (watchers == nullptr) return;
  std::erase_if(*watchers, [&](const Watcher& watcher) {
    if (watcher.wave != request.wave || watcher.first != request.epoch) return false;
    --monitors.used[index(watcher.slice)];
    return true;
  });
  if (watchers->empty()) monitors.watchers.erase(request.line);
}

bool Cores::awaits(const Watcher& watcher, std::int32_t semaphore) const {
  const Wave& wave = waves_[index(watcher.wave)];
  const auto begin = wave.watched.begin() + watcher.first;
  return std::any_of(
      begin, wave.watched.begin() + wave.watched[index(watcher.first)].end,
      [&](const Watched& watched) { return watched.id.index == semaphore && !watched.satisfied; });
}

bool Cores::holds(const Watcher& watcher) const {
  const Wave& wave = waves_[index(watcher.wave)];
  const auto begin = wave.watched.begin() + watcher.first;
  return std::all_of(begin, wave.watched.begin() + wave.watched[index(watcher.first)].end,
                     [&](const Watched& watched) {
                       return watched.satisfied ||
                              gpu(watched.id.rank).semaphores[index(watched.id.index)].value >=
                                  watched.target;
                     });
}

// A flag has been written. Those that one update woke may be after a lock: they are woken one by
// one (US 12,190,174); others as fast as a slice can send.
void Cores::notify(std::int32_t semaphore, const Request& cause, std::int64_t done) {
  Monitors& monitors = monitors_for(cause);
  std::vector<Watcher>* watchers = monitors.watchers.find(cause.line);
  if (watchers == nullptr) return;
  const machine::GpuModel& model = machine_.model(cause.target);
  const std::int64_t first = done + model.sync_wake_latency.fs;
  std::int64_t time = first;
  bool sent = false;
  std::erase_if(*watchers, [&](Watcher& watcher) {
    bool one = false;
    if (!watcher.any) {
      if (!awaits(watcher, semaphore)) return false;
      one = ++watcher.updates == 1;
      if (!holds(watcher)) {
        if (watcher.logged) {  // to find that out
          ++tally().counters.log_reads;
          use_log(make_log_access(cause.target, monitors, Intent::wake), first, cause.uncached);
        }
        return false;
      }
    }
    if (sent) time += one ? model.sync_handover_time.fs : flag_time(cause.target);
    sent = true;
    if (!watcher.logged) --monitors.used[index(watcher.slice)];
    time = wake(watcher, cause, time);
    return true;
  });
  if (watchers->empty()) monitors.watchers.erase(cause.line);
}

// When it leaves.
std::int64_t Cores::wake(const Watcher& watcher, const Request& cause, std::int64_t time) {
  ++tally().counters.wakes;
  const std::int32_t id = allocate(true);
  Request& request = requests_[index(id)];
  request.intent = Intent::wake;
  request.wave = watcher.wave;
  request.epoch = watcher.first;
  request.source = watcher.source;
  request.target = watcher.target;
  request.cu = watcher.cu;
  request.slice = watcher.slice;
  request.route = watcher.route;
  request.line = cause.line;
  request.bytes = static_cast<std::int32_t>(sector_);
  request.logged = watcher.logged;
  request.stage = Stage::back_out;
  request.spent = cause.spent;
  request.spent.charge_until(Reason::l2, time);
  // Behind the write's own acknowledgement. At the memory controller wake-ups of one write differ
  // in time.
  request.accepted = cause.uncached ? cause.accepted : ++gpu(cause.target).accepted;
  add_detail(request).wait = watcher.wait;
  if (watcher.logged) {
    ++tally().counters.log_reads;
    return use_log(id, time, cause.uncached);
  }
  answer_at(id, time);
  return time;
}

// An access to the log: of a slice it goes to memory as write-backs do; the memory controller is
// there. When that is done, as far as it is known.
std::int64_t Cores::use_log(std::int32_t id, std::int64_t time, bool from_memory) {
  if (!from_memory) {
    to_memory(id, time);
    return time;
  }
  Request& request = requests_[index(id)];
  const std::int64_t done = through_memory(request, time);
  if (ends_in_memory(request))
    release(id);
  else
    answer_at(id, done);
  return done;
}

std::int32_t Cores::make_log_access(std::int16_t rank, Monitors& monitors, Intent intent) {
  const std::int32_t flags = barrier_base_ + program_.barriers();
  const std::int32_t id = allocate(false);
  Request& request = requests_[index(id)];
  request.intent = intent;
  request.source = request.target = rank;
  request.line = flag_line(flags) + 1 + kLogLines * monitors.log + monitors.log_entries % kLogLines;
  if (intent == Intent::write_back) ++monitors.log_entries;
  request.bytes = static_cast<std::int32_t>(sector_);
  request.logged = true;
  return id;
}

}  // namespace hemiola::sim
