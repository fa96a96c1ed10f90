// The line engine: from the ports of one GPU by links to those of another.

#include <algorithm>
#include <utility>

#include "sim/line.h"
#include "sim/line_arrivals.h"

namespace hemiola::sim {
namespace {

/// An arrival that is none: a pick is due in that round.
constexpr Arrival pick_at(std::int64_t time) {
  return {time, UINT32_MAX, -1};
}
void forget_picks(std::vector<Arrival>& arrivals) {
  std::erase_if(arrivals, [](const Arrival& arrival) { return arrival.id < 0; });
}

}  // namespace

// When it is at what comes behind the link and the node at its end.
template <bool kWatched>
[[gnu::always_inline]] inline std::int64_t Line::pass_link(Request& request, std::size_t size,
                                                           const LinkHop& hop, std::int64_t now) {
  LinkState& link = links_[index(hop.link)];
  link.max_wait = std::max(link.max_wait, link.free - now);
  const bool large = size == kLarge;
  const std::int64_t service = large ? large_link_time(hop.link, request) : (*link.costs)[size];
  const std::int64_t time = serve_at(link.free, service, now) + hop.latency;
  if (kWatched && options_.trace != nullptr)
    show_link(request, hop.link, service, now, time - hop.latency);
  if (!large) ++link.requests[size];
  ++request.link;
  request.spent.charge(Reason::link, time - now);
  request.spent.charge(hop.reason, hop.node_latency);
  return time + hop.node_latency;
}

// Along links that have one stream, as far as the next merge or the GPU at the end of the way.
template <bool kWatched>
[[gnu::always_inline]] inline void Line::travel(std::int32_t id, Request& request, std::size_t size,
                                                const WayLeg& leg, std::int64_t now, bool at_merge,
                                                Counters& counters) {
  Arbiter* held = nullptr;  // in the receive buffer of whose link it is
  const auto leave_buffer = [&](std::int64_t time) {
    if (kWatched && held != nullptr) return_credit(*std::exchange(held, nullptr), time);
  };
  while (request.link < leg.count) {
    const LinkHop& hop = leg.hops[request.link];
    if (!at_merge) {
      if (kWatched && !carries_.empty() && !enters(id, request, leg, now)) return;
      leave_buffer(now);
      const std::int32_t calendar = links_[index(hop.link)].calendar;
      if (calendar >= 0) {
        push_merge(calendar, {now, hop.tag, id});
        return;
      }
    }
    at_merge = false;
    now = pass_link<kWatched>(request, size, hop, now);
    ++counters.hops;
    if (kWatched) {
      Arbiter* const queue = link_queue(hop.link);
      if (queue != nullptr && queue->has_credits) held = queue;
    }
  }
  if (leg.to < 0) {
    leave_buffer(now);
    at_switch(id, leg, now);
    return;
  }
  if (kWatched && options_.replay != nullptr) {
    come_in(id, request, leg, now);
    return;
  }
  if (kWatched && options_.record != nullptr && is_watched(leg.to) &&
      !carries_[index(leg.hops[leg.count - 1].link)])
    record(id, leg, now, 0);
  leave_buffer(arrive(id, request, size, leg, now, counters));
}

// It comes in at a port. When it has left that.
[[gnu::always_inline]] inline std::int64_t Line::arrive(std::int32_t id, Request& request,
                                                        std::size_t size, const WayLeg& leg,
                                                        std::int64_t now, Counters& counters) {
  Gpu& gpu = stage(leg.to);
  ++counters.hops;
  const std::int64_t service = size == kLarge ? large_io_time(leg.to, request) : gpu.io[size];
  const std::int64_t left = serve_at(gpu.io_in_free[index(leg.in_port)], service, now);
  std::int64_t time = left + gpu.io_latency;
  request.spent.charge(Reason::io, time - now);
  if (options_.trace != nullptr) show(request, Reason::io, now, left);
  const auto port = static_cast<std::uint32_t>(leg.in_port);
  Calendar* next = &gpu.slices;
  std::uint32_t tag = kFromPort + port;
  if (request.stage != Stage::out) {
    next = &gpu.cu_in;
    if (size == 0) {  // an acknowledgement takes no bandwidth on chip
      request.spent.charge(Reason::noc, gpu.noc);
      time += gpu.noc;
      next = &gpu.done;
      tag = gpu.home_port + port;
      if (request.takes && request.intent == Intent::burst) {
        burst_comes_home(id, time, tag,
                         (std::uint64_t{1} + index(leg.to)) << 40 | gpu.bursts_home++);
        return left;
      }
    }
  }
  push_far(gpu.worker, *next, {time, tag, id});
  return left;
}

void Line::walk(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now) {
  Counters& counters = tally().counters;
  if (looks_closely()) {
    travel<true>(id, request, carried(request), leg, now, false, counters);
  } else {
    travel<false>(id, request, carried(request), leg, now, false, counters);
  }
}

void Line::run_io_out(int rank, std::int64_t round) {
  if (machine_.model(rank).noc_arbitration != machine::Arbitration::fifo) [[unlikely]] {
    choose_at_ports(rank, round);
    return;
  }
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!take_with_answers(gpu.io_out, round, kFromSlices, kFromSlices + 1, taken)) return;
  prefetch_first(taken);
  looks_closely() ? leave_by_ports<true>(rank, gpu, taken)
                  : leave_by_ports<false>(rank, gpu, taken);
}

template <bool kWatched>
void Line::leave_by_ports(int rank, Gpu& gpu, const std::vector<Arrival>& taken) {
  Counters& counters = tally().counters;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    leave_by_port<kWatched>(rank, gpu, taken[i].id, taken[i].time, counters);
  }
}

template <bool kWatched>
[[gnu::always_inline]] inline void Line::leave_by_port(int rank, Gpu& gpu, std::int32_t id,
                                                       std::int64_t now, Counters& counters) {
  Request& request = requests_[index(id)];
  const WayLeg& leg = leg_of(request);
  ++counters.hops;
  const std::size_t size = carried(request);
  const std::int64_t service = size == kLarge ? large_io_time(rank, request) : gpu.io[size];
  const std::int64_t time =
      serve_at(gpu.io_out_free[index(leg.out_port)], service, now) + gpu.io_latency;
  request.spent.charge(Reason::io, time - now);
  if (kWatched && options_.trace != nullptr) show(request, Reason::io, now, time - gpu.io_latency);
  request.link = 0;
  if (kWatched && !carries_.empty() && request.stage == Stage::out && is_watched(request.source))
    number_request(id);
  travel<kWatched>(id, request, size, leg, time, false, counters);
}

void Line::run_merge(Calendar& calendar, std::int64_t round) {
  std::vector<Arrival>& taken = mine().taken;
  if (!take_by_tag(calendar, round, taken)) return;
  prefetch_first(taken);
  looks_closely() ? pass_merge<true>(taken) : pass_merge<false>(taken);
}

template <bool kWatched>
void Line::pass_merge(const std::vector<Arrival>& taken) {
  Counters& counters = tally().counters;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto [now, tag, id] = taken[i];
    Request& request = requests_[index(id)];
    travel<kWatched>(id, request, carried(request), leg_of(request), now, true, counters);
  }
}

// --- Links and ports that choose between control and data, and links that need credits. What they
// choose depends on nothing but what has come to them, and a credit's return is known once the
// request has left the link: so each is worked off by itself.

bool Line::is_control(const Request& request) const {
  return carried(request) == 0 || request.bytes == 0 || request.intent == Intent::flag;
}

// When the next one of its queue is served; INT64_MAX: none waits.
std::int64_t Line::next_pick(const Arbiter& arbiter, std::int64_t free) const {
  if (arbiter.queued() == 0) return INT64_MAX;
  std::int64_t came = INT64_MAX;
  for (const std::deque<std::int32_t>* queue : {&arbiter.control, &arbiter.data})
    if (!queue->empty()) came = std::min(came, requests_[index(queue->front())].queued_at);
  std::int64_t time = std::max(came, free);
  if (arbiter.has_credits && arbiter.credits == 0) time = std::max(time, arbiter.returns.front());
  return time;
}

// Those of one link may leave its receive buffer in another order than they came.
void Line::return_credit(Arbiter& arbiter, std::int64_t time) {
  const std::int64_t back = time + arbiter.credit_latency;
  auto place = arbiter.returns.end();
  while (place != arbiter.returns.begin() && *(place - 1) > back) --place;
  arbiter.returns.insert(place, back);
  ++tally().counters.credits_returned;
}

// All that arrives at an instant is in the queues before the pick at that instant. What is not
// served before `end` stays for later rounds: more may come by then.
template <typename Serve>
void Line::choose(Arbiter& arbiter, const std::int64_t& free, const std::vector<Arrival>& arrivals,
                  Calendar& calendar, std::int64_t end, Serve serve) {
  auto arrival = arrivals.begin();
  std::int64_t pick = next_pick(arbiter, free);
  while (arrival != arrivals.end() || pick < end) {
    if (arrival != arrivals.end() && arrival->time <= pick) {
      const std::int32_t id = arrival->id;
      Request& request = requests_[index(id)];
      request.queued_at = arrival->time;
      arbiter.add(id, is_control(request));
      ++arrival;
    } else {
      const std::int32_t id = take_next(arbiter);
      if (arbiter.has_credits) {
        ++tally().counters.credits_taken;
        if (arbiter.credits > 0) {
          --arbiter.credits;
        } else {
          arbiter.returns.pop_front();
        }
      }
      serve(id, pick);
    }
    pick = next_pick(arbiter, free);
  }
  if (pick == INT64_MAX || arbiter.pick_at == pick) return;
  arbiter.pick_at = pick;
  calendar.push(pick_at(pick));
}

void Line::choose_at_link(std::int32_t link, Calendar& calendar, std::int64_t round) {
  std::vector<Arrival>& taken = mine().taken;
  if (!take_by_tag(calendar, round, taken)) return;
  forget_picks(taken);
  Counters& counters = tally().counters;
  const auto serve = [&](std::int32_t id, std::int64_t now) {
    Request& request = requests_[index(id)];
    request.spent.charge(Reason::link, now - request.queued_at);
    travel<true>(id, request, carried(request), leg_of(request), now, true, counters);
  };
  choose(*link_queue(link), links_[index(link)].free, taken, calendar, calendar.begin_of(round + 1),
         serve);
}

void Line::choose_at_ports(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!take_with_answers(gpu.io_out, round, kFromSlices, kFromSlices + 1, taken)) return;
  forget_picks(taken);
  const GpuLayout& layout = *fabric_.layout[index(rank)];
  std::vector<std::vector<Arrival>>& by_port = mine().by_port;
  by_port.resize(std::max(by_port.size(), index(layout.ports)));
  for (std::vector<Arrival>& arrivals : by_port) arrivals.clear();
  for (const Arrival& arrival : taken)
    by_port[index(leg_of(requests_[index(arrival.id)]).out_port)].push_back(arrival);
  for (std::int32_t port = 0; port < layout.ports; ++port) {
    const auto serve = [&](std::int32_t id, std::int64_t now) {
      Request& request = requests_[index(id)];
      request.spent.charge(Reason::io, now - request.queued_at);
      leave_by_port<true>(rank, gpu, id, now, tally().counters);
    };
    choose(*queue_of(fabric_.gpu_base[index(rank)] + layout.io_out + port),
           gpu.io_out_free[index(port)], by_port[index(port)], gpu.io_out,
           gpu.io_out.begin_of(round + 1), serve);
  }
}

// Of a replay: rows, and what the detailed ranks send each other.
void Line::run_ingress(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!take_by_tag(gpu.ingress, round, taken)) return;
  for (const Arrival& arrival : taken) {
    Request& request = requests_[index(arrival.id)];
    arrive(arrival.id, request, carried(request), leg_of(request), arrival.time, tally().counters);
  }
}

}  // namespace hemiola::sim
