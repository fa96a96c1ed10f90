// Cores: waits by monitor and SyncMon. Each line of flags goes its own way: looked at, monitored,
// slept over, woken, looked at again.

#include "sim/device/cores.h"

namespace hemiola::sim {

using machine::WaitPolicy;

void Cores::wait_by_line(std::int32_t id, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  wave.waiting = Waiting::poll;
  wave.in_flight = 1;  // held until all are issued
  const auto count = static_cast<std::int32_t>(wave.watched.size());
  for (std::int32_t first = 0; first < count; first = wave.watched[index(first)].end) {
    ++wave.in_flight;
    look(id, first, Look::first, wave.spent, now);
  }
  if (--wave.in_flight == 0) run_wave(id, now);
}

// A request to the line of a flag; the wavefront's time so far is `spent`.
void Cores::look(std::int32_t id, std::int32_t first, Look look, const LatencyBreakdown& spent,
                 std::int64_t now) {
  const Wave& wave = waves_[index(id)];
  const program::SemaphoreId flag = wave.watched[index(first)].id;
  const std::int32_t request_id =
      make_request(id, Intent::poll, flag.rank, flag_line(flag.index), sector_);
  Request& request = requests_[index(request_id)];
  request.spent = spent;
  request.epoch = first;
  request.look = look;
  add_detail(request).wait = wave.wait;
  if (look == Look::arm) {
    ++tally().counters.arms;
  } else {
    const std::int64_t first_look = look == Look::first ? 1 : 0;
    const bool remote = request.target != request.source;
    ++tally().counters.polls;
    tally().counters.first_looks += first_look;
    tally().counters.remote_polls += remote ? 1 : 0;
    tally().counters.remote_first_looks += remote ? first_look : 0;
    if (uncached_ && goes_past_l2(request)) {
      ++tally().counters.past_l2.flag;
      tally().counters.past_l2.poll += 1 - first_look;
    }
  }
  issue(request_id, now);
}

// After a sleep of its own, or back on a CU.
void Cores::look_again(std::int32_t id, std::int32_t first, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  wave.watched[index(first)].asleep = wave.watched[index(first)].woken = false;
  LatencyBreakdown spent = wave.spent;
  spent.charge_until(Reason::poll, now);
  look(id, first, Look::again, spent, now);
}

void Cores::line_returned(std::int32_t id, std::int64_t now) {
  const Request& request = requests_[index(id)];
  const std::int32_t wave_id = request.wave, first = request.epoch, source = request.source;
  const Look looked = request.look;
  const bool armed = request.ready;
  const std::int64_t accepted_at = detail(request).accepted_at;
  const LatencyBreakdown spent = request.spent;
  release(id);
  Wave& wave = waves_[index(wave_id)];
  Watched& line = wave.watched[index(first)];
  if (looked == Look::arm) {
    line.refused = !armed;
    look(wave_id, first, Look::recheck, spent, now);
    return;
  }
  if (line.missing == 0) {
    if (--wave.in_flight > 0) return;
    wave.spent = spent;
    wait_over(wave_id, accepted_at, now);
    return;
  }
  if (looked == Look::again && !line.refused) ++tally().counters.false_wakes;
  if (policy(source) == WaitPolicy::monitor && looked != Look::recheck) {
    look(wave_id, first, Look::arm, spent, now);
  } else if (line.refused) {  // by back-off
    push(now + next_sleep(wave, source), kWave, wave_id, 2 + first, wave.tag);
  } else if (line.woken) {
    line.woken = false;
    look(wave_id, first, Look::again, spent, now);
  } else {
    line.asleep = true;
    fell_asleep(wave.workgroup, now);
  }
}

void Cores::woken(std::int32_t id, std::int64_t now) {
  const Request& request = requests_[index(id)];
  const std::int32_t wave_id = request.wave, first = request.epoch;
  const std::int32_t wait = detail(request).wait;
  const LatencyBreakdown spent = request.spent;
  release(id);
  Wave& wave = waves_[index(wave_id)];
  // It may have seen the flag without it.
  if (wave.waiting != Waiting::poll || wave.wait != wait || wave.watched[index(first)].missing == 0)
    return;
  Watched& line = wave.watched[index(first)];
  if (!line.asleep) {
    line.woken = true;
    return;
  }
  Workgroup& group = groups_[index(wave.workgroup)];
  if (group.place != Place::resident) {
    line.woken = true;
    want(wave.workgroup, now);
    return;
  }
  std::erase(ranks_[index(group.rank)].idle, wave.workgroup);
  line.asleep = false;
  look(wave_id, first, Look::again, spent, now);
}

}  // namespace hemiola::sim
