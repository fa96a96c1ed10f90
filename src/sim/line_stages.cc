// The line engine: what the stages do with the arrivals of a round.

#include <algorithm>
#include <utility>

#include "sim/line.h"

namespace hemiola::sim {
namespace {

constexpr auto kByTag = [](const Arrival& a, const Arrival& b) {
  return a.time != b.time ? a.time < b.time : a.tag < b.tag;
};

// Requests left the cache since the round before: they are asked for some arrivals ahead.
constexpr std::size_t kAhead = 24;

/// Whether a number that counts up and wraps round comes first.
bool earlier(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

bool is_of_engine(const Request& request) {
  return request.intent == Intent::burst || (request.intent == Intent::flag && request.wave < 0);
}

/// A flag that a copy engine sends to another rank: it is at the ports before answers are.
bool sent_by_copy(const Request& request) {
  return request.stage == Stage::out && request.intent == Intent::flag;
}

/// Payload of the present leg, in sectors.
std::uint8_t carried(const Request& request) {
  const bool back = request.stage == Stage::back_out;
  return back == is_load(request.intent) ? request.size : std::uint8_t{0};
}

}  // namespace

void Line::prefetch(const std::vector<Arrival>& arrivals, std::size_t i) const {
  if (i < arrivals.size()) __builtin_prefetch(&requests_[index(arrivals[i].id)], 1);
}

void Line::prefetch_whole(const std::vector<Arrival>& arrivals, std::size_t i) const {
  prefetch(arrivals, i);
  if (i < arrivals.size()) __builtin_prefetch(&requests_[index(arrivals[i].id)].hops, 1);
}

void Line::prefetch_first(const std::vector<Arrival>& arrivals) const {
  for (std::size_t i = 0; i < std::min(kAhead, arrivals.size()); ++i) prefetch(arrivals, i);
}

// --- The CUs and the host of a rank: completions and events, in the order of time.

void Line::run_cores(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& done = mine().done;
  done.clear();
  if (gpu.done.take(round, done))
    sort_with_answers(done, gpu.done.begin_of(round), gpu.home_slices, gpu.home_port);
  const std::int64_t end = gpu.done.begin_of(round + 1);
  prefetch_first(done);
  std::size_t next = 0;
  for (;;) {
    const bool completes = next < done.size();
    const CoreEvent* event =
        gpu.events.empty() || gpu.events.front().time >= end ? nullptr : &gpu.events.front();
    if (event == nullptr && !completes) return;
    if (event != nullptr && (!completes || event->time < done[next].time ||
                             (event->time == done[next].time && event->tag <= done[next].tag))) {
      std::pop_heap(gpu.events.begin(), gpu.events.end(), Later{});
      const CoreEvent now = gpu.events.back();
      gpu.events.pop_back();
      if (is_progress(now.kind, now.b)) --tally().active;
      if (now.kind == kComplete) {
        complete(now.a, now.time);
      } else {
        handle_core(now.kind, now.time, now.a, now.b, now.tag);
      }
    } else {
      prefetch_whole(done, next + kAhead);
      const Arrival arrival = done[next++];
      complete(arrival.id, arrival.time);
    }
    ++tally().events;
  }
}

// A request leaves its CU.
void Line::depart(std::int32_t id, std::int64_t departure) {
  Request& request = requests_[index(id)];
  Gpu& gpu = stage(request.source);
  request.stage = Stage::out;
  request.size = static_cast<std::uint8_t>(sectors(request.bytes));
  request.local = request.target == request.source;
  request.takes = request.packet || request.intent == Intent::flag ||
                  request.intent == Intent::poll || request.detail >= 0;
  if (request.detail >= 0 && request.is_multicast()) [[unlikely]]
    prepare_multicast(request);
  ++tally().counters.hops;
  const std::int64_t out =
      serve_at(gpu.cu_out_free[index(request.cu)], gpu.cu_out_costs[carried(request)], departure);
  const std::uint32_t tag = kFromCu + static_cast<std::uint32_t>(request.cu);
  const std::int64_t time = out + (request.local ? gpu.way(request) : gpu.noc);
  request.spent.charge(Reason::noc, time - departure);
  if (options_.trace != nullptr) show(request, Reason::noc, departure, out);
  (request.local ? gpu.slices : gpu.io_out).push({time, tag, id});
}

// --- Slices: look-ups in the order of acceptance.

void Line::run_slices(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!gpu.slices.take(round, taken)) return;
  const std::int64_t begin = gpu.slices.begin_of(round);
  sort_with_answers(taken, begin, kLocalBursts, kLocalBursts + 1);
  prefetch_first(taken);
  forget_fills(gpu, begin);
  GpuState& state = gpus_[index(rank)];
  gpu.slices_run = true;
  for (std::size_t i = 0; i < taken.size() || !gpu.own.empty();) {
    prefetch(taken, i + kAhead);
    if (i + kAhead / 2 < taken.size()) {
      const Request& next = requests_[index(taken[i + kAhead / 2].id)];
      state.l2.prefetch(next.line, next.near ? next.cu : next.slice);
      gpu.fills.prefetch(next.line);
    }
    const auto [now, tag, id] = gpu.own.empty() ? taken[i++] : next_at_slices(gpu, taken, i);
    Request& request = requests_[index(id)];
    if (request.size == kLarge) [[unlikely]] {
      burst_at_slice(rank, id, now);
      continue;
    }
    ++tally().counters.hops;
    const bool operand = request.intent == Intent::posted_load && request.local;
    const std::int64_t service = request.intent == Intent::flag ? gpu.flag_cost
                                 : operand                      ? gpu.operand[request.size]
                                                                : gpu.slice[request.size];
    const std::int64_t ready =
        serve_at(gpu.slice_free[index(request.slice)], service, now) + gpu.l2;
    request.spent.charge(Reason::l2, ready - now);
    request.accepted = ++state.accepted;
    if (options_.trace != nullptr && !operand && request.intent != Intent::flag)
      show(request, Reason::l2, now, ready - gpu.l2);
    if (request.takes) {
      take_effect(id, now, ready);
    } else if (!request.local && request.intent == Intent::store) {
      tally().counters.delivered += std::int64_t{request.size} << sector_shift_;
    }
    look_up(rank, id, now, ready);
  }
  gpu.slices_run = false;
}

void Line::look_up(int rank, std::int32_t id, std::int64_t now, std::int64_t ready) {
  Request& request = requests_[index(id)];
  Gpu& gpu = stage(rank);
  GpuState& state = gpus_[index(rank)];
  const bool writes = request.intent == Intent::store || request.intent == Intent::member_store ||
                      request.intent == Intent::flag || request.intent == Intent::state_store;
  if (!state.l2.exists() || request.uncached) {
    gpu.memory.push({ready, 0, id});
    return;
  }
  Fill* fill = writes ? nullptr : gpu.fills.find(request.line);
  if (fill != nullptr && fill->time >= 0 && fill->time <= now) fill = nullptr;  // it is there
  if (request.near) {
    const Tags::Outcome copy = state.l2.copy(request.line, request.cu);
    if (copy.evicted_dirty) write_back(rank, copy.victim, ready);
    if (copy.hit && fill == nullptr) {
      ++tally().counters.l2_hits;
      answer(rank, id, ready);
      return;
    }
    ready = go_home(request, ready);
  }
  if (!writes) {
    if (fill != nullptr) {  // on its way: a hit that waits
      ++tally().counters.l2_hits;
      const Tags::Outcome again = state.l2.access(request.line, request.slice, false);
      if (again.evicted_dirty) write_back(rank, again.victim, ready);
      request.queued_at = ready;
      if (fill->time < 0) {
        if (fill->last < 0) {
          fill->first = id;
        } else {
          requests_[index(fill->last)].next_pending = id;
        }
        fill->last = id;
      } else {
        const std::int64_t time = std::max(fill->time, ready);
        request.spent.charge(Reason::hbm, time - ready);
        answer(rank, id, time);
      }
      return;
    }
  }
  const Tags::Outcome outcome = state.l2.access(request.line, request.slice, writes);
  if (outcome.evicted_dirty) write_back(rank, outcome.victim, ready);
  if (outcome.hit || writes) {
    ++(outcome.hit ? tally().counters.l2_hits : tally().counters.l2_misses);
    answer(rank, id, ready);
    return;
  }
  ++tally().counters.l2_misses;
  gpu.fills[request.line] = Fill{};
  gpu.memory.push({ready, 0, id});
}

void Line::write_back(int rank, std::int32_t line, std::int64_t now) {
  stage(rank).memory.push({now, 0, make_write_back(rank, line)});
}

// Lines that are in the L2 are no longer on their way.
void Line::forget_fills(Gpu& gpu, std::int64_t before) {
  std::erase_if(gpu.filled, [&](const auto& filled) {
    if (filled.first >= before) return false;
    const Fill* fill = gpu.fills.find(filled.second);
    if (fill != nullptr && fill->time == filled.first) gpu.fills.erase(filled.second);
    return true;
  });
}

// --- Behind the slices.

void Line::run_memory(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!gpu.memory.take(round, taken)) return;
  sort_arrivals(taken, mine().scratch, gpu.memory.begin_of(round), shift_, kByTag);
  prefetch_first(taken);
  const bool cached = gpus_[index(rank)].l2.exists();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch_whole(taken, i + kAhead);
    const Arrival& arrival = taken[i];
    const std::int32_t id = arrival.id;
    Request& request = requests_[index(id)];
    const std::int64_t time = through_memory(request, arrival.time);
    if (ends_in_memory(request)) {
      release(id);
      continue;
    }
    const bool fills = cached && is_load(request.intent) && !request.uncached;
    answer(rank, id, time);
    if (!fills) continue;
    Fill& fill = *gpu.fills.find(request.line);
    fill.time = time;
    gpu.filled.emplace_back(time, request.line);
    for (std::int32_t other = fill.first; other >= 0;) {
      Request& waiting = requests_[index(other)];
      const std::int32_t following = std::exchange(waiting.next_pending, -1);
      const std::int64_t there = std::max(time, waiting.queued_at);
      waiting.spent.charge(Reason::hbm, there - waiting.queued_at);
      answer(rank, other, there);
      other = following;
    }
  }
}

// Data or an acknowledgement goes back.
void Line::answer(int rank, std::int32_t id, std::int64_t now) {
  Request& request = requests_[index(id)];
  if (request.takes && is_of_engine(request)) [[unlikely]] {
    answer_engine(rank, id, now);
    return;
  }
  Gpu& gpu = stage(rank);
  request.stage = Stage::back_out;
  if (!request.local) {
    gpu.io_out.push({now, kFromSlices, id});
  } else if (is_load(request.intent)) {
    if (request.intent == Intent::poll && poll_again(rank, id, now)) return;
    gpu.cu_in.push({now, kFromSlices, id});
  } else {
    const std::int64_t latency = gpu.way(request);
    request.spent.charge(Reason::noc, latency);
    gpu.done.push({now + latency, gpu.home_slices + static_cast<std::uint32_t>(request.cu), id});
  }
}

void Line::answer_at(std::int32_t id, std::int64_t time) {
  Request& request = requests_[index(id)];
  request.local = request.target == request.source;
  answer(home(request.place()), id, time);
}

void Line::to_memory(std::int32_t id, std::int64_t time) {
  Request& request = requests_[index(id)];
  request.local = request.target == request.source;
  stage(home(request.place())).memory.push({time, 0, id});
}

// --- Merges on chip.

void Line::run_cu_in(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!gpu.cu_in.take(round, taken)) return;
  sort_with_answers(taken, gpu.cu_in.begin_of(round), kFromSlices, kFromSlices + 1);
  prefetch_first(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto& [now, tag, id] = taken[i];
    Request& request = requests_[index(id)];
    const std::int64_t way = request.local ? gpu.way(request) : gpu.noc;
    const std::int64_t time =
        serve_at(gpu.cu_in_free[index(request.cu)], gpu.cu_in_costs[request.size], now) + way;
    request.spent.charge(Reason::noc, time - now);
    if (options_.trace != nullptr) show(request, Reason::noc, now, time - way);
    gpu.done.push({time, gpu.home_cu_in + static_cast<std::uint32_t>(request.cu), id});
  }
  tally().counters.hops += std::ssize(taken);
}

void Line::run_io_out(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!gpu.io_out.take(round, taken)) return;
  sort_with_answers(taken, gpu.io_out.begin_of(round), kFromSlices, kFromSlices + 1);
  prefetch_first(taken);
  tally().counters.hops += std::ssize(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto& [now, tag, id] = taken[i];
    Request& request = requests_[index(id)];
    const WayLeg& leg = leg_of(request);
    const std::size_t size = carried(request);
    const std::int64_t service = size == kLarge ? large_io_time(rank, request) : gpu.io[size];
    const std::int64_t time =
        serve_at(gpu.io_out_free[index(leg.out_port)], service, now) + gpu.io_latency;
    request.spent.charge(Reason::io, time - now);
    if (options_.trace != nullptr) show(request, Reason::io, now, time - gpu.io_latency);
    request.link = 0;
    if (!carries_.empty() && request.stage == Stage::out && is_watched(request.source))
      number_request(id);
    walk(id, request, leg, time);
  }
}

// What the slices answer has the tags [first, last) and is in the order of their acceptance.
void Line::sort_with_answers(std::vector<Arrival>& arrivals, std::int64_t begin,
                             std::uint32_t first, std::uint32_t last) {
  sort_arrivals(arrivals, mine().scratch, begin, shift_, [&](const Arrival& a, const Arrival& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.tag != b.tag || a.tag < first || a.tag >= last) return a.tag < b.tag;
    const Request& x = requests_[index(a.id)];
    const Request& y = requests_[index(b.id)];
    if (sent_by_copy(x) || sent_by_copy(y)) return sent_by_copy(x) && !sent_by_copy(y);
    return earlier(x.accepted, y.accepted);
  });
}

// --- Links.

void Line::run_merge(Calendar& calendar, std::int64_t round) {
  std::vector<Arrival>& taken = mine().taken;
  if (!calendar.take(round, taken)) return;
  sort_arrivals(taken, mine().scratch, calendar.begin_of(round), shift_, kByTag);
  prefetch_first(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto& [now, tag, id] = taken[i];
    Request& request = requests_[index(id)];
    const WayLeg& leg = leg_of(request);
    walk(id, request, leg, pass_link(request, leg.hops[request.link], now));
  }
}

// When it is at what comes behind the link and the node at its end.
std::int64_t Line::pass_link(Request& request, const LinkHop& hop, std::int64_t now) {
  LinkState& link = links_[index(hop.link)];
  const std::size_t size = carried(request);
  link.max_wait = std::max(link.max_wait, link.free - now);
  const bool large = size == kLarge;
  const std::int64_t service = large ? large_link_time(hop.link, request) : (*link.costs)[size];
  const std::int64_t time = serve_at(link.free, service, now) + hop.latency;
  if (options_.trace != nullptr) show_link(request, hop.link, service, now, time - hop.latency);
  if (!large) ++link.requests[size];
  ++tally().counters.hops;
  ++request.link;
  request.spent.charge(Reason::link, time - now);
  request.spent.charge(hop.reason, hop.node_latency);
  return time + hop.node_latency;
}

// Along links that have one stream, as far as the next merge or the GPU at the end of the way.
void Line::walk(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now) {
  while (request.link < leg.count) {
    const LinkHop& hop = leg.hops[request.link];
    if (!carries_.empty() && !enters(id, request, leg, now)) return;
    const std::int32_t calendar = links_[index(hop.link)].calendar;
    if (calendar >= 0) {
      push_merge(calendar, {now, hop.tag, id});
      return;
    }
    now = pass_link(request, hop, now);
  }
  if (leg.to < 0) {
    at_switch(id, leg, now);
    return;
  }
  if (options_.replay != nullptr) {
    come_in(id, request, leg, now);
    return;
  }
  const auto last = leg.hops[leg.count - 1].link;
  if (options_.record != nullptr && is_watched(leg.to) && !carries_[index(last)])
    record(id, leg, now, 0);
  arrive(id, request, leg, now);
}

// Of a replay: rows, and what the detailed ranks send each other.
void Line::run_ingress(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!gpu.ingress.take(round, taken)) return;
  sort_arrivals(taken, mine().scratch, gpu.ingress.begin_of(round), shift_, kByTag);
  for (const Arrival& arrival : taken) {
    Request& request = requests_[index(arrival.id)];
    arrive(arrival.id, request, leg_of(request), arrival.time);
  }
}

// It comes in at a port.
void Line::arrive(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now) {
  Gpu& gpu = stage(leg.to);
  ++tally().counters.hops;
  const std::size_t size = carried(request);
  const std::int64_t service = size == kLarge ? large_io_time(leg.to, request) : gpu.io[size];
  const std::int64_t time =
      serve_at(gpu.io_in_free[index(leg.in_port)], service, now) + gpu.io_latency;
  request.spent.charge(Reason::io, time - now);
  if (options_.trace != nullptr) show(request, Reason::io, now, time - gpu.io_latency);
  const auto port = static_cast<std::uint32_t>(leg.in_port);
  if (request.stage == Stage::out) {
    push_far(gpu, gpu.slices, {time, kFromPort + port, id});
  } else if (size > 0) {
    push_far(gpu, gpu.cu_in, {time, kFromPort + port, id});
  } else {  // an acknowledgement takes no bandwidth on chip
    request.spent.charge(Reason::noc, gpu.noc);
    if (request.takes && request.intent == Intent::burst) {
      burst_comes_home(id, time + gpu.noc, gpu.home_port + port, next_sequence_++);
    } else {
      push_far(gpu, gpu.done, {time + gpu.noc, gpu.home_port + port, id});
    }
  }
}

}  // namespace hemiola::sim
