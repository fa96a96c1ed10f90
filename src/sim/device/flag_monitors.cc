#include "sim/device/flag_monitors.h"

#include <algorithm>

#include "sim/device/memory.h"

namespace hemiola::sim {
namespace {

/// Places for entries of a log, in lines behind the flags; then it begins anew.
constexpr std::int32_t kLogLines = 1 << 16;

}  // namespace

// Barriers among the workgroups of a GPU count in its L2 in any case.
bool FlagMonitors::goes_past_l2(const Request& request) const {
  if (request.intent != Intent::flag && request.intent != Intent::poll) return false;
  if (!device_.model(request.target).sync_uncached) return false;
  const std::int32_t semaphore =
      request.intent == Intent::flag
          ? device_.details[index(request.detail)].semaphore
          : device_.wave(request.wave).watched[index(request.epoch)].id.index;
  return semaphore < device_.barrier_base;
}

// Accesses to a line follow one another, so what they read and write is what it holds when they
// come, in their order. When it is done with this one.
std::int64_t FlagMonitors::serve_flag_line(Request& request, std::int64_t now) {
  std::int64_t& free = device_.gpu(request.target).flag_lines[request.line];
  free = std::max(now, free) + device_.model(request.target).sync_line_time.fs;
  const std::int64_t done = free;
  ++device_.counters().hops;
  device_.detail(request).accepted_at = now;
  // Whoever waits for it has it from now on, not from when the line is done with it.
  if (request.intent == Intent::flag)
    memory_.apply_flag(request, now, done);
  else
    memory_.sample_poll(request, now, done);
  request.spent.charge(Reason::hbm, done - now);
  return done;
}

bool FlagMonitors::watch(const Request& request, std::int64_t done) {
  Monitors& monitors = monitors_for(request);
  Watcher watcher{.wave = request.wave,
                  .first = request.epoch,
                  .wait = device_.details[index(request.detail)].wait,
                  .route = request.route,
                  .source = request.source,
                  .target = request.target,
                  .cu = request.cu,
                  .slice = request.slice,
                  .any = device_.model(request.source).sync_wait == machine::WaitPolicy::monitor};
  std::int32_t& used = monitors.used[index(request.slice)];
  if (used < device_.model(request.target).sync_monitor_entries) {
    ++used;
  } else if (watcher.any) {
    ++device_.counters().refused;
    return false;
  } else {
    watcher.logged = true;
    ++device_.counters().log_writes;
    use_log(make_log_access(request.target, monitors, Intent::write_back), done, request.uncached);
  }
  monitors.watchers[request.line].push_back(watcher);
  return true;
}

void FlagMonitors::stop_watching(const Request& request) {
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

bool FlagMonitors::awaits(const Watcher& watcher, std::int32_t semaphore) const {
  const Wave& wave = device_.wave(watcher.wave);
  const auto begin = wave.watched.begin() + watcher.first;
  return std::any_of(
      begin, wave.watched.begin() + wave.watched[index(watcher.first)].end,
      [&](const Watched& watched) { return watched.id.index == semaphore && !watched.satisfied; });
}

bool FlagMonitors::holds(const Watcher& watcher) const {
  const Wave& wave = device_.wave(watcher.wave);
  const auto begin = wave.watched.begin() + watcher.first;
  return std::all_of(
      begin, wave.watched.begin() + wave.watched[index(watcher.first)].end,
      [&](const Watched& watched) {
        return watched.satisfied ||
               device_.gpu(watched.id.rank).semaphores[index(watched.id.index)].value >=
                   watched.target;
      });
}

// A flag has been written. Those that one update woke may be after a lock: they are woken one by
// one (US 12,190,174); others as fast as a slice can send.
void FlagMonitors::notify(std::int32_t semaphore, const Request& cause, std::int64_t done) {
  Monitors& monitors = monitors_for(cause);
  std::vector<Watcher>* watchers = monitors.watchers.find(cause.line);
  if (watchers == nullptr) return;
  const machine::GpuModel& model = device_.model(cause.target);
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
          ++device_.counters().log_reads;
          use_log(make_log_access(cause.target, monitors, Intent::wake), first, cause.uncached);
        }
        return false;
      }
    }
    if (sent) time += one ? model.sync_handover_time.fs : memory_.flag_time(cause.target);
    sent = true;
    if (!watcher.logged) --monitors.used[index(watcher.slice)];
    time = wake(watcher, cause, time);
    return true;
  });
  if (watchers->empty()) monitors.watchers.erase(cause.line);
}

// When it leaves.
std::int64_t FlagMonitors::wake(const Watcher& watcher, const Request& cause, std::int64_t time) {
  ++device_.counters().wakes;
  const std::int32_t id = device_.allocate(true);
  Request& request = device_.request(id);
  request.intent = Intent::wake;
  request.wave = watcher.wave;
  request.epoch = watcher.first;
  request.source = watcher.source;
  request.target = watcher.target;
  request.cu = watcher.cu;
  request.slice = watcher.slice;
  request.route = watcher.route;
  request.line = cause.line;
  request.bytes = static_cast<std::int32_t>(device_.lines.sector);
  request.logged = watcher.logged;
  request.stage = Stage::back_out;
  request.spent = cause.spent;
  request.spent.charge_until(Reason::l2, time);
  // Behind the write's own acknowledgement. At the memory controller wake-ups of one write differ
  // in time.
  request.accepted = cause.uncached ? cause.accepted : ++device_.gpu(cause.target).accepted;
  device_.add_detail(request).wait = watcher.wait;
  if (watcher.logged) {
    ++device_.counters().log_reads;
    return use_log(id, time, cause.uncached);
  }
  transport_.answer_at(id, time);
  return time;
}

// An access to the log: of a slice it goes to memory as write-backs do; the memory controller is
// there. When that is done, as far as it is known.
std::int64_t FlagMonitors::use_log(std::int32_t id, std::int64_t time, bool from_memory) {
  if (!from_memory) {
    transport_.to_memory(id, time);
    return time;
  }
  Request& request = device_.request(id);
  const std::int64_t done = memory_.through_memory(request, time);
  if (ends_in_memory(request))
    device_.release(id);
  else
    transport_.answer_at(id, done);
  return done;
}

std::int32_t FlagMonitors::make_log_access(std::int16_t rank, Monitors& monitors, Intent intent) {
  const std::int32_t flags = device_.barrier_base + device_.program.barriers();
  const std::int32_t id = device_.allocate(false);
  Request& request = device_.request(id);
  request.intent = intent;
  request.source = request.target = rank;
  request.line =
      device_.lines.flag(flags) + 1 + kLogLines * monitors.log + monitors.log_entries % kLogLines;
  if (intent == Intent::write_back) ++monitors.log_entries;
  request.bytes = static_cast<std::int32_t>(device_.lines.sector);
  request.logged = true;
  return id;
}

}  // namespace hemiola::sim
