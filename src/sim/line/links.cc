// The line engine: from the ports of one GPU by links to those of another.

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/line/arrivals.h"
#include "sim/line/line.h"

namespace hemiola::sim {
namespace {

/// Arrivals that are none: a pick is due in that round; a credit of a link is back.
constexpr Arrival pick_at(std::int64_t time) {
  return {time, UINT32_MAX, -1};
}
constexpr Arrival credit_at(std::int64_t time, std::int32_t link) {
  return {time, UINT32_MAX, -2 - link};
}
constexpr std::int32_t link_of_credit(const Arrival& arrival) {
  return -2 - arrival.id;
}
void forget_picks(std::vector<Arrival>& arrivals) {
  std::erase_if(arrivals, [](const Arrival& arrival) { return arrival.id == -1; });
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
  const std::int64_t time =
      (large ? serve_large(link.free, service, request, now) : serve_at(link.free, service, now)) +
      hop.latency;
  if (kWatched && device_.options.trace != nullptr)
    show_link(request, hop.link, service, now, time - hop.latency);
  if (!large) ++link.requests[size];
  ++request.link;
  request.spent.charge(Reason::link, time - now);
  request.spent.charge(hop.reason, hop.node_latency);
  return time + hop.node_latency;
}

// Along links that have one input, as far as the next merge or the GPU at the end of the way.
template <bool kWatched>
[[gnu::always_inline]] inline void Line::travel(std::int32_t id, Request& request, std::size_t size,
                                                const WayLeg& leg, std::int64_t now, bool at_merge,
                                                Counters& counters) {
  std::int32_t held = -1;  // in the receive buffer of that link, which has a queue
  const auto leave_buffer = [&](std::int64_t time) {
    if (kWatched && held >= 0) return_credit(*link_queue(std::exchange(held, -1)), time);
  };
  while (request.link < leg.count) {
    const LinkHop& hop = leg.hops[request.link];
    if (!at_merge) {
      if (kWatched && !carries_.empty() && !enters(id, request, leg, now)) return;
      const std::int32_t calendar = links_[index(hop.link)].calendar;
      if (kWatched && held >= 0 && is_finite(calendar))
        request.in_link =
            device_.fabric.link_base + std::exchange(held, -1);  // until there is room
      leave_buffer(now);
      if (calendar >= 0) {
        push_merge(calendar, {now, hop.tag, id});
        return;
      }
    }
    at_merge = false;
    now = pass_link<kWatched>(request, size, hop, now);
    ++counters.hops;
    if (kWatched && link_queue(hop.link) != nullptr) held = hop.link;
  }
  if (leg.to < 0) {
    leave_buffer(now);
    at_switch(id, leg, now);
    return;
  }
  if (kWatched && device_.options.replay != nullptr) {
    come_in(id, request, leg, now);
    return;
  }
  if (kWatched && device_.options.record != nullptr && device_.is_watched(leg.to) &&
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
  const std::int64_t service = size == kLarge ? large_io_time(leg.to, leg.in_port, request)
                                              : gpu.io[index(leg.in_port)][size];
  std::int64_t& free = gpu.io_in_free[index(leg.in_port)];
  const std::int64_t left =
      size == kLarge ? serve_large(free, service, request, now) : serve_at(free, service, now);
  std::int64_t time = left + gpu.io_latency;
  request.spent.charge(Reason::io, time - now);
  if (device_.options.trace != nullptr) show(request, Reason::io, now, left);
  const auto port = static_cast<std::uint32_t>(leg.in_port);
  Calendar* next = &gpu.slices;
  std::uint32_t tag = kFromPort + port;
  if (request.stage != Stage::out) {
    next = &gpu.cu_in;
    if (size == 0 || request.train) {  // an acknowledgement takes no bandwidth on chip
      request.spent.charge(Reason::noc, gpu.noc);
      time += gpu.noc;
      next = &gpu.done;
      tag = gpu.home_port + port;
      if (request.takes && request.intent == Intent::burst) {
        if (request.train) time += end_lag(request);
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
  Counters& counters = device_.counters();
  if (looks_closely())
    travel<true>(id, request, carried(request), leg, now, false, counters);
  else
    travel<false>(id, request, carried(request), leg, now, false, counters);
}

void Line::run_io_out(int rank, std::int64_t round) {
  if (device_.model(rank).noc_arbitration != machine::Arbitration::fifo) [[unlikely]] {
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
  Counters& counters = device_.counters();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    leave_by_port<kWatched>(rank, gpu, taken[i].id, taken[i].time, counters);
  }
}

template <bool kWatched>
[[gnu::always_inline]] inline void Line::leave_by_port(int rank, Gpu& gpu, std::int32_t id,
                                                       std::int64_t now, Counters& counters) {
  Request& request = device_.request(id);
  const WayLeg& leg = leg_of(request);
  ++counters.hops;
  const std::size_t size = carried(request);
  const std::int64_t service = size == kLarge ? large_io_time(rank, leg.out_port, request)
                                              : gpu.io[index(leg.out_port)][size];
  std::int64_t& free = gpu.io_out_free[index(leg.out_port)];
  const std::int64_t time =
      gpu.io_latency +
      (size == kLarge ? serve_large(free, service, request, now) : serve_at(free, service, now));
  request.spent.charge(Reason::io, time - now);
  if (kWatched && device_.options.trace != nullptr)
    show(request, Reason::io, now, time - gpu.io_latency);
  request.link = 0;
  if (kWatched && !carries_.empty() && request.stage == Stage::out &&
      device_.is_watched(request.source))
    number_request(id, time);
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
  Counters& counters = device_.counters();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto [now, tag, id] = taken[i];
    Request& request = device_.request(id);
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
    if (!queue->empty()) came = std::min(came, device_.request(queue->front()).queued_at);
  std::int64_t time = std::max(came, free);
  return with_credit(arbiter, time);
}

// INT64_MAX: whoever is to return the next one has not said when.
std::int64_t Line::with_credit(const Arbiter& arbiter, std::int64_t time) {
  if (!arbiter.has_credits || arbiter.credits > 0) return time;
  return arbiter.returns.empty() ? INT64_MAX : std::max(time, arbiter.returns.front());
}

// Those of one link may leave its receive buffer in another order than they came.
void Line::return_credit(Arbiter& arbiter, std::int64_t time) {
  if (!arbiter.has_credits) return;
  note_credit(arbiter, time + arbiter.credit_latency);
  ++device_.counters().credits_returned;
}

// One will be back, or is back, at `time`.
void Line::note_credit(Arbiter& arbiter, std::int64_t time) {
  auto place = arbiter.returns.end();
  while (place != arbiter.returns.begin() && *(place - 1) > time) --place;
  arbiter.returns.insert(place, time);
}

std::int32_t Line::pick_from(Arbiter& arbiter) {
  if (arbiter.has_credits) {
    ++device_.counters().credits_taken;
    if (arbiter.credits > 0)
      --arbiter.credits;
    else
      arbiter.returns.pop_front();
  }
  return servers_.take_next(arbiter);
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
      if (arrival->id < 0) {
        note_credit(arbiter, arrival->time);
      } else {
        Request& request = device_.request(arrival->id);
        request.queued_at = arrival->time;
        arbiter.add(arrival->id, is_control(request));
      }
      ++arrival;
    } else {
      serve(pick_from(arbiter), pick);
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
  choose(*link_queue(link), links_[index(link)].free, taken, calendar, calendar.begin_of(round + 1),
         [&](std::int32_t id, std::int64_t now) { leave_queue(id, now); });
}

// Over the link in whose queue it has been.
void Line::leave_queue(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  request.spent.charge(Reason::link, now - request.queued_at);
  travel<true>(id, request, carried(request), leg_of(request), now, true, device_.counters());
}

// --- Switches with finite queues. Their links are one stage: what finds no room in one queue holds
// up what is behind it, for others.

// The request goes from its receive buffer into a queue; the credit travels back.
void Line::leave_receive_buffer(Request& request, std::int64_t now) {
  const std::int32_t in_link = std::exchange(request.in_link, -1);
  const Arbiter& in = arbiter_of(device_.fabric, in_link);
  if (!in.has_credits) return;
  ++device_.counters().credits_returned;
  const std::int32_t link = in_link - device_.fabric.link_base;
  push_merge(links_[index(link)].calendar, credit_at(now + in.credit_latency, link));
}

void Line::choose_at_switch(FiniteSwitch& at, Calendar& calendar, std::int64_t round) {
  using Pick = FiniteSwitch::Pick;
  std::vector<Arrival>& taken = mine().taken;
  if (!take_by_tag(calendar, round, taken)) return;
  forget_picks(taken);
  // Of a queue whose state has changed. What is planned otherwise now stays in the heap, and is
  // known by its time.
  const auto plan = [&](std::int32_t server, std::int64_t now) {
    Arbiter& queue = arbiter_of(device_.fabric, server);
    const std::int64_t free = links_[index(server - device_.fabric.link_base)].free;
    const std::int64_t pick =
        queue.queued() == 0 ? INT64_MAX : with_credit(queue, std::max(now, free));
    if (std::exchange(queue.pick_at, pick) == pick || pick == INT64_MAX) return;
    at.picks.push_back({pick, server});
    std::push_heap(at.picks.begin(), at.picks.end(), std::greater<Pick>());
  };
  const auto first_pick = [&] {
    while (!at.picks.empty()) {
      if (arbiter_of(device_.fabric, at.picks.front().server).pick_at == at.picks.front().time)
        return at.picks.front().time;
      std::pop_heap(at.picks.begin(), at.picks.end(), std::greater<Pick>());
      at.picks.pop_back();
    }
    return INT64_MAX;
  };
  const auto wanted = [&](std::int32_t id) {
    const Request& request = device_.request(id);
    const LinkHop& hop = leg_of(request).hops[request.link];
    return WantedQueue{device_.fabric.link_base + hop.link, hop.tag};
  };
  std::int64_t now = 0;
  const auto enter = [&](std::int32_t server, std::int32_t id) {
    Request& request = device_.request(id);
    if (request.in_link >= 0) leave_receive_buffer(request, now);
    arbiter_of(device_.fabric, server).add(id, is_control(request));
    plan(server, now);
  };
  const auto come = [&](const Arrival& arrival) {
    if (arrival.id < 0) {
      const std::int32_t server = device_.fabric.link_base + link_of_credit(arrival);
      note_credit(arbiter_of(device_.fabric, server), now);
      plan(server, now);
      return;
    }
    Request& request = device_.request(arrival.id);
    request.queued_at = now;
    const std::int32_t server = wanted(arrival.id).server;
    if (request.in_link >= 0 && waits_for_room(device_.fabric, request.in_link, server, arrival.id))
      return;
    enter(server, arrival.id);
  };
  const std::int64_t end = calendar.begin_of(round + 1);
  std::vector<std::int32_t> freed;
  auto arrival = taken.begin();
  std::int64_t pick = first_pick();
  for (; arrival != taken.end() || pick < end; pick = first_pick()) {
    if (arrival != taken.end() && arrival->time <= pick) {
      now = arrival->time;
      come(*arrival++);
      continue;
    }
    for (now = pick; pick == now; pick = first_pick()) {
      const std::int32_t server = at.picks.front().server;
      Arbiter& queue = arbiter_of(device_.fabric, server);
      leave_queue(pick_from(queue), now);
      plan(server, now);
      if (!queue.blocked.empty()) freed.push_back(server);
    }
    admit(device_.fabric, freed, wanted, enter);
  }
  if (pick == INT64_MAX || std::exchange(at.marked, pick) == pick) return;
  calendar.push(pick_at(pick));
}

void Line::choose_at_ports(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!take_with_answers(gpu.io_out, round, kFromSlices, kFromSlices + 1, taken)) return;
  forget_picks(taken);
  const GpuLayout& layout = device_.layout(rank);
  std::vector<std::vector<Arrival>>& by_port = mine().by_port;
  by_port.resize(std::max(by_port.size(), index(layout.ports)));
  for (std::vector<Arrival>& arrivals : by_port) arrivals.clear();
  for (const Arrival& arrival : taken)
    by_port[index(leg_of(device_.request(arrival.id)).out_port)].push_back(arrival);
  for (std::int32_t port = 0; port < layout.ports; ++port) {
    const auto serve = [&](std::int32_t id, std::int64_t now) {
      Request& request = device_.request(id);
      request.spent.charge(Reason::io, now - request.queued_at);
      leave_by_port<true>(rank, gpu, id, now, device_.counters());
    };
    choose(*queue_of(device_.fabric.gpu_base[index(rank)] + layout.io_out + port),
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
    Request& request = device_.request(arrival.id);
    arrive(arrival.id, request, carried(request), leg_of(request), arrival.time,
           device_.counters());
  }
}

}  // namespace hemiola::sim
