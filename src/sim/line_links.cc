// The line engine: from the ports of one GPU by links to those of another.

#include <algorithm>
#include <utility>

#include "sim/line.h"
#include "sim/line_arrivals.h"

namespace hemiola::sim {

// When it is at what comes behind the link and the node at its end.
template <bool kWatched>
[[gnu::always_inline]] inline std::int64_t Line::pass_link(Request& request, const LinkHop& hop,
                                                           std::int64_t now) {
  LinkState& link = links_[index(hop.link)];
  const std::size_t size = carried(request);
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
[[gnu::always_inline]] inline void Line::travel(std::int32_t id, Request& request,
                                                const WayLeg& leg, std::int64_t now, bool at_merge,
                                                Counters& counters) {
  while (request.link < leg.count) {
    const LinkHop& hop = leg.hops[request.link];
    if (!at_merge) {
      if (kWatched && !carries_.empty() && !enters(id, request, leg, now)) return;
      const std::int32_t calendar = links_[index(hop.link)].calendar;
      if (calendar >= 0) {
        push_merge(calendar, {now, hop.tag, id});
        return;
      }
    }
    at_merge = false;
    now = pass_link<kWatched>(request, hop, now);
    ++counters.hops;
  }
  if (leg.to < 0) {
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
  arrive(id, request, leg, now, counters);
}

// It comes in at a port.
[[gnu::always_inline]] inline void Line::arrive(std::int32_t id, Request& request,
                                                const WayLeg& leg, std::int64_t now,
                                                Counters& counters) {
  Gpu& gpu = stage(leg.to);
  ++counters.hops;
  const std::size_t size = carried(request);
  const std::int64_t service = size == kLarge ? large_io_time(leg.to, request) : gpu.io[size];
  std::int64_t time = serve_at(gpu.io_in_free[index(leg.in_port)], service, now) + gpu.io_latency;
  request.spent.charge(Reason::io, time - now);
  if (options_.trace != nullptr) show(request, Reason::io, now, time - gpu.io_latency);
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
        return;
      }
    }
  }
  push_far(gpu.worker, *next, {time, tag, id});
}

void Line::walk(std::int32_t id, Request& request, const WayLeg& leg, std::int64_t now) {
  Counters& counters = tally().counters;
  if (is_watching()) {
    travel<true>(id, request, leg, now, false, counters);
  } else {
    travel<false>(id, request, leg, now, false, counters);
  }
}

void Line::run_io_out(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!take_with_answers(gpu.io_out, round, kFromSlices, kFromSlices + 1, taken)) return;
  prefetch_first(taken);
  is_watching() ? leave_by_ports<true>(rank, gpu, taken) : leave_by_ports<false>(rank, gpu, taken);
}

template <bool kWatched>
void Line::leave_by_ports(int rank, Gpu& gpu, const std::vector<Arrival>& taken) {
  Counters& counters = tally().counters;
  counters.hops += std::ssize(taken);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto [now, tag, id] = taken[i];
    Request& request = requests_[index(id)];
    const WayLeg& leg = leg_of(request);
    const std::size_t size = carried(request);
    const std::int64_t service = size == kLarge ? large_io_time(rank, request) : gpu.io[size];
    const std::int64_t time =
        serve_at(gpu.io_out_free[index(leg.out_port)], service, now) + gpu.io_latency;
    request.spent.charge(Reason::io, time - now);
    if (kWatched && options_.trace != nullptr)
      show(request, Reason::io, now, time - gpu.io_latency);
    request.link = 0;
    if (kWatched && !carries_.empty() && request.stage == Stage::out && is_watched(request.source))
      number_request(id);
    travel<kWatched>(id, request, leg, time, false, counters);
  }
}

void Line::run_merge(Calendar& calendar, std::int64_t round) {
  std::vector<Arrival>& taken = mine().taken;
  if (!take_by_tag(calendar, round, taken)) return;
  prefetch_first(taken);
  is_watching() ? pass_merge<true>(taken) : pass_merge<false>(taken);
}

template <bool kWatched>
void Line::pass_merge(const std::vector<Arrival>& taken) {
  Counters& counters = tally().counters;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    prefetch(taken, i + kAhead);
    const auto [now, tag, id] = taken[i];
    Request& request = requests_[index(id)];
    travel<kWatched>(id, request, leg_of(request), now, true, counters);
  }
}

// Of a replay: rows, and what the detailed ranks send each other.
void Line::run_ingress(int rank, std::int64_t round) {
  Gpu& gpu = stage(rank);
  std::vector<Arrival>& taken = mine().taken;
  if (!take_by_tag(gpu.ingress, round, taken)) return;
  for (const Arrival& arrival : taken) {
    Request& request = requests_[index(arrival.id)];
    arrive(arrival.id, request, leg_of(request), arrival.time, tally().counters);
  }
}

}  // namespace hemiola::sim
