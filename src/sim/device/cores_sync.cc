// Cores: releases, signals and waits of wavefronts.

#include <algorithm>

#include "program/semantics/costs.h"
#include "sim/device/cores.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
namespace {

using program::Primitive;

}  // namespace

// The lead wavefront; thread i handles the i-th semaphore.

bool Cores::start_signal(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = waves_[index(id)];
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
bool Cores::waits_for_stores(std::int32_t id, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  if (!drained(wave)) {
    wave.waiting = Waiting::drain;
    groups_[index(wave.workgroup)].draining = id;
    if (sampling_ != nullptr) sampling_->begin_drain(wave.workgroup, now);
    return true;
  }
  const std::int64_t time = sampling_ == nullptr ? 0 : sampling_->end_drain(wave.workgroup, now);
  if (time == 0) return false;
  wave.waiting = Waiting::stores;
  wave.spent.charge(Reason::link, time);
  push(now + time, kWave, id, 0, wave.tag);
  return true;
}

// Its stores are acknowledged. False if that is all that a fence costs.
bool Cores::fence(std::int32_t id, bool system_scope, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  const int rank = groups_[index(wave.workgroup)].rank;
  const std::int64_t end = now + program::release_time(machine_.model(rank), system_scope).fs;
  if (end == now) return false;
  wave.spent.charge(Reason::fence, end - now);
  push(end, kWave, id, 0, wave.tag);
  return true;
}

void Cores::send_flag(std::int32_t wave, program::SemaphoreId id, std::int64_t value,
                      std::int64_t now) {
  ++tally().counters.flags;
  const std::int32_t request_id =
      make_request(wave, Intent::flag, id.rank, flag_line(id.index), sector_);
  Detail& flag = add_detail(requests_[index(request_id)]);
  flag.semaphore = id.index;
  flag.increment = value;
  if (tracing()) {
    const SpanId sender = span_of(waves_[index(wave)]);
    spans_of(requests_[index(request_id)]).sender = sender;
  }
  issue(request_id, now);
}

bool Cores::start_wait(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  if (wave.step == 1) return false;
  wave.step = 1;
  const Primitive& primitive = step.primitive;
  if (sampling_ != nullptr) sampling_->wait(wave.workgroup);
  wave.watched.clear();
  for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
    wave.watched.push_back(
        {primitive.semaphores[s], primitive.values[s], primitive.consume, primitive.swap});
  }
  // Flags of one line stand together, ranks as they are seen from this one: equal for ranks that
  // behave alike.
  const int own = groups_[index(wave.workgroup)].rank;
  const auto place = [&](const Watched& watched) {
    return std::pair((watched.id.rank - own + program_.ranks()) % program_.ranks(),
                     flag_line(watched.id.index));
  };
  std::ranges::stable_sort(wave.watched,
                           [&](const Watched& a, const Watched& b) { return place(a) < place(b); });
  for (std::size_t w = 0; w < wave.watched.size(); ++w) {
    Watched& watched = wave.watched[w];
    if (watched.id.rank != own && tallies_.size() > 1) throw NeedsOneWorker{};
    const bool follows = w > 0 && place(wave.watched[w - 1]) == place(watched);
    watched.first = follows ? wave.watched[w - 1].first : static_cast<std::int32_t>(w);
    Watched& line = wave.watched[index(watched.first)];
    line.end = static_cast<std::int32_t>(w + 1);
    ++line.missing;
    SemaphoreState& state = gpu(watched.id.rank).semaphores[index(watched.id.index)];
    watched.expected = state.value < watched.target;
    if (watched.expected) state.watches.push_back({id, static_cast<std::int32_t>(w)});
  }
  wave.missing = static_cast<std::int32_t>(wave.watched.size());
  wave.sleep = machine_.model(own).sync_backoff_start.fs;
  ++wave.wait;
  if (options_.replay != nullptr) peer_waits_.begin(id, wave.spent);
  if (monitors_ && policy(own) >= machine::WaitPolicy::monitor)
    wait_by_line(id, now);
  else
    poll_round(id, Look::first, now);
  return true;
}

// One load instruction: a request for each distinct line that holds a flag not seen yet.
void Cores::poll_round(std::int32_t id, Look look, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  wave.waiting = Waiting::poll;
  wave.doze.looked = now;
  wave.in_flight = 1;  // held until all are issued
  const auto count = static_cast<std::int32_t>(wave.watched.size());
  for (std::int32_t first = 0; first < count; first = wave.watched[index(first)].end) {
    if (wave.watched[index(first)].missing == 0) continue;
    ++wave.in_flight;
    this->look(id, first, look, wave.spent, now);
  }
  if (--wave.in_flight == 0) run_wave(id, now);
}

void Cores::poll_returned(std::int32_t id, std::int64_t now) {
  const Request& request = requests_[index(id)];
  const std::int32_t wave_id = request.wave, source = request.source;
  if (monitors_ && policy(source) >= machine::WaitPolicy::monitor) {
    line_returned(id, now);
    return;
  }
  const std::int64_t accepted_at = detail(request).accepted_at;
  Wave& wave = waves_[index(wave_id)];
  if (--wave.in_flight == 0) wave.spent = request.spent;
  release(id);
  if (wave.in_flight > 0) return;
  if (wave.missing > 0) {
    const std::int64_t interval = next_sleep(wave, source);
    if (sampling_ != nullptr && dozes(wave_id, accepted_at, now, interval)) return;
    wave.spent.charge(Reason::poll, interval);
    push(now + interval, kWave, wave_id, 1, wave.tag);
    return;
  }
  wait_over(wave_id, accepted_at, now);
}

// From a poll's return to the next one.
std::int64_t Cores::next_sleep(Wave& wave, int rank) {
  const machine::GpuModel& model = machine_.model(rank);
  const std::int64_t interval = std::max<std::int64_t>(1, model.sync_poll_interval.fs);
  if (model.sync_wait == machine::WaitPolicy::spin) return interval;
  const std::int64_t sleep = std::min(wave.sleep, model.sync_backoff_limit.fs);
  wave.sleep = 2 * sleep;
  return interval + sleep;
}

// All flags are there; a slice accepted the last look at `accepted_at`.
void Cores::wait_over(std::int32_t id, std::int64_t accepted_at, std::int64_t now) {
  Wave& wave = waves_[index(id)];
  const Workgroup& group = groups_[index(wave.workgroup)];
  // The flag that came last, if it came after the first look at it, is the reason for the wait.
  const Watched* latest = nullptr;
  for (const Watched& watched : wave.watched) {
    if (watched.cause.time < 0 || watched.cause.time <= watched.first_poll) continue;
    if (latest == nullptr || watched.cause.time > latest->cause.time) latest = &watched;
  }
  if (latest != nullptr) {
    wave.spent = options_.replay == nullptr ? latest->cause.spent
                                            : peer_waits_.ended(latest->cause.spent, id);
    const std::int64_t seen = std::max(latest->cause.time, accepted_at);
    wave.spent.charge(Reason::poll, seen - latest->cause.time);
    charge_return(wave.spent, group.rank, now - seen);
    released(wave, latest->cause_span, latest->cause.time);
  }
  const Step& step = *step_of(wave);
  if (step.primitive.acquire) ranks_[index(group.rank)].cus[index(group.cu)].l1.clear();
  run_wave(id, now);
}

}  // namespace hemiola::sim
