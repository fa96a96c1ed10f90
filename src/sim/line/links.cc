#include "sim/line/links.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/device/servers.h"
#include "sim/device/tracing.h"
#include "sim/line/arrivals.h"
#include "sim/line/engine_stages.h"
#include "sim/line/recorder.h"
#include "sim/line/replayer.h"
#include "sim/line/stages.h"
#include "sim/line/way_table.h"

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

// --- Bursts and their trains.

// When the first packet of a burst leaves a server that was busy until `free`. Between packets that
// come slowly it serves others, so it is busy for as long as it serves.
std::int64_t Links::serve_large(std::int64_t& free, std::int64_t service, const Request& request,
                                std::int64_t arrival) {
  if (!request.train) return serve_at(free, service, arrival);
  Detail& train = device_.details[index(request.detail)];
  // What serves at all takes 1 fs, which rounds count on: see choose_rounds().
  const std::int64_t each = std::min(service, std::max<std::int64_t>(1, service / train.together));
  const std::int64_t first = std::max(free, arrival) + each;
  free = first - each + service;
  train.lag = std::max(free, arrival + train.lag + each) - first;
  return first;
}

std::int64_t Links::end_lag(Request& request) {
  const std::int64_t lag = std::exchange(device_.details[index(request.detail)].lag, 0);
  request.spent.charge(Reason::link, lag);
  return lag;
}

// What a port takes for a burst, and a link, which counts it.
std::int64_t Links::large_io_time(int rank, std::int32_t port, const Request& request) {
  if (request.stage == Stage::back_out)  // acknowledgements of a train
    return device_.details[index(request.detail)].together * stages_.of(rank).io[index(port)][0];
  return device_.layout(rank).port_rates[index(port)].time_for(request.bytes).fs;
}

std::int64_t Links::packet_of(const Request& request) const {
  if (request.intent != Intent::burst) return 0;
  return device_.descriptors[index(device_.details[index(request.detail)].descriptor)].packet;
}

std::int64_t Links::large_link_time(std::int32_t link, const Request& request) {
  const std::int32_t together = device_.details[index(request.detail)].together;
  if (request.stage == Stage::back_out) {
    stages_.links[index(link)].requests[0] += static_cast<std::uint32_t>(together);
    return together * (*stages_.links[index(link)].costs)[0];
  }
  Server& server = device_.server(device_.fabric.link_base + link);
  server.requests += together - 1;
  return device_.fabric.service(server, request.bytes, packet_of(request));
}

void Links::show_link(const Request& request, std::int32_t link, std::int64_t service,
                      std::int64_t arrival, std::int64_t departure) const {
  const bool back = request.stage == Stage::back_out;
  const std::int64_t payload = back == is_load(request.intent) ? request.bytes : 0;
  // Requests ahead of it when it came, in units of its own service.
  const std::int64_t ahead = (departure - arrival - 1) / service;
  device_.options.trace->link(
      link, device_.machine.class_of(link).wire_bytes(payload, packet_of(request)),
      static_cast<int>(ahead), {departure - service}, {departure});
  tracing_.show_request(request, Reason::link, arrival, departure);
}

// --- Along links.

// When it is at what comes behind the link and the node at its end.
template <bool kWatched>
[[gnu::always_inline]] inline std::int64_t Links::pass_link(Request& request, std::size_t size,
                                                            const LinkHop& hop, std::int64_t now) {
  LinkState& link = stages_.links[index(hop.link)];
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
[[gnu::always_inline]] inline void Links::travel(std::int32_t id, Request& request,
                                                 std::size_t size, const WayLeg& leg,
                                                 std::int64_t now, bool at_merge,
                                                 Counters& counters) {
  std::int32_t held = -1;  // in the receive buffer of that link, which has a queue
  const auto leave_buffer = [&](std::int64_t time) {
    if (kWatched && held >= 0) return_credit(*stages_.link_queue(std::exchange(held, -1)), time);
  };
  while (request.link < leg.count) {
    const LinkHop& hop = leg.hops[request.link];
    if (!at_merge) {
      if (kWatched && recorder_.carries_some() && !recorder_.enters(id, request, leg, now)) return;
      const std::int32_t calendar = stages_.links[index(hop.link)].calendar;
      if (kWatched && held >= 0 && is_finite(calendar))
        request.in_link =
            device_.fabric.link_base + std::exchange(held, -1);  // until there is room
      leave_buffer(now);
      if (calendar >= 0) {
        stages_.push_merge(calendar, {now, hop.tag, id});
        return;
      }
    }
    at_merge = false;
    now = pass_link<kWatched>(request, size, hop, now);
    ++counters.hops;
    if (kWatched && stages_.link_queue(hop.link) != nullptr) held = hop.link;
  }
  if (leg.to < 0) {
    leave_buffer(now);
    at_switch(id, leg, now);
    return;
  }
  if (kWatched && device_.options.replay != nullptr) {
    replayer_.come_in(id, request, leg, now);
    return;
  }
  if (kWatched && device_.options.record != nullptr && device_.is_watched(leg.to) &&
      !recorder_.carries(leg.hops[leg.count - 1].link))
    recorder_.record(id, leg, now, 0);
  leave_buffer(arrive(id, request, size, leg, now, counters));
}

// It comes in at a port. When it has left that.
[[gnu::always_inline]] inline std::int64_t Links::arrive(std::int32_t id, Request& request,
                                                         std::size_t size, const WayLeg& leg,
                                                         std::int64_t now, Counters& counters) {
  GpuStages& gpu = stages_.of(leg.to);
  ++counters.hops;
  const std::int64_t service = size == kLarge ? large_io_time(leg.to, leg.in_port, request)
                                              : gpu.io[index(leg.in_port)][size];
  std::int64_t& free = gpu.io_in_free[index(leg.in_port)];
  const std::int64_t left =
      size == kLarge ? serve_large(free, service, request, now) : serve_at(free, service, now);
  std::int64_t time = left + gpu.io_latency;
  request.spent.charge(Reason::io, time - now);
  if (device_.options.trace != nullptr) tracing_.show_request(request, Reason::io, now, left);
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
        engine_stages_.burst_comes_home(
            id, time, tag, (std::uint64_t{1} + index(leg.to)) << 40 | gpu.bursts_home++);
        return left;
      }
    }
  }
  stages_.push_far(gpu.worker, *next, {time, tag, id});
  return left;
}

void Links::walk(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now) {
  Counters& counters = device_.counters();
  if (stages_.looks_closely())
    travel<true>(id, request, carried(request), leg, now, false, counters);
  else
    travel<false>(id, request, carried(request), leg, now, false, counters);
}

void Links::run_io_out(int rank, std::int64_t round) {
  if (device_.model(rank).noc_arbitration != machine::Arbitration::fifo) [[unlikely]] {
    choose_at_ports(rank, round);
    return;
  }
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_with_answers(gpu.io_out, round, kFromSlices, kFromSlices + 1, taken)) return;
  stages_.prefetch_first(taken);
  stages_.looks_closely() ? leave_by_ports<true>(rank, gpu, taken)
                          : leave_by_ports<false>(rank, gpu, taken);
}

template <bool kWatched>
void Links::leave_by_ports(int rank, GpuStages& gpu, const std::vector<Arrival>& taken) {
  Counters& counters = device_.counters();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    stages_.prefetch(taken, i + kAhead);
    leave_by_port<kWatched>(rank, gpu, taken[i].id, taken[i].time, counters);
  }
}

template <bool kWatched>
[[gnu::always_inline]] inline void Links::leave_by_port(int rank, GpuStages& gpu, std::int32_t id,
                                                        std::int64_t now, Counters& counters) {
  Request& request = device_.request(id);
  const WayLeg& leg = ways_.leg_of(request);
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
    tracing_.show_request(request, Reason::io, now, time - gpu.io_latency);
  request.link = 0;
  if (kWatched && recorder_.carries_some() && request.stage == Stage::out &&
      device_.is_watched(request.source))
    recorder_.number_request(id, time);
  travel<kWatched>(id, request, size, leg, time, false, counters);
}

void Links::run_merge(Calendar& calendar, std::int64_t round) {
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_by_tag(calendar, round, taken)) return;
  stages_.prefetch_first(taken);
  stages_.looks_closely() ? pass_merge<true>(taken) : pass_merge<false>(taken);
}

template <bool kWatched>
void Links::pass_merge(const std::vector<Arrival>& taken) {
  Counters& counters = device_.counters();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    stages_.prefetch(taken, i + kAhead);
    const auto [now, tag, id] = taken[i];
    Request& request = device_.request(id);
    travel<kWatched>(id, request, carried(request), ways_.leg_of(request), now, true, counters);
  }
}

// --- Links and ports that choose between control and data, and links that need credits. What they
// choose depends on nothing but what has come to them, and a credit's return is known once the
// request has left the link: so each is worked off by itself.

bool Links::is_control(const Request& request) {
  return carried(request) == 0 || request.bytes == 0 || request.intent == Intent::flag;
}

// When the next one of its queue is served; INT64_MAX: none waits.
std::int64_t Links::next_pick(const Arbiter& arbiter, std::int64_t free) const {
  if (arbiter.queued() == 0) return INT64_MAX;
  std::int64_t came = INT64_MAX;
  for (const std::deque<std::int32_t>* queue : {&arbiter.control, &arbiter.data})
    if (!queue->empty()) came = std::min(came, device_.request(queue->front()).queued_at);
  std::int64_t time = std::max(came, free);
  return with_credit(arbiter, time);
}

// INT64_MAX: whoever is to return the next one has not said when.
std::int64_t Links::with_credit(const Arbiter& arbiter, std::int64_t time) {
  if (!arbiter.has_credits || arbiter.credits > 0) return time;
  return arbiter.returns.empty() ? INT64_MAX : std::max(time, arbiter.returns.front());
}

// Those of one link may leave its receive buffer in another order than they came.
void Links::return_credit(Arbiter& arbiter, std::int64_t time) {
  if (!arbiter.has_credits) return;
  note_credit(arbiter, time + arbiter.credit_latency);
  ++device_.counters().credits_returned;
}

// One will be back, or is back, at `time`.
void Links::note_credit(Arbiter& arbiter, std::int64_t time) {
  auto place = arbiter.returns.end();
  while (place != arbiter.returns.begin() && *(place - 1) > time) --place;
  arbiter.returns.insert(place, time);
}

std::int32_t Links::pick_from(Arbiter& arbiter) {
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
void Links::choose(Arbiter& arbiter, const std::int64_t& free, const std::vector<Arrival>& arrivals,
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

void Links::choose_at_link(std::int32_t link, Calendar& calendar, std::int64_t round) {
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_by_tag(calendar, round, taken)) return;
  forget_picks(taken);
  choose(*stages_.link_queue(link), stages_.links[index(link)].free, taken, calendar,
         calendar.begin_of(round + 1),
         [&](std::int32_t id, std::int64_t now) { leave_queue(id, now); });
}

// Over the link in whose queue it has been.
void Links::leave_queue(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  request.spent.charge(Reason::link, now - request.queued_at);
  travel<true>(id, request, carried(request), ways_.leg_of(request), now, true, device_.counters());
}

// --- Switches with finite queues. Their links are one stage: what finds no room in one queue holds
// up what is behind it, for others.

// The request goes from its receive buffer into a queue; the credit travels back.
void Links::leave_receive_buffer(Request& request, std::int64_t now) {
  const std::int32_t in_link = std::exchange(request.in_link, -1);
  const Arbiter& in = arbiter_of(device_.fabric, in_link);
  if (!in.has_credits) return;
  ++device_.counters().credits_returned;
  const std::int32_t link = in_link - device_.fabric.link_base;
  stages_.push_merge(stages_.links[index(link)].calendar, credit_at(now + in.credit_latency, link));
}

void Links::choose_at_switch(FiniteSwitch& at, Calendar& calendar, std::int64_t round) {
  using Pick = FiniteSwitch::Pick;
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_by_tag(calendar, round, taken)) return;
  forget_picks(taken);
  // Of a queue whose state has changed. What is planned otherwise now stays in the heap, and is
  // known by its time.
  const auto plan = [&](std::int32_t server, std::int64_t now) {
    Arbiter& queue = arbiter_of(device_.fabric, server);
    const std::int64_t free = stages_.links[index(server - device_.fabric.link_base)].free;
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
    const LinkHop& hop = ways_.leg_of(request).hops[request.link];
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

void Links::choose_at_ports(int rank, std::int64_t round) {
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_with_answers(gpu.io_out, round, kFromSlices, kFromSlices + 1, taken)) return;
  forget_picks(taken);
  const GpuLayout& layout = device_.layout(rank);
  std::vector<std::vector<Arrival>>& by_port = stages_.mine().by_port;
  by_port.resize(std::max(by_port.size(), index(layout.ports)));
  for (std::vector<Arrival>& arrivals : by_port) arrivals.clear();
  for (const Arrival& arrival : taken)
    by_port[index(ways_.leg_of(device_.request(arrival.id)).out_port)].push_back(arrival);
  for (std::int32_t port = 0; port < layout.ports; ++port) {
    const auto serve = [&](std::int32_t id, std::int64_t now) {
      Request& request = device_.request(id);
      request.spent.charge(Reason::io, now - request.queued_at);
      leave_by_port<true>(rank, gpu, id, now, device_.counters());
    };
    choose(*stages_.queue_of(device_.fabric.gpu_base[index(rank)] + layout.io_out + port),
           gpu.io_out_free[index(port)], by_port[index(port)], gpu.io_out,
           gpu.io_out.begin_of(round + 1), serve);
  }
}

// Of a replay: rows, and what the detailed ranks send each other.
void Links::run_ingress(int rank, std::int64_t round) {
  GpuStages& gpu = stages_.of(rank);
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!stages_.take_by_tag(gpu.ingress, round, taken)) return;
  for (const Arrival& arrival : taken) {
    Request& request = device_.request(arrival.id);
    arrive(arrival.id, request, carried(request), ways_.leg_of(request), arrival.time,
           device_.counters());
  }
}

}  // namespace hemiola::sim
