#include "sim/device/sync.h"

#include <algorithm>

#include "program/semantics/costs.h"
#include "sim/device/flag_monitors.h"
#include "sim/device/issue.h"
#include "sim/device/residency.h"
#include "sim/device/skips.h"
#include "sim/device/tracing.h"
#include "sim/device/wavefronts.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
namespace {

using program::Primitive;

}  // namespace

// The lead wavefront; thread i handles the i-th semaphore.

bool Sync::start_signal(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = device_.wave(id);
  const Primitive& primitive = step.primitive;
  if (primitive.swap) return false;  // done by the poll that ended the wait before it
  if (primitive.release && wave.step == 0) {
    if (waits_for_stores(id, now)) return true;
    wave.step = 1;
    if (fence(id, primitive.system_scope, now)) return true;
  }
  for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
    send_flag(id, primitive.semaphores[s], primitive.values[s], now);
  return false;
}

// A wavefront is at a release. True: it has to wait, for stores, or as long as it would if none had
// been passed over.
bool Sync::waits_for_stores(std::int32_t id, std::int64_t now) {
  Wave& wave = device_.wave(id);
  if (!issue_.drained(wave)) {
    wave.waiting = Waiting::drain;
    device_.group(wave.workgroup).draining = id;
    if (device_.sampling != nullptr) device_.sampling->pauses.begin_drain(wave.workgroup, now);
    return true;
  }
  const std::int64_t time =
      device_.sampling == nullptr ? 0 : device_.sampling->pauses.end_drain(wave.workgroup, now);
  if (time == 0) return false;
  wave.waiting = Waiting::stores;
  wave.spent.charge(Reason::link, time);
  transport_.push(now + time, kWave, id, 0, wave.tag);
  return true;
}

// Its stores are acknowledged. False if that is all that a fence costs.
bool Sync::fence(std::int32_t id, bool system_scope, std::int64_t now) {
  Wave& wave = device_.wave(id);
  const int rank = device_.group(wave.workgroup).rank;
  const std::int64_t end = now + program::release_time(device_.model(rank), system_scope).fs;
  if (end == now) return false;
  wave.spent.charge(Reason::fence, end - now);
  transport_.push(end, kWave, id, 0, wave.tag);
  return true;
}

void Sync::send_flag(std::int32_t wave, program::SemaphoreId id, std::int64_t value,
                     std::int64_t now) {
  ++device_.counters().flags;
  const std::int32_t request_id = issue_.make_request(
      wave, Intent::flag, id.rank, device_.lines.flag(id.index), device_.lines.sector);
  Detail& flag = device_.add_detail(device_.request(request_id));
  flag.semaphore = id.index;
  flag.increment = value;
  if (device_.tracing()) {
    const SpanId sender = tracing_.span_of(device_.wave(wave));
    device_.spans_of(device_.request(request_id)).sender = sender;
  }
  issue_.issue(request_id, now);
}

bool Sync::start_wait(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = device_.wave(id);
  if (wave.step == 1) return false;
  wave.step = 1;
  const Primitive& primitive = step.primitive;
  if (device_.sampling != nullptr) device_.sampling->pauses.wait(wave.workgroup);
  wave.watched.clear();
  for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
    wave.watched.push_back(
        {primitive.semaphores[s], primitive.values[s], primitive.consume, primitive.swap});
  }
  // Flags of one line stand together, ranks as they are seen from this one: equal for ranks that
  // behave alike.
  const int own = device_.group(wave.workgroup).rank;
  const auto place = [&](const Watched& watched) {
    return std::pair((watched.id.rank - own + device_.program.ranks()) % device_.program.ranks(),
                     device_.lines.flag(watched.id.index));
  };
  std::ranges::stable_sort(wave.watched,
                           [&](const Watched& a, const Watched& b) { return place(a) < place(b); });
  for (std::size_t w = 0; w < wave.watched.size(); ++w) {
    Watched& watched = wave.watched[w];
    if (watched.id.rank != own && device_.tallies.size() > 1) throw NeedsOneWorker{};
    const bool follows = w > 0 && place(wave.watched[w - 1]) == place(watched);
    watched.first = follows ? wave.watched[w - 1].first : static_cast<std::int32_t>(w);
    Watched& line = wave.watched[index(watched.first)];
    line.end = static_cast<std::int32_t>(w + 1);
    ++line.missing;
    SemaphoreState& state = device_.gpu(watched.id.rank).semaphores[index(watched.id.index)];
    watched.expected = state.value < watched.target;
    if (watched.expected) state.watches.push_back({id, static_cast<std::int32_t>(w)});
  }
  wave.missing = static_cast<std::int32_t>(wave.watched.size());
  wave.sleep = device_.model(own).sync_backoff_start.fs;
  ++wave.wait;
  if (device_.options.replay != nullptr) peer_waits_.begin(id, wave.spent);
  if (device_.monitors && device_.model(own).sync_wait >= machine::WaitPolicy::monitor)
    wait_by_line(id, now);
  else
    poll_round(id, Look::first, now);
  return true;
}

// One load instruction: a request for each distinct line that holds a flag not seen yet.
void Sync::poll_round(std::int32_t id, Look look, std::int64_t now) {
  Wave& wave = device_.wave(id);
  wave.waiting = Waiting::poll;
  wave.doze.looked = now;
  wave.in_flight = 1;  // held until all are issued
  const auto count = static_cast<std::int32_t>(wave.watched.size());
  for (std::int32_t first = 0; first < count; first = wave.watched[index(first)].end) {
    if (wave.watched[index(first)].missing == 0) continue;
    ++wave.in_flight;
    this->look(id, first, look, wave.spent, now);
  }
  if (--wave.in_flight == 0) wavefronts_.run_wave(id, now);
}

void Sync::poll_returned(std::int32_t id, std::int64_t now) {
  const Request& request = device_.request(id);
  const std::int32_t wave_id = request.wave, source = request.source;
  if (device_.monitors && device_.model(source).sync_wait >= machine::WaitPolicy::monitor) {
    line_returned(id, now);
    return;
  }
  const std::int64_t accepted_at = device_.detail(request).accepted_at;
  Wave& wave = device_.wave(wave_id);
  if (--wave.in_flight == 0) wave.spent = request.spent;
  device_.release(id);
  if (wave.in_flight > 0) return;
  if (wave.missing > 0) {
    const std::int64_t interval = next_sleep(wave, source);
    if (device_.sampling != nullptr && skips_.dozes(wave_id, accepted_at, now, interval)) return;
    wave.spent.charge(Reason::poll, interval);
    transport_.push(now + interval, kWave, wave_id, 1, wave.tag);
    return;
  }
  wait_over(wave_id, accepted_at, now);
}

// From a poll's return to the next one.
std::int64_t Sync::next_sleep(Wave& wave, int rank) {
  const machine::GpuModel& model = device_.model(rank);
  const std::int64_t interval = std::max<std::int64_t>(1, model.sync_poll_interval.fs);
  if (model.sync_wait == machine::WaitPolicy::spin) return interval;
  const std::int64_t sleep = std::min(wave.sleep, model.sync_backoff_limit.fs);
  wave.sleep = 2 * sleep;
  return interval + sleep;
}

// All flags are there; a slice accepted the last look at `accepted_at`.
void Sync::wait_over(std::int32_t id, std::int64_t accepted_at, std::int64_t now) {
  Wave& wave = device_.wave(id);
  const Workgroup& group = device_.group(wave.workgroup);
  // The flag that came last, if it came after the first look at it, is the reason for the wait.
  const Watched* latest = nullptr;
  for (const Watched& watched : wave.watched) {
    if (watched.cause.time < 0 || watched.cause.time <= watched.first_poll) continue;
    if (latest == nullptr || watched.cause.time > latest->cause.time) latest = &watched;
  }
  if (latest != nullptr) {
    wave.spent = device_.options.replay == nullptr ? latest->cause.spent
                                                   : peer_waits_.ended(latest->cause.spent, id);
    const std::int64_t seen = std::max(latest->cause.time, accepted_at);
    wave.spent.charge(Reason::poll, seen - latest->cause.time);
    issue_.charge_return(wave.spent, group.rank, now - seen);
    tracing_.released(wave, latest->cause_span, latest->cause.time);
  }
  const Step& step = *wavefronts_.step_of(wave);
  if (step.primitive.acquire) device_.rank(group.rank).cus[index(group.cu)].l1.clear();
  wavefronts_.run_wave(id, now);
}

// --- Waits by monitor and SyncMon. Each line of flags goes its own way: looked at, monitored,
// slept over, woken, looked at again.

void Sync::wait_by_line(std::int32_t id, std::int64_t now) {
  Wave& wave = device_.wave(id);
  wave.waiting = Waiting::poll;
  wave.in_flight = 1;  // held until all are issued
  const auto count = static_cast<std::int32_t>(wave.watched.size());
  for (std::int32_t first = 0; first < count; first = wave.watched[index(first)].end) {
    ++wave.in_flight;
    look(id, first, Look::first, wave.spent, now);
  }
  if (--wave.in_flight == 0) wavefronts_.run_wave(id, now);
}

// A request to the line of a flag; the wavefront's time so far is `spent`.
void Sync::look(std::int32_t id, std::int32_t first, Look look, const LatencyBreakdown& spent,
                std::int64_t now) {
  const Wave& wave = device_.wave(id);
  const program::SemaphoreId flag = wave.watched[index(first)].id;
  const std::int32_t request_id = issue_.make_request(
      id, Intent::poll, flag.rank, device_.lines.flag(flag.index), device_.lines.sector);
  Request& request = device_.request(request_id);
  request.spent = spent;
  request.epoch = first;
  request.look = look;
  device_.add_detail(request).wait = wave.wait;
  if (look == Look::arm) {
    ++device_.counters().arms;
  } else {
    const std::int64_t first_look = look == Look::first ? 1 : 0;
    const bool remote = request.target != request.source;
    ++device_.counters().polls;
    device_.counters().first_looks += first_look;
    device_.counters().remote_polls += remote ? 1 : 0;
    device_.counters().remote_first_looks += remote ? first_look : 0;
    if (device_.uncached && flag_monitors_.goes_past_l2(request)) {
      ++device_.counters().past_l2.flag;
      device_.counters().past_l2.poll += 1 - first_look;
    }
  }
  issue_.issue(request_id, now);
}

// After a sleep of its own, or back on a CU.
void Sync::look_again(std::int32_t id, std::int32_t first, std::int64_t now) {
  Wave& wave = device_.wave(id);
  wave.watched[index(first)].asleep = wave.watched[index(first)].woken = false;
  LatencyBreakdown spent = wave.spent;
  spent.charge_until(Reason::poll, now);
  look(id, first, Look::again, spent, now);
}

void Sync::line_returned(std::int32_t id, std::int64_t now) {
  const Request& request = device_.request(id);
  const std::int32_t wave_id = request.wave, first = request.epoch, source = request.source;
  const Look looked = request.look;
  const bool armed = request.ready;
  const std::int64_t accepted_at = device_.detail(request).accepted_at;
  const LatencyBreakdown spent = request.spent;
  device_.release(id);
  Wave& wave = device_.wave(wave_id);
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
  if (looked == Look::again && !line.refused) ++device_.counters().false_wakes;
  if (device_.model(source).sync_wait == machine::WaitPolicy::monitor && looked != Look::recheck) {
    look(wave_id, first, Look::arm, spent, now);
  } else if (line.refused) {  // by back-off
    transport_.push(now + next_sleep(wave, source), kWave, wave_id, 2 + first, wave.tag);
  } else if (line.woken) {
    line.woken = false;
    look(wave_id, first, Look::again, spent, now);
  } else {
    line.asleep = true;
    residency_.fell_asleep(wave.workgroup, now);
  }
}

void Sync::woken(std::int32_t id, std::int64_t now) {
  const Request& request = device_.request(id);
  const std::int32_t wave_id = request.wave, first = request.epoch;
  const std::int32_t wait = device_.detail(request).wait;
  const LatencyBreakdown spent = request.spent;
  device_.release(id);
  Wave& wave = device_.wave(wave_id);
  // It may have seen the flag without it.
  if (wave.waiting != Waiting::poll || wave.wait != wait || wave.watched[index(first)].missing == 0)
    return;
  Watched& line = wave.watched[index(first)];
  if (!line.asleep) {
    line.woken = true;
    return;
  }
  Workgroup& group = device_.group(wave.workgroup);
  if (group.place != Place::resident) {
    line.woken = true;
    residency_.want(wave.workgroup, now);
    return;
  }
  std::erase(device_.rank(group.rank).idle, wave.workgroup);
  line.asleep = false;
  look(wave_id, first, Look::again, spent, now);
}

}  // namespace hemiola::sim
