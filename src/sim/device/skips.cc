#include "sim/device/skips.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sim/device/wavefronts.h"
#include "sim/result/period_shares.h"

namespace hemiola::sim {
namespace {

using program::Primitive;
using program::Span;

/// A move that is as long for a wavefront and has never been measured ends a skip.
constexpr std::int64_t kLongMove = 16 << 10;

}  // namespace

// Which links are between a rank and its memory says how fast moves can be.
void Skips::find_kind(const Workgroup& group, Step& step) {
  const Primitive& primitive = step.primitive;
  step.kind = -1;
  step.way = sampled::Moves::kOwn;
  constexpr std::int32_t kPrime = 31;
  const auto place = [&](const Span& span) -> std::int32_t {
    if (is_multicast(span.access)) return 1;
    if (span.rank == group.rank) return 2;
    std::int32_t way = 3;
    for (const machine::LinkId link : device_.machine.routes(group.rank, span.rank).path(0))
      way = (way * kPrime + device_.machine.links[index(link)].link_class) & 0xFFFF;
    return way;
  };
  bool remote = false;
  MoveKind kind{device_.kernel(group.kernel).kernel, primitive.posted ? 1 : 0, 0, 0};
  for (const auto& [spans, at] : {std::pair(&primitive.src, 2), std::pair(&primitive.dst, 3)}) {
    for (const Span& span : *spans) {
      if (is_packet(span.access)) return;  // others wait for what is in the data
      if (is_multicast(span.access) || span.rank != group.rank) {
        const std::int32_t way = way_of(group.rank, span, at == 3);
        step.way = remote && way != step.way ? sampled::Moves::kEverywhere : way;
        remote = true;
      }
      kind[index(at)] = (kind[index(at)] * kPrime + place(span)) & 0xFFFFFF;
    }
  }
  step.kind = device_.sampling->moves.number_of(kind, remote);
}

// Loads come over the last link of their way, stores go over the first: of several, any one stands
// for all of them.
std::int32_t Skips::way_of(int rank, const Span& span, bool write) {
  if (is_multicast(span.access)) return sampled::Moves::kEverywhere;
  const machine::Routes& routes =
      write ? device_.machine.routes(rank, span.rank) : device_.machine.routes(span.rank, rank);
  machine::LinkId least = INT32_MAX;
  for (std::int32_t p = 0; p < routes.count; ++p)
    least = std::min(least, write ? routes.path(p).front() : routes.path(p).back());
  return device_.sampling->moves.way_over(rank, least);
}

// Data bytes of a wavefront in `batches` of them, from `from` on.
std::int64_t Skips::bytes_of_batches(const Workgroup& group, const Step& step, std::int64_t from,
                                     std::int64_t batches) const {
  const std::int64_t rows = batches * wavefronts_.unroll(group);
  const Granularity grain = step.grain;
  const std::int64_t left = step.primitive.bytes - from;
  if (left <= 0) return 0;
  const std::int64_t whole = std::min(rows, left / grain.group);
  const std::int64_t rest = whole < rows ? std::min(left - whole * grain.group, grain.wave) : 0;
  return whole * grain.wave + std::max<std::int64_t>(rest, 0);
}

// At the begin of a batch, and at the end of the last one. True: the wavefront passes over some.
bool Skips::sample_batch(std::int32_t id, const Step& step, std::int64_t now) {
  Wave& wave = device_.wave(id);
  const Workgroup& group = device_.group(wave.workgroup);
  const sampled::Mover mover{id, wave.workgroup, group.rank, step.kind, step.way};
  if (wave.step == 0 && wave.next < step.primitive.bytes) {
    const std::int64_t hold = device_.sampling->hold(mover, now);
    if (hold > now) {
      wave.waiting = Waiting::stores;
      wave.spent.charge(Reason::link, hold - now);
      transport_.push(hold, kWave, id, 0, wave.tag);
      return true;
    }
  }
  std::int32_t left = -1;  // where it has moved until now
  if (wave.step == 5) device_.sampling->moves.charge(id, now, wave.spent);
  if (wave.step == 3 || wave.step == 5) {
    left = device_.sampling->moves.place_of(id);
    device_.sampling->moves.end_batch(id, now, wave.spent);
  }
  bool skipped = false;
  if (wave.next < step.primitive.bytes) {
    skipped = device_.sampling->windows.skips(now) && skip_batches(mover, step, now);
    if (!skipped)
      device_.sampling->moves.begin_batch(mover, now, bytes_of_batches(group, step, wave.next, 1),
                                          wave.spent);
  }
  const std::int32_t place = device_.sampling->moves.place_of(mover);
  look_for_naps(place, now);
  look_for_naps(sampled::Moves::free_place(group.rank), now);
  if (left >= 0 && left != place) look_for_naps(left, now);
  return skipped;
}

// Somebody has come or gone: those that pass over may be through at another time.
void Skips::look_for_naps(std::int32_t place, std::int64_t now) {
  const std::int64_t time = device_.sampling->moves.next_wake(place, now);
  if (time != INT64_MAX) transport_.push(time, kNap, place);
}

void Skips::wake_naps(std::int32_t place, std::int64_t now) {
  for (std::int32_t wave = 0; (wave = device_.sampling->moves.woken(place, now)) >= 0;)
    wavefronts_.run_wave(wave, now);
  look_for_naps(place, now);
}

bool Skips::skip_batches(const sampled::Mover& mover, const Step& step, std::int64_t now) {
  Wave& wave = device_.wave(mover.wave);
  const Workgroup& group = device_.group(wave.workgroup);
  const Primitive& primitive = step.primitive;
  const std::int64_t stride = step.grain.group * wavefronts_.unroll(group);
  const std::int64_t left = (primitive.bytes - wave.next + stride - 1) / stride;
  if (!device_.sampling->moves.knows(mover)) {
    if (bytes_of_batches(group, step, wave.next, left) >= kLongMove)
      device_.sampling->windows.end_skip(now);
    return false;
  }
  const auto time_of = [&](std::int64_t bytes) {
    return device_.sampling->moves.move_time(mover, bytes);
  };
  const std::int64_t each = time_of(step.grain.wave * wavefronts_.unroll(group));
  const std::int64_t most =
      std::min(device_.sampling->windows.skip_end() - now, device_.sampling->windows.longest());
  const std::int64_t batches = std::clamp<std::int64_t>((most + each - 1) / each, 1, left);
  const std::int64_t bytes = bytes_of_batches(group, step, wave.next, batches);
  struct Side {
    const Span* span;
    bool write;
    LeftOut left_out{};
  };
  std::vector<Side> sides;
  for (const Span& span : primitive.src) sides.push_back({&span, false});
  for (const Span& span : primitive.dst) sides.push_back({&span, true});
  for (std::int64_t b = 0; b < batches; ++b) {
    const bool warms = device_.sampling->windows.warms(now + b * each);
    for (std::int64_t u = 0; u < wavefronts_.unroll(group); ++u) {
      const std::int64_t begin = wave.next + b * stride + u * step.grain.group;
      const std::int64_t end = std::min(begin + step.grain.wave, primitive.bytes);
      if (begin >= end) break;
      for (Side& side : sides)
        pass_over(*side.span, begin, end, side.write, group.cu, warms, side.left_out);
    }
  }
  wave.next += batches * stride;
  wave.step = 5;
  wave.waiting = Waiting::stores;
  device_.sampling->moves.skip_batches(mover, now, bytes);
  for (const Side& side : sides) leave_out(group.rank, *side.span, side.write, side.left_out);
  device_.sampling->pauses.leave_nothing_to_drain(wave.workgroup);
  return true;
}

// An instruction for data bytes [begin, end) of the span: the requests that request_memory() would
// make, and what they leave in caches if it `warms` them.
void Skips::pass_over(const Span& span, std::int64_t begin, std::int64_t end, bool write,
                      std::int32_t cu, bool warms, LeftOut& out) {
  const std::int64_t moved = device_.addresses.start_of(span) - span.offset;
  span.each_part(begin, end, [&](std::int64_t offset, std::int64_t, std::int64_t bytes) {
    const std::int64_t to = moved + offset + bytes;
    for (std::int64_t from = moved + offset; from < to;) {
      const std::int64_t high =
          std::min(to, (device_.lines.of(from) + std::int64_t{1}) << device_.lines.shift);
      const std::int64_t size = device_.lines.in_sectors(from, high);
      ++out.by_sectors[index(size >> device_.lines.sector_shift)];
      out.bytes += size;
      from = high;
    }
    if (!warms) return;
    if (!is_multicast(span.access)) {
      touch_lines(span.rank, moved + offset, to, write, cu);
      return;
    }
    for (const int member : device_.program.groups()[index(span.group)])
      touch_lines(member, moved + offset, to, write, -1);
  });
}

// Counted, as if they had been.
void Skips::leave_out(int rank, const Span& span, bool write, const LeftOut& requests) {
  Counters& counters = device_.counters();
  const std::int64_t count = requests.count(), bytes = requests.bytes;
  const bool group = is_multicast(span.access), remote = group || span.rank != rank;
  counters.moved += bytes;
  device_.sampling->left_out += bytes;
  (write ? counters.stores : counters.loads) += count;
  if (group) {
    const auto members = std::ssize(device_.program.groups()[index(span.group)]);
    counters.multicasts += count;
    if (!write) {
      counters.multicast_loads += count;
      counters.member_loads += count * members;
    } else {
      counters.injected += bytes * members;
      counters.delivered += bytes * members;
    }
  } else if (remote) {
    (write ? counters.remote_stores : counters.remote_loads) += count;
    if (write) counters.injected += bytes;
    if (write) counters.delivered += bytes;
  }
  if (remote)
    transport_.carry({.rank = rank,
                      .target = span.rank,
                      .group = group ? span.group : -1,
                      .write = write,
                      .requests = requests});
}

// Operands of a step that nobody loads: start_computes() keeps to the pace of steps.
bool Skips::skip_loads(std::int32_t id, const Step& step, std::int64_t now) {
  const Wave& wave = device_.wave(id);
  const Workgroup& group = device_.group(wave.workgroup);
  if (step.kind < 0 || !device_.sampling->windows.skips(now) ||
      !device_.sampling->steps.pace(wave.workgroup).known())
    return false;
  const Primitive& primitive = step.primitive;
  const Granularity grain = step.grain;
  LeftOut left_out;
  const bool warms = device_.sampling->windows.warms(now);
  for (std::int64_t begin = wave.index * grain.wave; begin < primitive.bytes;
       begin += grain.group) {
    const std::int64_t end = std::min(begin + grain.wave, primitive.bytes);
    pass_over(primitive.src.front(), begin, end, false, group.cu, warms, left_out);
  }
  leave_out(group.rank, primitive.src.front(), false, left_out);
  return true;
}

// A poll has found too little. Whether those that would follow it are passed over: nobody but
// add_to_semaphore() can end the wait.
bool Skips::dozes(std::int32_t id, std::int64_t accepted_at, std::int64_t now,
                  std::int64_t interval) {
  Wave& wave = device_.wave(id);
  const int rank = device_.group(wave.workgroup).rank;
  if (!device_.sampling->skips_polls(now) || device_.uncached ||
      device_.model(rank).sync_wait != machine::WaitPolicy::spin)
    return false;
  for (const Watched& watched : wave.watched)
    if (!watched.satisfied && (!watched.expected || watched.id.rank != rank)) return false;
  Doze& doze = wave.doze;
  doze.on = true;
  doze.returned = now;
  doze.way = accepted_at - doze.looked;
  doze.next = now + interval;
  if (!std::exchange(doze.listed, true)) dozing_.push_back(id);
  return true;
}

// The first poll that would come to the slice behind `now` is made. It begins when it would, or as
// soon as wavefronts of this engine may.
void Skips::end_doze(std::int32_t id, std::int64_t now) {
  Wave& wave = device_.wave(id);
  Doze& doze = wave.doze;
  doze.on = false;
  const std::int64_t late = std::max<std::int64_t>(0, now - doze.way - doze.next);
  const std::int64_t passed = (late + doze.period() - 1) / doze.period();
  const std::int64_t begin = std::max(doze.next + passed * doze.period(), transport_.open_from());
  wave.spent.charge(Reason::poll, begin - doze.returned);
  const auto lines = std::ranges::count_if(
      wave.watched, [](const Watched& watched) { return watched.missing > 0; });
  polls_passed_ += passed * lines;
  transport_.push(begin, kWave, id, 1, wave.tag);
}

// In the order in which they are passed.
void Skips::touch_lines(int rank, std::int64_t from, std::int64_t to, bool write, std::int32_t cu) {
  GpuState& gpu = device_.gpu(rank);
  if (!gpu.l2.exists()) return;
  const Modulo& slices = device_.layout(device_.home(rank)).slice_of;
  constexpr std::int32_t kAhead = 6;
  for (std::int32_t line = device_.lines.of(from); line < device_.lines.of(from) + kAhead; ++line)
    gpu.l2.prefetch(line, device_.slice_of(slices, line));
  for (std::int32_t line = device_.lines.of(from); line <= device_.lines.of(to - 1); ++line) {
    const std::int32_t slice = device_.slice_of(slices, line);
    gpu.l2.prefetch(line + kAhead, device_.slice_of(slices, line + kAhead));
    if (cu >= 0 && !write && gpu.l2.may_copy(cu, slice) && gpu.l2.copy(line, cu).hit) continue;
    const Tags::Outcome outcome = gpu.l2.access(line, slice, write);
    if (!gpu.msc.exists()) continue;
    if (outcome.evicted_dirty) gpu.msc.access(outcome.victim, true);
    if (!outcome.hit && !write) gpu.msc.access(line, false);
  }
}

void Skips::sample(std::int64_t now) {
  const Counters counted = device_.tallies.counters();
  device_.sampling->advance(now, counted.moved,
                            (counted.l2_hits + counted.l2_misses) / device_.fold.period);
  if (dozing_.empty() || device_.sampling->windows.skips(now)) return;
  for (const std::int32_t id : std::exchange(dozing_, {})) {
    Doze& doze = device_.wave(id).doze;
    doze.listed = false;
    if (doze.on) end_doze(id, now + doze.way);
  }
}

// The run is over: what its windows say of the whole.
Sampled Skips::end_sampling() {
  std::int64_t end = 0;
  for (const RankState& rank : device_.ranks) end = std::max(end, rank.end);
  device_.sampling->finish(end);
  return device_.sampling->summary(end, device_.tallies.counters().moved);
}

// Visits of servers, if nothing were left out.
std::int64_t Skips::estimate_hops(const Counters& counted) const {
  constexpr std::int64_t kHopsOfPoll = 5;
  return std::llround(static_cast<double>(counted.hops) /
                      device_.sampling->share_of_lines(counted.moved)) +
         device_.sampling->trains.hops() + kHopsOfPoll * polls_passed_;
}

void Skips::count_left_out(const Counters& counted, Result& result) const {
  scale_caches(result, device_.sampling->share_of_lines(counted.moved));
  const BurstLookUps& passed = device_.sampling->trains.passed();
  for (const char* reads : {"requests.polls", "reads.flag.cu", "reads.poll.cu", "reads.flag.l2",
                            "reads.poll.l2", "l2.hits"})
    result.counters[reads] += polls_passed_;
  result.counters["l2.hits"] += passed.hits;
  result.counters["l2.misses"] += passed.lines - passed.hits;
  result.counters["l2.write_backs"] += passed.evicted;
  result.counters["hbm.written_bytes"] += passed.evicted * device_.lines.size;
}

std::int64_t Skips::estimate(std::int64_t time) const {
  return device_.sampling == nullptr ? time : device_.sampling->windows.estimate(time);
}

// An attribution is made to sum to the estimate: what depends on lines gives or takes, in
// proportion.
void Skips::stretch(Attribution& spent, std::int64_t to) const {
  if (device_.sampling == nullptr) return;
  constexpr std::array kFixed{Reason::launch, Reason::dispatch, Reason::software, Reason::skew,
                              Reason::finished};
  Attribution scaled = spent;
  for (const Reason reason : kFixed) scaled[index(reason)] = 0;
  const std::int64_t sum = std::accumulate(spent.begin(), spent.end(), std::int64_t{0});
  const std::int64_t part = std::accumulate(scaled.begin(), scaled.end(), std::int64_t{0});
  if (sum == to || part <= 0) return;
  const Attribution before = scaled;
  scale_to_period(scaled, part, Time{part + to - sum});
  for (std::size_t r = 0; r < kReasons; ++r) spent[r] += scaled[r] - before[r];
}

}  // namespace hemiola::sim
